"""What the scheduler wants done. Mutations are written in order, all of a pass in one batch.

Mutations name live `Message` objects: they are encoded before the next pass, when the object says
what is true at the end of this one; a later mutation of the same message overwrites it anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fila.core.commands import Tag
from fila.core.message import Message
from fila.core.records import BucketLevel, KeyWeight, PartitionRecord, QueueRecord
from fila.errors import FilaError
from fila.model import ItemError, Outcome, ProducerSequence, Spec


@dataclass(slots=True, kw_only=True)
class PutMessages:
    """Newly accepted messages, as columns; sequences run from `first_sequence`."""

    partition: int
    queue: str
    in_dlq: bool
    id_high: int
    first_sequence: int
    accepted_at_ns: int
    bodies: Sequence[bytes]
    specs: Sequence[Spec]
    # Position in the columns → (deliver_at_ns, expires_at_ns), wall time, 0 for none.
    times: dict[int, tuple[int, int]]


@dataclass(slots=True)
class PutProgress:
    """What became of some messages."""

    partition: int
    messages: Sequence[Message]


@dataclass(slots=True)
class DeleteMessages:
    """Messages that are gone, with all that was stored of them."""

    partition: int
    sequences: Sequence[int]


@dataclass(slots=True)
class DeleteRanges:
    """Stretches of messages that are gone, first and last sequence of each."""

    partition: int
    ranges: Sequence[tuple[int, int]]


@dataclass(slots=True)
class PutTimes:
    """Messages that are rescheduled or redriven: their entries' times change."""

    partition: int
    # Sequence → (deliver_at_ns, expires_at_ns), wall time, 0 for none.
    times: dict[int, tuple[int, int]]


@dataclass(slots=True)
class PutSpecs:
    """Messages that are no longer what they were accepted as: in their spec, or in their queue."""

    partition: int
    messages: Sequence[Message]
    # As above, for those whose times change as well.
    times: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class PutPartition:
    """A partition's counters."""

    record: PartitionRecord


@dataclass(slots=True)
class DeletePartition:
    """Everything under a partition's number, queues excepted."""

    number: int


@dataclass(slots=True)
class PutQueue:
    """A queue's settings."""

    record: QueueRecord


@dataclass(slots=True)
class DropQueue:
    """A queue's settings are gone."""

    name: str


@dataclass(slots=True)
class PutKeyWeight:
    """A key's weight outlives its newest message."""

    record: KeyWeight


@dataclass(slots=True)
class DropKeyWeight:
    """The key has nothing pending any more."""

    partition: int
    in_dlq: bool
    fairness_key: str


@dataclass(slots=True)
class PutOutcome:
    """What an enqueue came to, for its repeats."""

    partition: int
    key: ProducerSequence
    outcome: Outcome


@dataclass(slots=True)
class DropOutcomes:
    """Outcomes of a producer up to a sequence are old enough to forget."""

    partition: int
    producer: bytes
    up_to_sequence: int


@dataclass(slots=True)
class PutConfig:
    """A runtime setting; an empty value deletes it."""

    key: str
    value: str


@dataclass(slots=True)
class PutLevels:
    """What buckets hold, for a restart."""

    levels: Sequence[BucketLevel]


@dataclass(slots=True)
class DropLevels:
    """Throttle keys whose limits were taken away long ago."""

    names: Sequence[str]


Mutation: TypeAlias = (
    PutMessages
    | PutProgress
    | DeleteMessages
    | DeleteRanges
    | PutTimes
    | PutSpecs
    | PutPartition
    | DeletePartition
    | PutQueue
    | DropQueue
    | PutKeyWeight
    | DropKeyWeight
    | PutOutcome
    | DropOutcomes
    | PutConfig
    | PutLevels
    | DropLevels
)

# A message and the token of the lease it is delivered under; the message may have moved on since.
Delivery: TypeAlias = tuple[Message, int]


@dataclass(frozen=True, slots=True)
class SettleResult:
    """Which of a settlement's messages were refused; all others are settled."""

    errors: tuple[ItemError, ...] = ()


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """How many dead letters moved; all others waited no more, or found no room."""

    moved: int
    # Whether the source queue had no room for more.
    is_full: bool = False


# Outcome for Enqueue, SettleResult for Settle, RedriveResult for Redrive, int for Purge, bool for
# SetConfig, None for others.
Reply: TypeAlias = Outcome | SettleResult | RedriveResult | int | bool | FilaError | None


@dataclass(frozen=True, slots=True)
class Closed:
    """A subscription that the broker ended: its queue is gone."""

    consumer: int
    queue: str
    error: FilaError


@dataclass(slots=True)
class Effects:
    """All that one pass wants done."""

    mutations: list[Mutation] = field(default_factory=list)
    # By consumer, in order.
    deliveries: dict[int, list[Delivery]] = field(default_factory=dict)
    replies: list[tuple[Tag, Reply]] = field(default_factory=list)
    closed: list[Closed] = field(default_factory=list)
