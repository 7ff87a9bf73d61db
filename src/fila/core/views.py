"""What can be seen of the scheduler without changing it."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest
from operator import attrgetter

from fila.core.bucket import ONE
from fila.core.consumer import Consumer
from fila.core.key import Key
from fila.core.queue import LANES_SEEN_MAX, Queue
from fila.core.state import State

KEYS_SHOWN_MAX = 1000
BUCKETS_SHOWN_MAX = 1000
# Lanes looked at for the oldest messages of all keys that are shown: a look must not hold the loop.
_LANES_SEEN_IN_ALL_MAX = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSummary:
    """One line of a list of queues."""

    name: str
    depth: int
    in_flight: int
    consumers: int
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStats:
    """One fairness key."""

    key: str
    pending: int
    deficit: int
    weight: int
    delivered: int
    delivered_per_second: float
    share: float
    weight_share: float
    in_flight: int
    # Sequence of the message that waits longest, 0 for none: its entry says since when.
    oldest_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketStats:
    """One throttle key's bucket, and what of a queue waits for it."""

    key: str
    tokens: float
    rate: float
    burst: float
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """One queue, with its busiest keys, and with the buckets that most of it waits for."""

    summary: QueueSummary
    ready: int
    delayed: int
    throttled: int
    active_keys: int
    key_count: int
    quantum: int
    keys: tuple[KeyStats, ...]
    buckets: tuple[BucketStats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerView:
    """One consumer."""

    number: int
    name: str
    peer: str
    queues: tuple[str, ...]
    credit: int
    held: int
    idle_ns: int


def summarize(queue: Queue) -> QueueSummary:
    """One queue in a line."""
    return QueueSummary(
        name=queue.name,
        depth=queue.depth,
        in_flight=len(queue.leased),
        consumers=len(queue.consumers),
        paused=queue.paused,
    )


def stats_of(queue: Queue, *, now_ns: int) -> QueueStats:
    """One queue, with the keys that have the most pending."""
    shown = nlargest(KEYS_SHOWN_MAX, queue.keys.values(), key=lambda key: key.ready + key.delayed)
    served = sum(key.served.per_second(now_ns) for key in shown)
    weights = sum(key.weight for key in shown if key.ready)
    lanes_max = min(LANES_SEEN_MAX, _LANES_SEEN_IN_ALL_MAX // max(1, len(shown)))
    return QueueStats(
        summary=summarize(queue),
        ready=queue.ready_count,
        delayed=len(queue.delayed),
        throttled=queue.throttled_count,
        active_keys=len(queue.ring),
        key_count=len(queue.keys),
        quantum=queue.ring.quantum,
        keys=tuple(
            _key_stats(
                key,
                now_ns=now_ns,
                served=served,
                weights=weights,
                oldest_sequence=queue.oldest_sequence(key, lanes_max),
            )
            for key in shown
        ),
        buckets=tuple(_bucket_stats(queue, now_ns=now_ns)),
    )


def _bucket_stats(queue: Queue, *, now_ns: int) -> Iterator[BucketStats]:
    """The buckets that the queue's lanes have met, those with the most waiting first."""
    limited = queue.throttle.buckets
    lines = (line for line in queue.lines if limited.get(line.bucket.name) is line.bucket)
    for line in nlargest(BUCKETS_SHOWN_MAX, lines, key=attrgetter("throttled_count")):
        bucket = line.bucket
        yield BucketStats(
            key=bucket.name,
            tokens=bucket.level(now_ns) / ONE,
            rate=bucket.rate,
            burst=bucket.burst,
            waiting=line.throttled_count,
        )


def consumers_of(state: State, queue: Queue | None, *, now_ns: int) -> list[ConsumerView]:
    """All consumers, or those of one queue."""
    holder = state if queue is None else queue
    return [consumer_view(consumer, now_ns=now_ns) for consumer in holder.consumers.values()]


def consumer_view(consumer: Consumer, *, now_ns: int) -> ConsumerView:
    """One consumer."""
    return ConsumerView(
        number=consumer.number,
        name=consumer.name,
        peer=consumer.peer,
        queues=tuple(consumer.queues),
        credit=consumer.credit,
        held=len(consumer.leases),
        idle_ns=max(0, now_ns - consumer.idle_since_ns),
    )


def _key_stats(
    key: Key, *, now_ns: int, served: float, weights: int, oldest_sequence: int
) -> KeyStats:
    return KeyStats(
        key=key.name,
        pending=key.ready + key.delayed,
        deficit=key.deficit,
        weight=key.weight,
        delivered=key.delivered.total,
        delivered_per_second=key.delivered.per_second(now_ns),
        share=key.served.per_second(now_ns) / served if served else 0.0,
        weight_share=key.weight / weights if weights and key.ready else 0.0,
        in_flight=key.in_flight,
        oldest_sequence=oldest_sequence,
    )
