"""Who waits for the tokens of one bucket in one queue: its fairness keys, in deficit round robin.

A key stands in line with all its lanes that wait for the bucket. Whose turn it is gets granted a
token: the key may then deliver one message of those lanes, in its turn in the queue. A grant is no
reservation. It says who comes first; the token is taken with the delivery, and where another queue
was quicker the grant is withdrawn.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from fila.core.ring import Ring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fila.core.bucket import Bucket
    from fila.core.key import Key
    from fila.core.lane import Lane
    from fila.core.queue import Queue
    from fila.core.ring import Seat

# Priority negated, place of the lane's first message, a number that settles ties, the lane.
_Front: TypeAlias = "tuple[int, int, int, Lane]"

_OUTDATED_MAX = 64


class Waiter:
    """What of a key waits in one line."""

    __slots__ = (
        "_fronts",
        "credited_lap",
        "deficit",
        "due_lap",
        "grants",
        "in_turn",
        "is_open",
        "key",
        "lane_count",
        "line",
        "only_lane",
        "ready",
        "seat",
        "weight",
    )

    def __init__(self, key: Key, line: Line) -> None:
        self.key = key
        self.line = line
        self.weight = key.weight
        self.deficit = 0
        self.seat: Seat | None = None
        self.in_turn = False
        self.credited_lap = 0
        self.due_lap = 0
        # As the ring's members have it; a waiter always looks into its heap.
        self.only_lane: Lane | None = None
        self.lane_count = 0
        # Its messages, and for how many of them it was granted a token.
        self.ready = 0
        self.grants = 0
        # Whether the key knows that it may deliver.
        self.is_open = False
        self._fronts: list[_Front] = []

    @property
    def lanes(self) -> Iterator[Lane]:
        """Its lanes."""
        seen: set[int] = set()
        for *_, lane in self._fronts:
            if self._holds(lane) and id(lane) not in seen:
                seen.add(id(lane))
                yield lane

    def head(self) -> Lane:
        """The lane of its next message. There must be one."""
        fronts = self._fronts
        while True:
            _, place, _, lane = fronts[0]
            if self._holds(lane) and lane.fifo.peek() == place:
                return lane
            heappop(fronts)

    def first_place(self) -> int:
        """The place of its next message, 0 if it may not deliver."""
        return self.head().fifo.peek() if self.is_open else 0

    def add(self, lane: Lane) -> None:
        """A lane joins with all its messages."""
        lane.waiter = self
        self.lane_count += 1
        self.ready += len(lane.fifo)
        self.front_changed(lane)

    def remove(self, lane: Lane) -> None:
        """A lane leaves, with the messages that it has now."""
        lane.waiter = None
        self.lane_count -= 1
        self.ready -= len(lane.fifo)

    def front_changed(self, lane: Lane) -> None:
        """A lane has another first message than before."""
        fronts = self._fronts
        heappush(fronts, _front(lane))
        if len(fronts) > 2 * self.lane_count + _OUTDATED_MAX:
            self._fronts = [_front(each) for each in self.lanes]
            heapify(self._fronts)

    def _holds(self, lane: Lane) -> bool:
        return lane.waiter is self and len(lane.fifo) > 0


class Line:
    """One queue's line at one bucket."""

    __slots__ = ("bucket", "granted", "queue", "ring", "waiters")

    def __init__(self, bucket: Bucket, queue: Queue) -> None:
        self.bucket = bucket
        self.queue = queue
        self.ring: Ring[Waiter] = Ring(queue.ring.quantum)
        self.waiters: dict[Key, Waiter] = {}
        # Tokens granted and not yet used.
        self.granted = 0

    @property
    def throttled_count(self) -> int:
        """Messages that wait for a token."""
        return sum(waiter.ready - waiter.grants for waiter in self.waiters.values())

    def stand(self, lane: Lane) -> None:
        """Let a lane, which is not in line anywhere, stand in this one."""
        key = lane.key
        waiter = self.waiters.get(key)
        if waiter is None:
            waiter = self.waiters[key] = key.waiters[self] = Waiter(key, self)
        before = waiter.first_place()
        waiter.add(lane)
        self.settle(waiter, before)

    def leave(self, lane: Lane) -> None:
        """Take a lane out of the line, with what it has left."""
        waiter = lane.waiter
        assert waiter is not None
        before = waiter.first_place() if waiter.ready else 0
        waiter.remove(lane)
        self.settle(waiter, before)

    def grant(self, tokens: int) -> int:
        """Grant up to so many tokens to those whose turn it is; how many were."""
        ring = self.ring
        given = 0
        while given < tokens and (waiter := ring.next_key()) is not None:
            waiter.deficit -= waiter.head().spec.cost
            # A turn's credit is counted at the weight that the key had when it began.
            waiter.weight = waiter.key.weight
            waiter.grants += 1
            self.granted += 1
            given += 1
            self.settle(waiter)
        return given

    def withdraw(self, waiter: Waiter) -> None:
        """The tokens that were granted are gone: someone else was quicker."""
        cost = waiter.head().spec.cost
        waiter.deficit += waiter.grants * cost
        self.granted -= waiter.grants
        waiter.grants = 0
        self.settle(waiter)

    def spend(self, waiter: Waiter) -> None:
        """A granted token was taken; the message leaves the lane next."""
        waiter.grants -= 1
        self.granted -= 1

    def settle(self, waiter: Waiter, first_before: int | None = None) -> None:
        """Restore what must hold, whatever has changed.

        A waiter is in the ring while it has something to be granted for, open while something is
        granted, and gone without messages.
        """
        if waiter.grants > waiter.ready:
            self.granted -= waiter.grants - waiter.ready
            waiter.grants = waiter.ready
        self._settle_seat(waiter)
        if waiter.is_open != (waiter.grants > 0):
            waiter.is_open = waiter.grants > 0
            if waiter.is_open:
                self.queue.open_source(waiter.key, waiter)
            else:
                self.queue.close_source(waiter.key, waiter)
        elif waiter.is_open and first_before not in {None, waiter.first_place()}:
            self.queue.front_moved(waiter.key, waiter)
        if not waiter.ready:
            del self.waiters[waiter.key]
            del waiter.key.waiters[self]

    def _settle_seat(self, waiter: Waiter) -> None:
        if waiter.ready > waiter.grants:
            if waiter.seat is None:
                self.ring.quantum = self.queue.ring.quantum
                waiter.weight = waiter.key.weight
                self.ring.join(waiter)
        elif waiter.seat is not None:
            self.ring.leave(waiter)


def _front(lane: Lane) -> _Front:
    return (-lane.spec.priority, lane.fifo.peek(), id(lane), lane)
