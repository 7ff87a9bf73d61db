"""What falls due when, on one clock. Setting and cancelling are O(1) and leave nothing behind.

Items lie in buckets of some milliseconds. A bucket is looked into only when its time has come, so
an item is handed out exactly when it is due, never before.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

# About 8 ms: few buckets for a minute of leases, few items in each to look through when it comes.
_BUCKET_SHIFT = 23


class Timers(Generic[T]):
    """Items by the time at which they are due."""

    __slots__ = ("_buckets", "_count", "_known", "_numbers")

    def __init__(self) -> None:
        self._buckets: dict[int, dict[T, int]] = {}
        # A heap of the buckets' numbers, each once; those of emptied buckets are skipped.
        self._numbers: list[int] = []
        self._known: set[int] = set()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def set(self, item: T, due_ns: int) -> None:
        """Make an item due; it must not be waiting already."""
        number = due_ns >> _BUCKET_SHIFT
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = {}
            if number not in self._known:
                self._known.add(number)
                heappush(self._numbers, number)
        bucket[item] = due_ns
        self._count += 1

    def set_all(self, items: Iterable[T], due_ns: int) -> None:
        """Make items due at one time; none may be waiting already."""
        for item in items:
            self.set(item, due_ns)

    def cancel(self, item: T, due_ns: int) -> None:
        """Forget an item that was set for this time, if it still waits."""
        number = due_ns >> _BUCKET_SHIFT
        bucket = self._buckets.get(number)
        if bucket is not None and bucket.pop(item, None) is not None:
            self._count -= 1
            if not bucket:
                del self._buckets[number]

    def take_due(self, now_ns: int, limit: int) -> list[T]:
        """Remove and return what is due, earliest first, at most `limit`."""
        due: list[T] = []
        while len(due) < limit:
            number = self._first_number()
            if number is None or number > now_ns >> _BUCKET_SHIFT:
                break
            bucket = self._buckets[number]
            ready = sorted((at, index) for index, at in enumerate(bucket.values()) if at <= now_ns)
            if not ready:
                break
            items = list(bucket)
            for at, index in ready[: limit - len(due)]:
                due.append(items[index])
                self.cancel(items[index], at)
        return due

    def next_due_ns(self) -> int | None:
        """When to look again: never later than the first item is due."""
        number = self._first_number()
        if number is None:
            return None
        return min(self._buckets[number].values())

    def _first_number(self) -> int | None:
        numbers = self._numbers
        while numbers and numbers[0] not in self._buckets:
            self._known.discard(heappop(numbers))
        return numbers[0] if numbers else None
