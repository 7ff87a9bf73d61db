"""Places in ascending order: added behind, taken in front, given back or taken out anywhere.

Eight bytes a place. A backlog is millions of these, so they are not Python objects.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappop, heappush

# Taken places are cut off the front when there are this many, and more than are left.
_CUT_MIN = 512


class Fifo:
    """The waiting messages of one lane."""

    __slots__ = ("_count", "_gone", "_head", "_places", "_returned")

    def __init__(self) -> None:
        self._places = array("Q")
        self._head = 0
        self._count = 0
        # Given back: a heap, nearly always empty. Taken out of the middle: skipped when met.
        self._returned: list[int] | None = None
        self._gone: set[int] | None = None

    def __len__(self) -> int:
        return self._count

    def extend(self, places: range) -> None:
        """Add places greater than all before."""
        count = len(places)
        if count == 1:
            self._places.append(places[0])
        else:
            self._places.extend(places)
        self._count += count

    def add(self, place: int) -> None:
        """Add a place wherever it belongs."""
        if self._gone and place in self._gone:
            # Taken out of the middle before: it lies there still.
            self._gone.discard(place)
        elif not self._places or place > self._places[-1]:
            self._places.append(place)
        else:
            if self._returned is None:
                self._returned = []
            heappush(self._returned, place)
        self._count += 1

    def peek(self) -> int:
        """The first place. There must be one."""
        if self._gone:
            self._skip_gone()
        if self._returned and (
            self._head >= len(self._places) or self._returned[0] < self._places[self._head]
        ):
            return self._returned[0]
        return self._places[self._head]

    def take(self, count: int) -> list[int]:
        """Take so many places off the front; there must be as many."""
        if self._returned or self._gone:
            return [self._pop() for _ in range(count)]
        head = self._head
        end = self._head = head + count
        self._count -= count
        places = self._places[head:end].tolist()
        if end >= _CUT_MIN and end * 2 > len(self._places):
            self._cut()
        return places

    def take_one(self) -> int:
        """Take the first place. There must be one."""
        if self._returned or self._gone:
            return self._pop()
        head = self._head
        place = self._places[head]
        self._count -= 1
        self._head = head + 1
        if head >= _CUT_MIN and head * 2 > len(self._places):
            self._cut()
        return place

    def remove(self, place: int) -> bool:
        """Take a place out of the middle; whether it was there."""
        if place not in self:
            return False
        if place == self.peek():
            # Nothing is left lying then: a lane may be taken apart from the front like this.
            self._pop()
            return True
        if self._returned and place in self._returned:
            self._returned.remove(place)
            # Order among the rest is what a heap needs, and a sorted list is a heap.
            self._returned.sort()
        else:
            if self._gone is None:
                self._gone = set()
            self._gone.add(place)
        self._count -= 1
        return True

    @property
    def loose_count(self) -> int:
        """How many places were given back, or taken out of the middle and not met yet."""
        return len(self._returned or ()) + len(self._gone or ())

    def count_before(self, place: int, *, loosely: bool = False) -> int:
        """How many are before a place; loosely, how many at least, without a look at the loose."""
        before = bisect_left(self._places, place, lo=self._head) - self._head
        gone, returned = self._gone or (), self._returned or ()
        if loosely:
            return max(0, before - len(gone))
        before -= sum(each < place for each in gone)
        return before + sum(each < place for each in returned)

    def __iter__(self) -> Iterator[int]:
        gone = self._gone or ()
        kept = [place for place in self._places[self._head :] if place not in gone]
        return iter(sorted(kept + (self._returned or [])))

    def __contains__(self, place: int) -> bool:
        if self._returned and place in self._returned:
            return True
        if self._gone and place in self._gone:
            return False
        index = bisect_left(self._places, place, lo=self._head)
        return index < len(self._places) and self._places[index] == place

    def _skip_gone(self) -> None:
        gone = self._gone
        while gone and self._head < len(self._places) and self._places[self._head] in gone:
            gone.discard(self._places[self._head])
            self._head += 1

    def _pop(self) -> int:
        place = self.peek()
        self._count -= 1
        if self._returned and self._returned[0] == place:
            return heappop(self._returned)
        self._head += 1
        if self._head >= _CUT_MIN and self._head * 2 > len(self._places):
            self._cut()
        return place

    def _cut(self) -> None:
        del self._places[: self._head]
        self._head = 0
