"""A fairness key of one queue: what of it may deliver, its weight, and its standing in the ring.

Within a key the next message is the one with the highest priority, then the lowest place, among
those that no limit holds back: the key's sources are the lanes that deliver freely, and its
waiters that were called from a bucket's line.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from fila.core.lane import Lane
from fila.core.rate import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fila.core.line import Line, Waiter
    from fila.core.ring import Seat

Source: TypeAlias = "Lane | Waiter"
# Priority negated, place of the source's first message, a number that settles ties, the source.
_Front: TypeAlias = "tuple[int, int, int, Source]"

# Outdated fronts may lie in the heap up to this number before they are swept out.
_OUTDATED_MAX = 64


class Key:
    """What the scheduler remembers of a fairness key while it has messages."""

    __slots__ = (
        "_fronts",
        "_open",
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
        "waiters",
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
        # The lane, while all that may be delivered is alike.
        self.only_lane: Lane | None = None
        # A heap of fronts, only while there are several sources; outdated entries are skipped.
        self._fronts: list[_Front] | None = None
        # How many sources there are.
        self._open = 0
        # Its messages in buckets' lines, by line.
        self.waiters: dict[Line, Waiter] = {}

    @property
    def is_open(self) -> bool:
        """Whether a message could be delivered now, limits and the ring apart."""
        return self._open > 0

    @property
    def sources(self) -> Iterator[Source]:
        """What may deliver now, in no order."""
        if self.only_lane is not None:
            yield self.only_lane
        seen: set[int] = set()
        for *_, source in self._fronts or ():
            if source.is_open and id(source) not in seen:
                seen.add(id(source))
                yield source

    def some_lanes(self) -> Iterator[Lane]:
        """Lanes with messages, the next ones first, for a look at a few; some come twice."""
        if self.is_open:
            yield self.head()
        for waiter in self.waiters.values():
            yield waiter.head()
        for *_, source in self._fronts or ():
            if isinstance(source, Lane) and source.is_open:
                yield source
        for waiter in self.waiters.values():
            yield from waiter.some_lanes()

    def head(self) -> Lane:
        """The lane of the next message. There must be one."""
        if self.only_lane is not None:
            return self.only_lane
        fronts = self._fronts
        assert fronts is not None
        while True:
            _, place, _, source = fronts[0]
            if source.first_place() == place:
                return source.head()
            heappop(fronts)

    def source_opened(self, source: Source) -> None:
        """A source may deliver."""
        self._open += 1
        if self._fronts is not None:
            heappush(self._fronts, _front(source))
        elif self.only_lane is None and isinstance(source, Lane):
            self.only_lane = source
        else:
            self._fronts = [_front(source)]
            if self.only_lane is not None:
                self._fronts.append(_front(self.only_lane))
                heapify(self._fronts)
                self.only_lane = None

    def front_changed(self, source: Source) -> None:
        """An open source has another first message than before."""
        fronts = self._fronts
        if fronts is None:
            return
        heappush(fronts, _front(source))
        if len(fronts) > 2 * self._open + _OUTDATED_MAX:
            sources = {id(each): each for *_, each in fronts if each.first_place()}
            self._fronts = [_front(each) for each in sources.values()]
            heapify(self._fronts)

    def source_closed(self, source: Source) -> None:
        """A source has no message any more, or a limit holds it back."""
        self._open -= 1
        if self.only_lane is source:
            self.only_lane = None
        elif not self._open:
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


def _front(source: Source) -> _Front:
    return (-source.head().spec.priority, source.first_place(), id(source), source)
