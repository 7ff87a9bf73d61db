"""Settles on their way to the broker: gathered by queue and action, numbered, answered.

No I/O: a pipeline is fed with `add`, emptied with `take` and told what came back.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fila.client.answers import lease_error
from fila.client.message import Message
from fila.errors import FilaError, LeaseNotFoundError, OutcomeUnknownError
from fila.wire._pb import service_pb2 as pb

UNANSWERED_MAX = 10_000
_ERROR_CHARS_MAX = 1000


def error_text(text: str) -> str:
    """As much of an error's text as travels, and nothing that UTF-8 can't carry."""
    if not isinstance(text, str):
        raise TypeError(f"error must be str, not {type(text).__name__}")
    if len(text) > _ERROR_CHARS_MAX:
        text = text[: _ERROR_CHARS_MAX - 1] + "…"
    # A file name that is no text ends up in many a message.
    return text.encode(errors="backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class Ack:
    """It is done."""


@dataclass(frozen=True, slots=True)
class Nack:
    """It failed."""

    error: str = ""
    delay_ms: int | None = None
    dead_letter: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """It was not started."""


@dataclass(frozen=True, slots=True)
class Extend:
    """It takes longer. 0 is the queue's visibility timeout; `asked`: by the program."""

    extend_ms: int = 0
    asked: bool = True


Action: TypeAlias = Ack | Nack | Release | Extend
ACK = Ack()
RELEASE = Release()
RENEW = Extend(asked=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A settle that the broker refused."""

    message: Message
    action: Action
    error: FilaError


def in_doubt(message: Message) -> OutcomeUnknownError:
    """It was sent, its answer was lost, and now there is no lease: it was settled, or ran out."""
    return OutcomeUnknownError(
        f"message {message.id}: the connection was lost before its settle was confirmed; it is "
        "settled, or it is delivered again"
    )


class _Group:
    """One action for many messages of a queue."""

    __slots__ = ("action", "messages", "queue", "repeated")

    def __init__(self, queue: str, action: Action) -> None:
        self.queue = queue
        self.action = action
        self.messages: list[Message] = []
        # Sent before on a connection that was lost: it may have been settled then.
        self.repeated = False

    def settlement(self) -> pb.Settlement:
        settlement = pb.Settlement(
            queue=self.queue,
            message_ids=bytes.fromhex("".join([m.id for m in self.messages]).replace("-", "")),
            lease_tokens=[m.token for m in self.messages],
        )
        action = self.action
        if isinstance(action, Ack):
            settlement.ack.SetInParent()
        elif isinstance(action, Nack):
            settlement.nack.error = action.error
            settlement.nack.dead_letter = action.dead_letter
            if action.delay_ms is not None:
                settlement.nack.delay_ms = action.delay_ms
        elif isinstance(action, Release):
            settlement.release.SetInParent()
        else:
            settlement.extend.extend_ms = action.extend_ms
        return settlement


class SettlePipeline:
    """The settles of one stream, or of all messages that came without one."""

    def __init__(self) -> None:
        self._number = 0
        self._acks: dict[str, _Group] = {}
        self._others: dict[tuple[str, Action], _Group] = {}
        self._repeats: deque[_Group] = deque()
        self._unanswered: dict[int, list[_Group]] = {}
        # Messages whose settle has no answer yet.
        self.outstanding = 0
        # Those of them that were not sent yet.
        self.unsent = 0

    def add(self, queue: str, message: Message, action: Action) -> None:
        """Send it with the next batch."""
        self.unsent += 1
        if action is ACK:
            group = self._acks.get(queue)
            if group is None:
                group = self._acks[queue] = _Group(queue, action)
        else:
            key = (queue, action)
            group = self._others.get(key)
            if group is None:
                group = self._others[key] = _Group(queue, action)
        group.messages.append(message)
        self.outstanding += 1

    def take(self) -> tuple[int, list[pb.Settlement]] | None:
        """The number and content of the next batch; its answer is expected."""
        # Extends first: one that was asked for before its message was settled must not come late.
        others = sorted(self._others.values(), key=lambda group: type(group.action) is not Extend)
        groups = [*self._repeats, *others, *self._acks.values()]
        if not groups:
            return None
        self._repeats.clear()
        self._others.clear()
        self._acks.clear()
        self._number += 1
        self.unsent = 0
        self._unanswered[self._number] = groups
        return self._number, [group.settlement() for group in groups]

    def answered(self, number: int, results: Sequence[pb.SettlementResult]) -> Iterator[Refusal]:
        """What the broker refused of a batch, or may have done before; all else is settled."""
        groups = self._unanswered.pop(number, [])
        for group in groups:
            self.outstanding -= len(group.messages)
        for group, result in zip(groups, results, strict=False):
            for item in result.errors:
                message = group.messages[item.index]
                error = lease_error(item)
                if group.repeated and isinstance(error, LeaseNotFoundError):
                    error = in_doubt(message)
                yield Refusal(message, group.action, error)

    def repeated(self, number: int) -> None:
        """The batch is sent again: its first sending may have settled some."""
        for group in self._unanswered[number]:
            group.repeated = True

    def abandoned(self, number: int) -> list[tuple[Message, Action]]:
        """The batch stays without an answer; what was in it."""
        groups = self._unanswered.pop(number, [])
        lost = [(message, group.action) for group in groups for message in group.messages]
        self.outstanding -= len(lost)
        return lost

    def lost(self) -> None:
        """The connection is gone: what had no answer is sent again on the next one.

        Renewals are not: whoever holds the lease then asks anew.
        """
        sent = [group for groups in self._unanswered.values() for group in groups]
        self._unanswered.clear()
        for group in sent:
            group.repeated = True
        self._repeats.extendleft(reversed(sent))
        self._repeats = deque(group for group in self._repeats if group.action is not RENEW)
        for key in [key for key in self._others if key[1] is RENEW]:
            del self._others[key]
        waiting = [*self._repeats, *self._others.values(), *self._acks.values()]
        self.outstanding = self.unsent = sum(len(group.messages) for group in waiting)

    def give_up(self) -> list[tuple[Message, Action]]:
        """Nothing more will be sent: what has no answer."""
        sent = [group for groups in self._unanswered.values() for group in groups]
        groups = [*self._repeats, *sent, *self._others.values(), *self._acks.values()]
        for part in (self._unanswered, self._others, self._acks, self._repeats):
            part.clear()
        self.outstanding = self.unsent = 0
        return [(message, group.action) for group in groups for message in group.messages]
