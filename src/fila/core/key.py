"""A fairness key of one queue: its lanes, its weight, and its standing in the ring.

A lane holds the waiting messages that are alike in all that scheduling looks at, in order of
place. Within a key the next message is the one with the highest priority, then the lowest place.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from fila.core.fifo import Fifo
from fila.core.rate import Rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fila.model import Spec

# Priority negated, place of the lane's first message, a number that settles ties, the lane.
_Front: TypeAlias = tuple[int, int, int, "Lane"]


class Lane:
    """Messages of one spec."""

    __slots__ = ("fifo", "key", "spec")

    def __init__(self, spec: Spec, key: Key) -> None:
        self.spec = spec
        self.key = key
        self.fifo = Fifo()


# A key's place in the ring's line. A new tuple whenever the key moves in it: an old one that still
# lies somewhere in the ring is known by not being the key's any more.
Seat: TypeAlias = tuple["Key"]


class Key:
    """What the scheduler remembers of a fairness key while it has messages."""

    __slots__ = (
        "_fronts",
        "credited_lap",
        "deficit",
        "delayed",
        "delivered",
        "due_lap",
        "in_flight",
        "in_turn",
        "mixed_weights",
        "name",
        "newest_gone",
        "newest_place",
        "only_lane",
        "ready",
        "seat",
        "served",
        "stored_place",
        "weight",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.weight = 1
        # The message that the weight is from, and whether it is not ready any more.
        self.newest_place = 0
        self.newest_gone = False
        # Whether messages with different weights came since the key was last empty, or may come.
        self.mixed_weights = False
        # The place in the stored weight record; 0 for no record.
        self.stored_place = 0
        self.ready = 0
        self.delayed = 0
        self.in_flight = 0
        # What was delivered, in messages and in cost.
        self.delivered = Rate()
        self.served = Rate()
        self.deficit = 0
        self.seat: Seat | None = None
        self.in_turn = False
        self.credited_lap = 0
        self.due_lap = 0
        # The lane, while all that is ready is alike.
        self.only_lane: Lane | None = None
        # A heap of lane fronts, only while there are several lanes; outdated entries are skipped.
        self._fronts: list[_Front] | None = None

    @property
    def lanes(self) -> Iterable[Lane]:
        """The lanes with messages."""
        if self._fronts is None:
            return [self.only_lane] if self.only_lane else []
        return {id(lane): lane for *_, lane in self._fronts if lane.fifo}.values()

    def head(self) -> Lane:
        """The lane of the next message. There must be one."""
        if self.only_lane is not None:
            return self.only_lane
        fronts = self._fronts
        assert fronts is not None
        while True:
            _, place, _, lane = fronts[0]
            if lane.fifo and lane.fifo.peek() == place:
                return lane
            heappop(fronts)

    def lane_opened(self, lane: Lane) -> None:
        """A lane has its first message."""
        if self._fronts is not None:
            heappush(self._fronts, _front(lane))
        elif self.only_lane is None:
            self.only_lane = lane
        else:
            self._fronts = [_front(self.only_lane), _front(lane)]
            heapify(self._fronts)
            self.only_lane = None

    def front_changed(self, lane: Lane) -> None:
        """A lane has another first message than before."""
        if self._fronts is not None:
            heappush(self._fronts, _front(lane))

    def lane_closed(self, lane: Lane) -> None:
        """A lane has no message any more."""
        if self.only_lane is lane:
            self.only_lane = None
        elif not self.ready:
            self._fronts = None

    def note_weight(self, place: int, weight: int) -> bool:
        """Take in the weight of a message that is ready; whether the key's weight changed."""
        changed = weight != self.weight
        if changed and self.newest_place:
            self.mixed_weights = True
        if place <= self.newest_place:
            self.newest_gone = self.newest_gone and place != self.newest_place
            return False
        self.newest_place = place
        self.newest_gone = False
        self.weight = weight
        return changed

    def note_delivery(self, count: int, cost: int, window: int) -> None:
        """So many messages of so much cost in all have been delivered."""
        delivered, served = self.delivered, self.served
        if window != delivered.window:
            delivered.turn(window)
            served.turn(window)
        delivered.total += count
        served.total += cost

    @property
    def needs_record(self) -> bool:
        """Whether a restart would take the weight from another message than the newest."""
        if not self.newest_gone or self.stored_place == self.newest_place:
            return False
        return self.mixed_weights or not self.ready

    def forget(self) -> None:
        """Nothing is pending: the next message starts anew."""
        self.weight = 1
        self.newest_place = 0
        self.newest_gone = False
        # What is with consumers may come back with any weight.
        self.mixed_weights = self.in_flight > 0
        self.stored_place = 0
        self.deficit = 0


def _front(lane: Lane) -> _Front:
    return (-lane.spec.priority, lane.fifo.peek(), id(lane), lane)
