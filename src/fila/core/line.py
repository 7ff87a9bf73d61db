"""Who waits for the tokens of one bucket in one queue: its fairness keys, in deficit round robin.

A key stands in line with all its lanes that wait for the bucket. Whose turn it is gets granted a
token: the key may then deliver one message of those lanes, in its turn in the queue. A grant is no
reservation. It says who comes first; the token is taken with the delivery, and where another queue
was quicker the grant is withdrawn.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from fila.core import claim as claims
from fila.core.bucket import ONE
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
        "charged",
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
        # Its messages, for how many of them it was granted a token, and what that has cost it.
        self.ready = 0
        self.grants = 0
        self.charged = 0
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

    def some_lanes(self) -> Iterator[Lane]:
        """Its lanes, roughly in turn; some come twice."""
        return (lane for *_, lane in self._fronts if self._holds(lane))

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
        self.count(len(lane.fifo))
        self.front_changed(lane)

    def remove(self, lane: Lane) -> None:
        """A lane leaves, with the messages that it has now."""
        lane.waiter = None
        self.lane_count -= 1
        self.count(-len(lane.fifo))

    def count(self, change: int) -> None:
        """So many messages have come, or gone."""
        self.ready += change
        self.line.ready += change

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

    __slots__ = ("bucket", "granted", "queue", "ready", "ring", "waiters")

    def __init__(self, bucket: Bucket, queue: Queue) -> None:
        self.bucket = bucket
        self.queue = queue
        self.ring: Ring[Waiter] = _NOBODY
        self.waiters: dict[Key, Waiter] = {}
        # Messages of those who wait, and tokens granted and not yet used.
        self.ready = 0
        self.granted = 0

    @property
    def throttled_count(self) -> int:
        """Messages that wait for a token."""
        return self.ready - self.granted

    def serves(self, lane: Lane, now_ns: int) -> bool:
        """Whether the bucket has a token that is this lane's to take."""
        bucket = self.bucket
        level = bucket.level(now_ns)
        if level < ONE:
            return False
        if bucket.claims:
            if lane.claim is not None and lane.claim.is_heard:
                return True
            level -= ONE * claims.kept(bucket, lane, now_ns)
        waiter = self.waiters.get(lane.key)
        if waiter is not None and waiter.grants:
            # What its key was granted here is for any of its lanes: if it were not, two lines could
            # send a lane to and fro, each with a grant that waits for the other's.
            return level >= ONE
        # Nobody is overtaken: neither who waits, nor who was called and has not delivered yet.
        return not len(self.ring) and level >= ONE * (1 + self.granted)

    def stand(self, lane: Lane) -> None:
        """Let a lane, which is not in line anywhere, stand in this one."""
        key = lane.key
        if self.ring is _NOBODY:
            self.ring = Ring(self.queue.ring.quantum)
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
            cost = waiter.head().spec.cost
            waiter.deficit -= cost
            waiter.charged += cost
            waiter.grants += 1
            self.granted += 1
            given += 1
            self.settle(waiter)
        return given

    def withdraw(self, waiter: Waiter) -> None:
        """The tokens that were granted are gone: someone else was quicker."""
        self._take_back(waiter, waiter.grants)
        self.settle(waiter)

    def spend(self, waiter: Waiter, cost: int) -> None:
        """A token was taken for a message of this cost: one that was granted, or out of turn.

        One that was taken out of turn makes the key's next turn here come later.
        """
        self._take_back(waiter, min(1, waiter.grants))
        self.ring.before_change(waiter)
        waiter.deficit -= cost
        self.ring.after_change(waiter)

    def reweigh(self, waiter: Waiter) -> None:
        """The key has another weight than before."""
        self.ring.before_change(waiter)
        waiter.weight = waiter.key.weight
        self.ring.after_change(waiter)

    def set_quantum(self, quantum: int) -> None:
        """Let turns be of another length from now on."""
        if self.ring is _NOBODY:
            return
        for waiter in self.waiters.values():
            self.ring.before_change(waiter)
        self.ring.quantum = quantum
        for waiter in self.waiters.values():
            self.ring.after_change(waiter)

    def settle(self, waiter: Waiter, first_before: int | None = None) -> None:
        """Restore what must hold, whatever has changed.

        A waiter is in the ring while it has something to be granted for, open while something is
        granted, and gone without messages.
        """
        if waiter.grants > waiter.ready:
            self._take_back(waiter, waiter.grants - waiter.ready)
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

    def _take_back(self, waiter: Waiter, grants: int) -> None:
        if grants:
            share = waiter.charged * grants // waiter.grants
            waiter.charged -= share
            waiter.deficit += share
            waiter.grants -= grants
            self.granted -= grants

    def _settle_seat(self, waiter: Waiter) -> None:
        if waiter.ready <= waiter.grants:
            if waiter.seat is not None:
                self.ring.leave(waiter)
        elif waiter.seat is None:
            waiter.weight = waiter.key.weight
            self.ring.join(waiter)
        else:
            # Its next message may be another, and what it has left.
            self.ring.after_change(waiter)


# The ring of a line in which nobody ever stood; many lines are like that, and a ring is not small.
_NOBODY: Ring[Waiter] = Ring(1)


def _front(lane: Lane) -> _Front:
    return (-lane.spec.priority, lane.fifo.peek(), id(lane), lane)
