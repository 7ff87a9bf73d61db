"""What can be asked of the scheduler. A command touches one queue and may carry many messages.

`tag` is the caller's: it comes back with the reply and means nothing here. What needs the disk
(an earlier outcome, a message's entry) is looked up before and travels in the command.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from fila.core.records import Entry
from fila.model import (
    FailureDecision,
    ItemError,
    Outcome,
    ProducerSequence,
    QueueSettings,
    Spec,
    Timing,
)

Tag: TypeAlias = object


@dataclass(slots=True, kw_only=True)
class Enqueue:
    """Accept messages, given as columns: `bodies[i]` is asked for by `specs[i]`.

    `refused` are items that failed their checks; they are not in the columns, and their `index`
    counts in the batch as the caller sent it. `timings` has the few that are delayed or expire,
    by position in the columns.
    """

    tag: Tag
    queue: str
    bodies: Sequence[bytes]
    specs: Sequence[Spec]
    timings: dict[int, Timing] = field(default_factory=dict)
    refused: tuple[ItemError, ...] = ()
    producer: ProducerSequence | None = None
    # The stored outcome, when this is a repeat.
    known: Outcome | None = None


class Action(Enum):
    """What a settlement does."""

    ACK = "ack"
    NACK = "nack"
    RELEASE = "release"
    EXTEND = "extend"


@dataclass(slots=True, kw_only=True)
class Settle:
    """Settle or extend leases.

    A token of 0 stands for whoever holds the lease of the sequence at its index.
    """

    tag: Tag
    queue: str
    action: Action
    sequences: Sequence[int]
    tokens: Sequence[int]
    # Where those without a token were looked up, if any: the queue may be another one by now.
    partition: int = 0
    error: str = ""
    # Nack: overrides the queue's backoff. Extend: the new deadline from now; None is the queue's.
    delay_ms: int | None = None
    dead_letter: bool = False
    # Nack: what `on_failure` said, one for each sequence; it comes before what the nack says,
    # but for `dead_letter`.
    decisions: Sequence[FailureDecision | None] | None = None


@dataclass(slots=True, kw_only=True)
class OpenConsumer:
    """Make a consumer known. It gets nothing before it subscribes."""

    consumer: int
    credit: int
    name: str = ""
    peer: str = ""
    release_on_disconnect: bool = False


@dataclass(slots=True, kw_only=True)
class Subscribe:
    """Let a consumer have deliveries of a queue."""

    tag: Tag
    consumer: int
    queue: str


@dataclass(slots=True, kw_only=True)
class Unsubscribe:
    """End a consumer's deliveries of a queue; what it holds stays leased."""

    tag: Tag
    consumer: int
    queue: str


@dataclass(slots=True, kw_only=True)
class SetCredit:
    """Change how much a consumer may hold. 0 stops deliveries."""

    consumer: int
    credit: int


@dataclass(slots=True, kw_only=True)
class CloseConsumer:
    """A consumer has gone. `unsent` are leases whose messages never left: they go back at once."""

    consumer: int
    unsent: Sequence[tuple[str, int, int]] = ()


@dataclass(slots=True, kw_only=True)
class CreateQueue:
    """Create a queue and its dead-letter queue."""

    tag: Tag
    queue: str
    settings: QueueSettings


@dataclass(slots=True, kw_only=True)
class UpdateQueue:
    """Replace a queue's settings (the caller merged what was unset)."""

    tag: Tag
    queue: str
    settings: QueueSettings


@dataclass(slots=True, kw_only=True)
class DeleteQueue:
    """Delete a queue, its dead-letter queue and everything in them."""

    tag: Tag
    queue: str
    keep_dead_letters: bool = False


@dataclass(slots=True, kw_only=True)
class PauseQueue:
    """Stop or resume deliveries."""

    tag: Tag
    queue: str
    paused: bool


@dataclass(slots=True, kw_only=True)
class PurgeQueue:
    """Remove what waits, on request also what is leased. The reply is how many."""

    tag: Tag
    queue: str
    include_leased: bool = False


@dataclass(slots=True, kw_only=True)
class RemoveMessage:
    """Remove one waiting message; the entry was looked up by the caller."""

    tag: Tag
    queue: str
    message_id: str
    # Where the entry was looked up: a queue of this name may be another one by now.
    partition: int
    entry: Entry | None


@dataclass(slots=True, kw_only=True)
class Reschedule:
    """Move a delayed message to another wall time."""

    tag: Tag
    queue: str
    message_id: str
    # Where the entry was looked up: a queue of this name may be another one by now.
    partition: int
    entry: Entry | None
    deliver_at_ns: int


@dataclass(slots=True, kw_only=True)
class Redrive:
    """Move dead letters back into their source queue, given as columns, in the order wanted.

    Those that wait no more where they were looked up are passed over. `specs[i]` is what entry `i`
    asks for from now on; `timings` has the few that are delayed or expire, by position.
    """

    tag: Tag
    queue: str
    # Where the entries were looked up: a queue of this name may be another one by now.
    partition: int
    entries: Sequence[Entry]
    places: Sequence[int]
    specs: Sequence[Spec]
    timings: dict[int, Timing] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class SetConfig:
    """Store a runtime setting; an empty value deletes. The reply is whether it was there."""

    tag: Tag
    key: str
    value: str


Command: TypeAlias = (
    Enqueue
    | Settle
    | OpenConsumer
    | Subscribe
    | Unsubscribe
    | SetCredit
    | CloseConsumer
    | CreateQueue
    | UpdateQueue
    | DeleteQueue
    | PauseQueue
    | PurgeQueue
    | RemoveMessage
    | Reschedule
    | Redrive
    | SetConfig
)
