"""Which limits hold something back, and until when: buckets as those see them who wait for tokens.

Looks and changes nothing; what a bucket grants, and to whom, is decided in `throttle`.
"""

from heapq import nlargest

from fila.core import claim as claims
from fila.core.bucket import ONE, Bucket
from fila.core.explanation import BucketView, Throttling
from fila.core.key import Key
from fila.core.lane import Lane
from fila.core.line import Line, Waiter
from fila.core.looks import Looks
from fila.core.queue import Queue
from fila.core.standing import count_in_lane, count_in_line

# Buckets that are shown of a key or a queue.
_BUCKETS_SHOWN_MAX = 10


def limits_of(queue: Queue, throttle_keys: tuple[str, ...]) -> list[Bucket]:
    """The buckets of those throttle keys that are limited."""
    buckets = queue.throttle.buckets
    return [buckets[name] for name in throttle_keys if name in buckets]


def is_held_back(queue: Queue, lane: Lane, now_ns: int) -> bool:
    """Whether a limit keeps a lane from delivering its next message."""
    limits = limits_of(queue, lane.spec.throttle_keys)
    return any(_holds_back(bucket, queue, lane, now_ns) for bucket in limits)


def throttling_of(queue: Queue, lane: Lane, place: int, *, now_ns: int, looks: Looks) -> Throttling:
    """What limits do to one message."""
    in_lane = count_in_lane(lane, place, looks)
    views = []
    earliest: list[int | None] = []
    likely: list[int | None] = []
    for bucket in limits_of(queue, lane.spec.throttle_keys):
        waiting, before = _waiting(bucket, queue, lane, place, looks)
        views.append(
            _view(
                bucket,
                now_ns,
                waiting=waiting,
                before=before,
                holds_back=_holds_back(bucket, queue, lane, now_ns),
            )
        )
        earliest.append(bucket.supplies_in_ns(now_ns, in_lane + 1))
        queues = sum(
            1 for line in bucket.lines.values() if line.waiters and line.queue is not queue
        )
        likely.append(bucket.supplies_in_ns(now_ns, (before + 1) * (1 + queues)))
    return Throttling(
        buckets=tuple(views), messages=1, earliest_ns=_last(earliest), likely_ns=_last(likely)
    )


def coming_of(queue: Queue, throttle_keys: tuple[str, ...], *, now_ns: int) -> Throttling:
    """What limits will do to a message that is not ready yet: the first token, at the soonest."""
    limits = limits_of(queue, throttle_keys)
    soonest = _last([bucket.supplies_in_ns(now_ns, 1) for bucket in limits])
    views = [_view(bucket, now_ns, holds_back=bucket.level(now_ns) < ONE) for bucket in limits]
    return Throttling(buckets=tuple(views), messages=1, earliest_ns=soonest, likely_ns=soonest)


def throttling_of_key(queue: Queue, key: Key, *, now_ns: int, looks: Looks) -> Throttling:
    """What limits do to a key's messages."""
    waiting: dict[Line, int] = {}
    for line, waiter in key.waiters.items():
        if not looks.take():
            break
        waiting[line] = waiter.ready - waiter.grants
    return _summed(waiting, now_ns)


def throttling_of_queue(queue: Queue, *, now_ns: int, looks: Looks) -> Throttling:
    """What limits do to a queue's messages."""
    waiting: dict[Line, int] = {}
    for line in queue.lines:
        if not looks.take():
            break
        waiting[line] = _count_waiting(line, looks)
    return _summed(waiting, now_ns)


def _summed(waiting: dict[Line, int], now_ns: int) -> Throttling:
    shown = nlargest(_BUCKETS_SHOWN_MAX, filter(waiting.get, waiting), key=waiting.__getitem__)
    views = [_view(line.bucket, now_ns, waiting=waiting[line], holds_back=True) for line in shown]
    waits = [line.bucket.supplies_in_ns(now_ns, line.granted + 1) for line in shown]
    known = [wait for wait in waits if wait is not None]
    soonest = min(known, default=None)
    return Throttling(
        buckets=tuple(views),
        messages=sum(waiting.values()),
        earliest_ns=soonest,
        likely_ns=soonest,
    )


def _holds_back(bucket: Bucket, queue: Queue, lane: Lane, now_ns: int) -> bool:
    """Whether it would refuse a lane the token for its next message."""
    line = bucket.lines.get(queue)
    if line is not None:
        return not line.serves(lane, now_ns)
    # Nothing of the queue was tried yet.
    return bucket.level(now_ns) < ONE * (1 + claims.kept(bucket, lane, now_ns))


def _waiting(bucket: Bucket, queue: Queue, lane: Lane, place: int, looks: Looks) -> tuple[int, int]:
    """How many of a queue's messages want the tokens, and how many are likely to go before one.

    The keys in line share the tokens by their weights; a lane that was not tried yet joins them.
    """
    line = bucket.lines.get(queue)
    in_line = lane.waiter is not None and lane.waiter.line is line
    mine = (count_in_line if in_line else count_in_lane)(lane, place, looks)
    others, ours, weights, own = 0, len(lane.fifo), 0, lane.key.weight
    for waiter in line.waiters.values() if line else ():
        if not looks.take():
            break
        if waiter is lane.waiter:
            ours = _short_of(waiter)
        else:
            others += _short_of(waiter)
            weights += waiter.key.weight if waiter.key is not lane.key else 0
    before = (mine + 1) * (own + weights) // own - 1
    return others + ours, min(before, mine + others)


def _count_waiting(line: Line, looks: Looks) -> int:
    waiting = 0
    for waiter in line.waiters.values():
        if not looks.take():
            break
        waiting += _short_of(waiter)
    return waiting


def _short_of(waiter: Waiter) -> int:
    return waiter.ready - waiter.grants


def _view(
    bucket: Bucket, now_ns: int, *, waiting: int = 0, before: int = 0, holds_back: bool
) -> BucketView:
    level = bucket.level(now_ns)
    return BucketView(
        key=bucket.name,
        tokens=level / ONE,
        rate=bucket.rate,
        burst=bucket.burst,
        next_token_ns=bucket.supplies_in_ns(now_ns, 1),
        waiting=waiting,
        waiting_before=before,
        holds_back=holds_back,
    )


def _last(waits: list[int | None]) -> int | None:
    known = [wait for wait in waits if wait is not None]
    return max(known, default=0) if len(known) == len(waits) else None
