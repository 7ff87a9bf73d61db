"""What an explanation is made of: causes by code, the true one first, and what is known of them.

Values without words: the shell puts them into sentences. Times are wall time, spans from now.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from fila.core.records import Status
from fila.core.views import ConsumerView
from fila.model import DeadLetter, Spec


class Code(IntEnum):
    """Why something is not delivered now. The numbers are those on the wire."""

    # Nothing stands in its way.
    DELIVERABLE = 1
    LEASED = 2
    DELAYED = 3
    PAUSED = 4
    NO_CONSUMER = 5
    # All consumers hold as much as they asked for.
    NO_CREDIT = 6
    # A token bucket holds it back.
    THROTTLED = 7
    # Others are before it.
    WAITING_TURN = 8
    # Its time to live is running, or over.
    EXPIRING = 9
    DEAD_LETTER = 10
    # A key or a queue that has nothing.
    NOTHING_PENDING = 11
    # All that a key or a queue has is with consumers, or so much of it that it is in its own way.
    IN_FLIGHT = 12


class DelayKind(IntEnum):
    """What a delay was asked for by; the first one follows the wall clock."""

    DELIVER_AT = 1
    DELAY = 2
    RETRY = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who has a message."""

    # 0: nobody's stream, any more.
    consumer: int
    name: str
    peer: str
    leased_at_ns: int
    until_ns: int
    left_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Until when a message waits."""

    kind: DelayKind
    until_ns: int
    left_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """So many messages of a key or a queue."""

    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketView:
    """One throttle key's bucket, from where somebody waits."""

    key: str
    tokens: float
    rate: float
    burst: float
    # 0 where it has one; None for never, as things are.
    next_token_ns: int | None
    # Messages of the queue that want its tokens, and how many of them are likely to go first.
    waiting: int
    waiting_before: int
    holds_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """What limits do to a message, or to so many of a key or a queue."""

    buckets: tuple[BucketView, ...]
    messages: int
    # Not before, while the limits stay and nothing before it in its lane is removed; None: never.
    earliest_ns: int | None
    # An estimate by the weights of who waits now.
    likely_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Who is before a message, or before a key's next one."""

    # Alike in all that scheduling looks at; others of its key; those among them by priority.
    ahead_in_lane: int
    ahead_in_key: int
    ahead_by_priority: int
    keys_before: int
    # In which turn of its key from now: each lap of the ring has one.
    turns: int
    active_keys: int
    deficit: int
    weight: int
    cost: int
    quantum: int
    # The very next, if a consumer has room for one.
    is_next: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """Who takes from the queue, and how much they hold of all queues; the longest idle first."""

    consumers: tuple[ConsumerView, ...]
    count: int
    credit: int
    held: int
    # Whether one of them was given or settled something lately.
    is_moving: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """When a message is dead-lettered for not having been delivered."""

    at_ns: int
    left_ns: int


Facts: TypeAlias = Lease | Delay | Count | Throttling | Turn | Credit | Expiry | DeadLetter


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that stands in the way, or that one should know."""

    code: Code
    facts: Facts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageState:
    """The message that was asked about."""

    # Where it is: its dead-letter queue, if it is a dead letter.
    queue: str
    status: Status
    spec: Spec
    attempts: int
    last_error: str
    is_next: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """The fairness key that was asked about."""

    key: str
    ready: int
    delayed: int
    throttled: int
    in_flight: int
    weight: int
    deficit: int
    delivered_per_second: float
    # Of what was served lately, and of the weights, among the keys that have ready messages.
    share: float
    weight_share: float
    # 0 for none.
    oldest_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingKey:
    """A key in a list of those that wait longest."""

    key: str
    oldest_sequence: int
    ready: int
    throttled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """The queue that was asked about."""

    ready: int
    delayed: int
    throttled: int
    in_flight: int
    consumers: int
    active_keys: int
    key_count: int
    delivered_per_second: float
    longest_waiting: tuple[WaitingKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """An answer."""

    queue: str
    subject: MessageState | KeyState | QueueState
    # First what holds it back now, then what else would, then what one should know.
    causes: tuple[Cause, ...]
    # Nothing stands in its way: it goes with the next pass.
    is_deliverable: bool
    # False where there was too much to look at each: counts are then "at least".
    is_exact: bool
