"""What the admin calls answer, as frozen values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TypedDict

from fila.client.message import Message, moment
from fila.model import QueueSettings
from fila.wire._pb import admin_pb2 as pb


class QueueOptions(TypedDict, total=False):
    """How a queue behaves; what is left out keeps the broker's default or its present value."""

    on_enqueue_script: str
    on_failure_script: str
    visibility_timeout_ms: int
    max_attempts: int
    max_depth: int
    retry_delay_ms: int
    retry_backoff: float
    retry_delay_max_ms: int
    quantum: int
    hook_timeout_ms: int
    hook_memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """A queue in a list."""

    name: str
    depth: int
    in_flight: int
    active_consumers: int
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDescription:
    """A queue's settings. A dead-letter queue has no dead-letter queue."""

    name: str
    settings: QueueSettings
    paused: bool
    dead_letter_queue: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStats:
    """One fairness key of a queue."""

    key: str
    pending_count: int
    current_deficit: int
    weight: int
    delivered: int
    delivered_per_second: float
    share: float
    weight_share: float
    in_flight: int
    oldest_waiting_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleStats:
    """One token bucket; `waiting` are ready messages of this queue that wait for its tokens."""

    key: str
    tokens: float
    rate_per_second: float
    burst: float
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HookStats:
    """One script of a queue, since the broker started or the script was set.

    Messages of calls that failed, and of calls that the open breaker saved, went on with their own
    options.
    """

    calls: int
    timeouts: int
    out_of_memory: int
    errors: int
    bad_results: int
    bypassed: int
    clamped: int
    breaker_opened: int
    breaker_open: bool
    last_error: str
    median_us: float
    p99_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """What a queue holds and how it is served."""

    depth: int
    in_flight: int
    ready: int
    delayed: int
    throttled: int
    active_fairness_keys: int
    active_consumers: int
    quantum: int
    oldest_waiting_ms: int
    paused: bool
    key_count: int
    per_key_stats: Sequence[KeyStats]
    per_throttle_stats: Sequence[ThrottleStats]
    on_enqueue: HookStats | None
    on_failure: HookStats | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerInfo:
    """A connected consumer."""

    id: int
    name: str
    peer: str
    queues: Sequence[str]
    credit: int
    held: int
    idle_ms: int


class MessageState(Enum):
    """Where a message stands."""

    UNKNOWN = 0
    READY = 1
    DELAYED = 2
    LEASED = 3


@dataclass(frozen=True, slots=True)
class BrowsedMessage:
    """A message that was looked at. `due_at`: when it becomes ready, or its lease ends."""

    message: Message
    state: MessageState
    due_at: datetime | None


def queue_settings(config: pb.QueueConfig) -> QueueSettings:
    """The settings as the broker tells them."""
    return QueueSettings(**{field.name: value for field, value in config.ListFields()})


def queue_info(info: pb.QueueInfo) -> QueueInfo:
    """One line of a list of queues."""
    return QueueInfo(
        name=info.name,
        depth=info.depth,
        in_flight=info.in_flight,
        active_consumers=info.active_consumers,
        paused=info.paused,
    )


def queue_stats(stats: pb.GetStatsResponse) -> QueueStats:
    """A queue's figures."""
    return QueueStats(
        depth=stats.depth,
        in_flight=stats.in_flight,
        ready=stats.ready,
        delayed=stats.delayed,
        throttled=stats.throttled,
        active_fairness_keys=stats.active_fairness_keys,
        active_consumers=stats.active_consumers,
        quantum=stats.quantum,
        oldest_waiting_ms=stats.oldest_waiting_ms,
        paused=stats.paused,
        key_count=stats.key_count,
        per_key_stats=tuple(map(_key_stats, stats.per_key_stats)),
        per_throttle_stats=tuple(map(_throttle_stats, stats.per_throttle_stats)),
        on_enqueue=_hook_stats(stats.on_enqueue) if stats.HasField("on_enqueue") else None,
        on_failure=_hook_stats(stats.on_failure) if stats.HasField("on_failure") else None,
    )


def _hook_stats(stats: pb.HookStats) -> HookStats:
    return HookStats(**{name: getattr(stats, name) for name in HookStats.__annotations__})


def _key_stats(stats: pb.PerFairnessKeyStats) -> KeyStats:
    return KeyStats(
        key=stats.key,
        pending_count=stats.pending_count,
        current_deficit=stats.current_deficit,
        weight=stats.weight,
        delivered=stats.delivered,
        delivered_per_second=stats.delivered_per_second,
        share=stats.share,
        weight_share=stats.weight_share,
        in_flight=stats.in_flight,
        oldest_waiting_ms=stats.oldest_waiting_ms,
    )


def _throttle_stats(stats: pb.PerThrottleKeyStats) -> ThrottleStats:
    return ThrottleStats(
        key=stats.key,
        tokens=stats.tokens,
        rate_per_second=stats.rate_per_second,
        burst=stats.burst,
        waiting=stats.waiting,
    )


def consumer_info(info: pb.ConsumerInfo) -> ConsumerInfo:
    """One line of a list of consumers."""
    return ConsumerInfo(
        id=info.id,
        name=info.name,
        peer=info.peer,
        queues=tuple(info.queues),
        credit=info.credit,
        held=info.held,
        idle_ms=info.idle_ms,
    )


def browsed_message(browsed: pb.BrowsedMessage) -> BrowsedMessage:
    """One message of a page."""
    due_at = moment(browsed.due_at) if browsed.HasField("due_at") else None
    return BrowsedMessage(Message(browsed.message), MessageState(browsed.state), due_at)
