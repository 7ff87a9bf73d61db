"""Which leases are held, and when they must be renewed.

Deliveries that arrive together share a grant. A settled message leaves its grant, an empty grant
leaves the book, so a fast consumer keeps nothing here but what it holds.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol
from weakref import ReferenceType, ref

from fila.client.message import Message
from fila.wire._pb import messages_pb2 as pb
from fila.wire.envelope import time_ns

if TYPE_CHECKING:
    from fila.client.settling import Action

_NS_PER_S = 1e9
_RENEWALS_PER_LEASE = 3
_LEASE_MIN_S = 0.3


class Holder(Protocol):
    """Where the messages of a grant are settled."""

    @property
    def unsettled(self) -> int:
        """Settles without an answer."""

    def settle(self, message: Message, action: "Action") -> None:
        """Send the action on its way."""


class Grant:
    """Leases that were granted together and end together."""

    __slots__ = ("duration", "held", "holder", "queue", "renew_at")

    def __init__(self, holder: Holder, queue: str, duration: float, now: float) -> None:
        self.holder = holder
        self.queue = queue
        self.duration = duration
        # By token. Weak: a message that the program dropped can't be settled any more, so its lease
        # must be let go.
        self.held: dict[int, ReferenceType[Message]] = {}
        self.renewed(now)

    def renewed(self, now: float) -> None:
        """The leases count from now again."""
        self.renew_at = now + self.duration / _RENEWALS_PER_LEASE


class LeaseBook:
    """The leases that came through one stream."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._grants: set[Grant] = set()
        # Messages held; other threads may read it.
        self.count = 0

    def receive(self, wires: Sequence[pb.Message], now: float) -> list[Message]:
        """Book deliveries that arrived together."""
        grants: dict[str, Grant] = {}
        messages = []
        for wire in wires:
            queue = wire.metadata.queue_id
            grant = grants.get(queue)
            if grant is None:
                grant = grants[queue] = Grant(self._holder, queue, _duration(wire), now)
            token = wire.delivery.lease_token
            message = Message(wire, grant, token)
            grant.held[token] = ref(message)
            messages.append(message)
        self._grants.update(grants.values())
        self.count += len(messages)
        return messages

    def settle(self, message: Message) -> bool:
        """Take a message out; whether it was still there."""
        grant = message.grant
        message.grant = None
        if grant is None or grant.held.pop(message.token, None) is None:
            return False
        self.count -= 1
        if not grant.held:
            self._grants.discard(grant)
        return True

    def due(self, now: float) -> list[Message]:
        """Messages whose leases must be renewed now; they count as renewed."""
        messages: list[Message] = []
        for grant in list(self._grants):
            if grant.renew_at <= now:
                grant.renewed(now)
                messages.extend(self._still_there(grant))
        return messages

    def _still_there(self, grant: Grant) -> list[Message]:
        messages = [message for held in grant.held.values() if (message := held()) is not None]
        dropped = len(grant.held) - len(messages)
        if dropped:
            self.count -= dropped
            grant.held = {message.token: ref(message) for message in messages}
            if not messages:
                self._grants.discard(grant)
        return messages

    def doubt(self) -> None:
        """The stream is gone, and the leases perhaps with it: ask for all of them soon."""
        for grant in self._grants:
            grant.renew_at = 0.0

    def longest(self) -> float:
        """The longest lease that is held, in seconds."""
        return max((grant.duration for grant in self._grants), default=0.0)

    def clear(self) -> None:
        """Nothing is held any more."""
        for grant in self._grants:
            grant.held.clear()
        self._grants.clear()
        self.count = 0


def _duration(wire: pb.Message) -> float:
    """How long the lease is, by the broker's own clock at both ends."""
    span = time_ns(wire.delivery.lease_expires_at) - time_ns(wire.timestamps.leased_at)
    return max(span / _NS_PER_S, _LEASE_MIN_S)
