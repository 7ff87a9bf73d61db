"""Where a message stands: in its lane, among its key's other messages, and its key in the ring.

Looks and changes nothing. Only what may be delivered counts as being before it: what a limit holds
back is passed over.
"""

from typing import NamedTuple

from fila.core.explanation import Turn
from fila.core.key import Key
from fila.core.lane import Lane
from fila.core.line import Waiter
from fila.core.looks import Looks
from fila.core.queue import Queue


class _Ahead(NamedTuple):
    """Messages before one of the same key."""

    in_lane: int = 0
    in_key: int = 0
    by_priority: int = 0
    cost: int = 0


def turn_of(queue: Queue, lane: Lane, place: int, looks: Looks) -> Turn:
    """Where a ready message stands."""
    return _turn(queue, lane.key, lane, _ahead(lane, place, looks), looks)


def turn_of_key(queue: Queue, key: Key, looks: Looks) -> Turn:
    """Where a key's next message stands. There must be one."""
    return _turn(queue, key, key.head(), _Ahead(), looks)


def count_in_lane(lane: Lane, place: int, looks: Looks) -> int:
    """How many messages that are alike are before one."""
    is_exact = looks.take(lane.fifo.loose_count)
    return lane.fifo.count_before(place, loosely=not is_exact)


def count_in_line(lane: Lane, place: int, looks: Looks) -> int:
    """How many of its key's messages are before one, in the line that its lane stands in."""
    assert lane.waiter is not None
    count = 0
    for other in lane.waiter.lanes:
        if not looks.take():
            break
        count += _count(other, lane.spec.priority, place, looks)
    return count


def _turn(queue: Queue, key: Key, lane: Lane, ahead: _Ahead, looks: Looks) -> Turn:
    ring, cost = queue.ring, lane.spec.cost
    before = _keys_before(queue, key, looks)
    turns = ring.turns_needed(key, ahead.cost + cost) if key.seat is not None else 1
    is_first = not (before or ahead.in_lane or ahead.in_key)
    return Turn(
        ahead_in_lane=ahead.in_lane,
        ahead_in_key=ahead.in_key,
        ahead_by_priority=ahead.by_priority,
        keys_before=before,
        turns=turns,
        active_keys=len(ring),
        deficit=key.deficit,
        weight=key.weight,
        cost=cost,
        quantum=ring.quantum,
        is_next=is_first and turns == 1 and key.seat is not None and looks.is_exact,
    )


def _keys_before(queue: Queue, key: Key, looks: Looks) -> int:
    """How many keys have a turn before this one's next."""
    before = 0
    for member in queue.ring.line():
        if member is key or not looks.take():
            break
        before += 1
    return before


def _ahead(lane: Lane, place: int, looks: Looks) -> _Ahead:
    in_lane = count_in_lane(lane, place, looks)
    in_key = by_priority = 0
    cost = in_lane * lane.spec.cost
    for first, count in _others(lane, place, looks):
        in_key += count
        by_priority += count if first.spec.priority > lane.spec.priority else 0
        cost += count * first.spec.cost
    return _Ahead(in_lane, in_key, by_priority, cost)


def _others(lane: Lane, place: int, looks: Looks) -> list[tuple[Lane, int]]:
    """Lanes of the same key that may deliver, and how many of each go before a message."""
    found: list[tuple[Lane, int]] = []
    for source in lane.key.sources:
        if not looks.take():
            break
        if isinstance(source, Waiter):
            found += _called(source, lane, place, looks)
        elif source is not lane:
            found.append((source, _count(source, lane.spec.priority, place, looks)))
    return found


def _called(waiter: Waiter, lane: Lane, place: int, looks: Looks) -> list[tuple[Lane, int]]:
    """The same of what was called from a bucket's line."""
    if waiter is lane.waiter:
        count = count_in_line(lane, place, looks) - count_in_lane(lane, place, looks)
        return [(waiter.head(), count)]
    first = waiter.head()
    if (-first.spec.priority, first.fifo.peek()) > (-lane.spec.priority, place):
        return []
    # After the first, those it was called for may be behind.
    looks.is_exact &= waiter.grants == 1
    return [(first, waiter.grants)]


def _count(other: Lane, priority: int, place: int, looks: Looks) -> int:
    if other.spec.priority > priority:
        return len(other.fifo)
    return count_in_lane(other, place, looks) if other.spec.priority == priority else 0
