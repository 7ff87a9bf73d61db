"""A store that is gone with the process, and can lose what a power cut would have taken.

It holds the same bytes under the same keys as the one on disk, so that what runs over it, tests
and the simulation above all, goes through the real records and the real recovery.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fila.errors import StorageError, UnsupportedError
from fila.storage.engine import Batch
from fila.storage.store import Store

_PLENTY = 1 << 40

# (key, value), (key, None) to delete, or (begin, end) of a range to delete with `end` third.
_Change = tuple[bytes, bytes | None, bytes | None]


class _MemoryBatch:
    """Changes in order."""

    def __init__(self) -> None:
        self.changes: list[_Change] = []

    def put(self, key: bytes, value: bytes) -> None:
        self.changes.append((key, value, None))

    def delete(self, key: bytes) -> None:
        self.changes.append((key, None, None))

    def delete_range(self, begin: bytes, end: bytes) -> None:
        self.changes.append((begin, None, end))


class _Tables:
    """Keys and values, a dictionary for each first byte, so that a range looks at few keys."""

    def __init__(self) -> None:
        self._tables: dict[int, dict[bytes, bytes]] = {}

    def copy(self) -> _Tables:
        other = _Tables()
        other._tables = {table: dict(records) for table, records in self._tables.items()}
        return other

    def get(self, key: bytes) -> bytes | None:
        return self._tables.get(key[0], {}).get(key)

    def keys(self, begin: bytes, end: bytes) -> list[bytes]:
        """The keys of a range, in no order."""
        return [
            key
            for table in range(begin[0], end[0] + 1)
            for key in self._tables.get(table, ())
            if begin <= key < end
        ]

    def apply(self, changes: list[_Change]) -> None:
        for key, value, end in changes:
            table = self._tables.setdefault(key[0], {})
            if value is not None:
                table[key] = value
            elif end is None:
                table.pop(key, None)
            else:
                for gone in self.keys(key, end):
                    del self._tables[gone[0]][gone]


class MemoryEngine:
    """What was written, and what of it a power cut would leave."""

    def __init__(self, tables: _Tables | None = None) -> None:
        self._tables = tables or _Tables()
        self._durable = self._tables.copy()
        self._unsynced: list[list[_Change]] = []
        self.open = True

    @property
    def damage_count(self) -> int:
        """Memory has no damage."""
        return 0

    @property
    def unsynced_count(self) -> int:
        """How many batches a power cut would endanger."""
        return len(self._unsynced)

    def batch(self) -> Batch:
        """An empty batch."""
        return _MemoryBatch()

    def apply(self, batch: Batch) -> None:
        """Make a batch's changes."""
        assert isinstance(batch, _MemoryBatch)
        self._check_open()
        self._tables.apply(batch.changes)
        self._unsynced.append(batch.changes)

    def sync(self) -> None:
        """All batches applied before the call are safe."""
        self.finish_sync(self.unsynced_count)

    def finish_sync(self, count: int) -> None:
        """So many of the unsynced batches are safe."""
        self._check_open()
        for changes in self._unsynced[:count]:
            self._durable.apply(changes)
        del self._unsynced[:count]

    def survivors(self, kept: int) -> _Tables:
        """What is on disk when the power fails after so many unsynced batches went there."""
        tables = self._durable.copy()
        for changes in self._unsynced[:kept]:
            tables.apply(changes)
        return tables

    def get(self, key: bytes) -> bytes | None:
        """One value."""
        self._check_open()
        return self._tables.get(key)

    def get_many(self, wanted: list[bytes]) -> list[bytes | None]:
        """Many values."""
        self._check_open()
        return [self._tables.get(key) for key in wanted]

    def scan(self, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """A range in order."""
        self._check_open()
        tables = self._tables
        pairs = [(key, tables.get(key)) for key in sorted(tables.keys(begin, end))]
        yield from ((key, value) for key, value in pairs if value is not None)

    def first(self, begin: bytes, end: bytes) -> bytes | None:
        """The least key of a range."""
        return min(self._tables.keys(begin, end), default=None)

    def last(self, begin: bytes, end: bytes) -> bytes | None:
        """The greatest key of a range."""
        return max(self._tables.keys(begin, end), default=None)

    def _check_open(self) -> None:
        if not self.open:
            raise StorageError("the store is closed")


class MemoryStorage(Store):
    """The port in memory."""

    def __init__(self, engine: MemoryEngine | None = None) -> None:
        self._memory = engine or MemoryEngine()
        # What `free_bytes` answers; a test makes the disk full here.
        self.free = _PLENTY
        super().__init__(self._memory)

    @property
    def unsynced_count(self) -> int:
        """Batches written that no sync has covered."""
        return self._memory.unsynced_count

    def begin_sync(self) -> int:
        """Start a sync that takes its time; what is written from here on is not covered."""
        return self._memory.unsynced_count

    def end_sync(self, covered: int) -> None:
        """That sync is done. No other may have ended in between."""
        self._memory.finish_sync(covered)

    def crash(self, *, power_cut: bool = False, kept: int = 0) -> MemoryStorage:
        """End here, and open what is left of it.

        A killed process leaves everything it wrote. A power cut leaves what was synced, and
        `kept` of the batches behind that, which happened to reach the disk.
        """
        survivors = self._memory.survivors(kept if power_cut else self.unsynced_count)
        self._memory.open = False
        return MemoryStorage(MemoryEngine(survivors))

    def free_bytes(self) -> int:
        """What a test says is left."""
        return self.free

    def reclaim(self) -> None:
        """What is deleted takes up nothing here."""

    def checkpoint(self, target: Path) -> None:
        """There is nothing on disk to copy."""
        raise UnsupportedError(f"a store in memory can't be copied to {target}")

    def close(self) -> None:
        """Sync and let go; opening the same engine again finds everything."""
        if self._memory.open:
            self.sync()
            self._memory.open = False
