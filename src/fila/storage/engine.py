"""What a store needs beneath it: an ordered set of keys. Bytes in, bytes out, nothing of Fila."""

from collections.abc import Iterator
from typing import Protocol


class Batch(Protocol):
    """Changes that take effect together, in order."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""

    def delete(self, key: bytes) -> None:
        """Remove a record that need not be there."""

    def delete_range(self, begin: bytes, end: bytes) -> None:
        """Remove all records from `begin` up to but not at `end`."""


class Reader(Protocol):
    """Reading. Failures are `StorageError`s, but what is damaged on disk is only noted."""

    @property
    def damage_count(self) -> int:
        """Stretches that could not be read since this was opened."""

    def get(self, key: bytes) -> bytes | None:
        """One value."""

    def get_many(self, wanted: list[bytes]) -> list[bytes | None]:
        """Many values; a damaged one is None."""

    def scan(self, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All from `begin` up to but not at `end`, in order, as they were at the first step.

        Damaged stretches are left out.
        """

    def first(self, begin: bytes, end: bytes) -> bytes | None:
        """The least key of a range."""

    def last(self, begin: bytes, end: bytes) -> bytes | None:
        """The greatest key of a range."""


class Engine(Reader, Protocol):
    """Reading and writing."""

    def batch(self) -> Batch:
        """An empty batch."""

    def apply(self, batch: Batch) -> None:
        """Make a batch's changes, all or none. The batch is used up."""

    def sync(self) -> None:
        """Return when all batches applied before the call are on disk."""
