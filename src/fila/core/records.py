"""What survives a restart, as values: written by storage, read back by recovery.

What there is one of for each message is a named tuple: a start makes a million of them, and a
frozen dataclass costs five times as much to make.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from fila.model import DeadLetter, QueueSettings, Spec


class Status(IntEnum):
    """Where a message is in its life."""

    READY = 1
    DELAYED = 2
    LEASED = 3


class Entry(NamedTuple):
    """What scheduling needs of a message, written at acceptance; anew if that ever changes."""

    sequence: int
    id_high: int
    spec: Spec
    # Enqueued into the dead-letter queue itself.
    in_dlq: bool = False
    accepted_at_ns: int = 0
    # Wall time; 0 means at once.
    deliver_at_ns: int = 0
    # Wall time; 0 means never.
    expires_at_ns: int = 0


class Progress(NamedTuple):
    """What became of a message since: absent while it waits as it was accepted."""

    status: Status
    in_dlq: bool
    place: int
    attempts: int
    # Whether it was ever leased: its time to live has ended then.
    delivered: bool
    # Delayed: when it is ready. Leased: when the lease ends. Wall time.
    due_wall_ns: int = 0
    # How long that was from when it was set: no jump of the clock can make the rest longer.
    span_ns: int = 0
    # A delay that follows the wall clock (deliver_at) rather than the one that never goes back.
    wall_timed: bool = False
    token: int = 0
    leased_at_ns: int = 0
    last_error: str = ""
    dead: DeadLetter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A queue and its dead-letter queue share a partition, and one counter for ids and places."""

    number: int
    # The name of the queue that is not the dead-letter queue.
    base: str
    next_sequence: int = 1
    id_high: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRecord:
    """One queue."""

    name: str
    partition: int
    settings: QueueSettings
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWeight:
    """The weight of a key whose newest message has gone while older ones wait."""

    partition: int
    in_dlq: bool
    fairness_key: str
    weight: int
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketLevel:
    """What a throttle key's bucket held, or held at least."""

    name: str
    # Billionths of a token.
    nano_tokens: int
    at_wall_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerHigh:
    """The greatest sequence seen of a producer."""

    partition: int
    producer: bytes
    sequence: int
    at_ns: int


@dataclass(slots=True, kw_only=True)
class Recovered:
    """Everything a scheduler starts from. `entries` is read once, in order of sequence."""

    partitions: Sequence[PartitionRecord] = ()
    queues: Sequence[QueueRecord] = ()
    # (partition, entry, progress), grouped by partition.
    entries: Iterable[tuple[int, Entry, Progress | None]] = ()
    key_weights: Sequence[KeyWeight] = ()
    bucket_levels: Sequence[BucketLevel] = ()
    producers: Sequence[ProducerHigh] = ()
    # Greater than the number of every partition that ever was.
    next_partition: int = 1
    config: dict[str, str] = field(default_factory=dict)
