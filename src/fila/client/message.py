"""Messages as a program sees them: what it sends, what it receives, what it says by raising."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from google.protobuf.timestamp_pb2 import Timestamp

from fila.wire._pb import messages_pb2 as pb
from fila.wire.envelope import time_ns

if TYPE_CHECKING:
    from fila.client.leases import Grant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be sent with `enqueue_batch`; the fields are those of `enqueue`."""

    # Not in the repr: that ends up in logs.
    payload: bytes = field(repr=False)
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    fairness_key: str | None = None
    weight: int | None = None
    throttle_keys: Sequence[str] | None = None
    priority: int | None = None
    cost: int | None = None
    delay: float | None = None
    deliver_at: datetime | None = None
    ttl: float | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Why a message is in a dead-letter queue."""

    reason: str
    last_error: str
    source_queue: str
    dead_at: datetime


class Retry(Exception):  # noqa: N818 - raised as an instruction, not as an error
    """Raised by a handler: try this message again, after so many seconds if given.

    Without them the queue's backoff decides. The queue has the last word: its `on_failure` script
    may name another delay or give the message up, and after `max_attempts` it is set aside.
    """

    def __init__(self, after: float | None = None, reason: str = "") -> None:
        super().__init__(reason or "retry")
        self.after = after
        self.reason = reason


class Reject(Exception):  # noqa: N818 - raised as an instruction, not as an error
    """Raised by a handler: no attempt will ever succeed, set this message aside.

    It goes to the dead-letter queue, whatever attempts are left; no script is asked. A message of a
    dead-letter queue has nowhere further to go: it is tried again after the queue's backoff.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "rejected")
        self.reason = reason


class Message:
    """A message that was delivered, and the lease that it is held under.

    `grant` belongs to the SDK: it is what keeps the lease alive until the message is settled.
    """

    __slots__ = ("__weakref__", "_headers", "_pb", "grant", "token")

    def __init__(self, wire: pb.Message, grant: "Grant | None" = None, token: int = 0) -> None:
        self._pb = wire
        self._headers: dict[str, str] | None = None
        self.grant = grant
        self.token = token

    @property
    def id(self) -> str:
        """The message's UUID, ordered by time."""
        return self._pb.id

    @property
    def queue(self) -> str:
        """The queue it was delivered from."""
        return self._pb.metadata.queue_id

    @property
    def payload(self) -> bytes:
        """The bytes that were sent."""
        return self._pb.payload

    @property
    def headers(self) -> dict[str, str]:
        """The headers that were sent."""
        if self._headers is None:
            self._headers = dict(self._pb.headers)
        return self._headers

    @property
    def attempts(self) -> int:
        """How many attempts failed before this one."""
        return self._pb.metadata.attempt_count

    @property
    def fairness_key(self) -> str:
        """Whom it is served for."""
        return self._pb.metadata.fairness_key

    @property
    def weight(self) -> int:
        """The weight of its fairness key."""
        return self._pb.metadata.weight

    @property
    def priority(self) -> int:
        """Its priority within the fairness key."""
        return self._pb.metadata.priority

    @property
    def cost(self) -> int:
        """What its delivery took from its key's share."""
        return self._pb.metadata.cost

    @property
    def throttle_keys(self) -> tuple[str, ...]:
        """The limits that it counts against."""
        return tuple(self._pb.metadata.throttle_keys)

    @property
    def enqueued_at(self) -> datetime:
        """When the broker accepted it."""
        return moment(self._pb.timestamps.enqueued_at)

    @property
    def leased_at(self) -> datetime:
        """When it was delivered."""
        return moment(self._pb.timestamps.leased_at)

    @property
    def lease_expires_at(self) -> datetime:
        """When the lease that came with it ends, unless it is renewed."""
        return moment(self._pb.delivery.lease_expires_at)

    @property
    def lease_token(self) -> int:
        """What proves to the broker that this delivery is meant, not an earlier one."""
        return self.token

    @property
    def dead_letter(self) -> DeadLetter | None:
        """Why it was set aside, when it comes from a dead-letter queue."""
        if not self._pb.HasField("dead_letter"):
            return None
        dead = self._pb.dead_letter
        return DeadLetter(dead.reason, dead.last_error, dead.source_queue, moment(dead.dead_at))

    def __reduce__(self) -> tuple[object, ...]:
        """What was sent travels to another process; the lease stays with this object."""
        return _without_lease, (self._pb.SerializeToString(), self.token)

    def __repr__(self) -> str:
        return f"<Message {self.id} of {self.queue!r}, {self.attempts} failed attempts>"


def _without_lease(content: bytes, token: int) -> Message:
    return Message(pb.Message.FromString(content), token=token)


def moment(stamp: Timestamp) -> datetime:
    """A protobuf timestamp as an aware time."""
    return _EPOCH + timedelta(microseconds=time_ns(stamp) // 1000)
