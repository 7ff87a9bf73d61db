"""What falls due when, on one clock. Setting and cancelling are O(1) and leave nothing behind.

Items lie in buckets of some milliseconds. Only the first bucket is ever looked into, and put in
order for that once; so a million items that are due at one moment are no harder than one by one,
and an item is handed out exactly when it is due, never before.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

# About 8 ms: few buckets for a minute of leases, few items in each to look through when it comes.
_BUCKET_SHIFT = 23
# Cancelled items may lie in a bucket's heap up to this number before it is made anew.
_CANCELLED_MAX = 64


class Timers(Generic[T]):
    """Items by the time at which they are due."""

    __slots__ = ("_buckets", "_count", "_heaps", "_known", "_numbers", "_ties")

    def __init__(self) -> None:
        self._buckets: dict[int, dict[T, int]] = {}
        # Heaps of the buckets that were looked into: time, a number that settles ties, item. What
        # was cancelled since is not in the bucket any more.
        self._heaps: dict[int, list[tuple[int, int, T]]] = {}
        self._ties = 0
        # A heap of the buckets' numbers, each once; those of emptied buckets are skipped.
        self._numbers: list[int] = []
        self._known: set[int] = set()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def set(self, item: T, due_ns: int) -> None:
        """Make an item due; it must not be waiting already."""
        self.set_all((item,), due_ns)

    def set_all(self, items: Sequence[T], due_ns: int) -> None:
        """Make items due at one time; none may be waiting already."""
        if not items:
            return
        number = due_ns >> _BUCKET_SHIFT
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = {}
            if number not in self._known:
                self._known.add(number)
                heappush(self._numbers, number)
        bucket.update(dict.fromkeys(items, due_ns))
        self._count += len(items)
        heap = self._heaps.get(number)
        if heap is not None:
            for item in items:
                self._ties += 1
                heappush(heap, (due_ns, self._ties, item))

    def cancel(self, item: T, due_ns: int) -> None:
        """Forget an item that was set for this time, if it still waits."""
        self.cancel_all((item,), due_ns)

    def cancel_all(self, items: Iterable[T], due_ns: int) -> None:
        """Forget items that were set for this time, those of them that still wait."""
        number = due_ns >> _BUCKET_SHIFT
        bucket = self._buckets.get(number)
        if bucket is None:
            return
        before = len(bucket)
        for item in items:
            bucket.pop(item, None)
        self._count -= before - len(bucket)
        if not bucket:
            del self._buckets[number]
            self._heaps.pop(number, None)

    def take_due(self, now_ns: int, limit: int) -> list[T]:
        """Remove and return what is due, earliest first, at most `limit`."""
        due: list[T] = []
        while len(due) < limit:
            number = self._first_number()
            if number is None or number > now_ns >> _BUCKET_SHIFT:
                break
            at_ns, _, item = self._first(number)
            if at_ns > now_ns:
                break
            due.append(item)
            self.cancel(item, at_ns)
        return due

    def next_due_ns(self) -> int | None:
        """When the first item is due."""
        number = self._first_number()
        return None if number is None else self._first(number)[0]

    def _first_number(self) -> int | None:
        numbers = self._numbers
        while numbers and numbers[0] not in self._buckets:
            self._known.discard(heappop(numbers))
        return numbers[0] if numbers else None

    def _first(self, number: int) -> tuple[int, int, T]:
        """The earliest of a bucket, which is not empty."""
        bucket = self._buckets[number]
        heap = self._heaps.get(number)
        if heap is None or len(heap) > 2 * len(bucket) + _CANCELLED_MAX:
            ties = range(self._ties, self._ties + len(bucket))
            self._ties = ties.stop
            heap = list(zip(bucket.values(), ties, bucket, strict=True))
            heapify(heap)
            self._heaps[number] = heap
        while bucket.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return heap[0]
