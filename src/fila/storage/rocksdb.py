"""The store on disk: RocksDB below the port. The only module that knows `rocksdict`.

A write goes to the log without waiting for the disk: a killed process loses nothing then, a power
cut what was not synced. `sync` waits; it lets other threads run meanwhile, which `write` does not.
"""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    Snapshot,
    WriteBatch,
)

from fila.errors import CorruptRecordError, DataDirectoryError, StorageError
from fila.storage import directory, keys, rebuild
from fila.storage.engine import Batch, Engine
from fila.storage.store import Store

_log = logging.getLogger(__name__)

T = TypeVar("T")
_MIB = 1 << 20
# Keys are compared as numbers of so many bytes when a way around damage is looked for.
_LEAP_BYTES = 40

# What brings a store from a format to the next; each may run twice, after a crash in between.
UPGRADES: dict[int, Callable[[Engine], None]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RocksOptions:
    """How much memory the store may take."""

    write_buffer_bytes: int = 64 * _MIB
    write_buffers: int = 3
    cache_bytes: int = 32 * _MIB


def _database_options(options: RocksOptions) -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_size(16 * 1024)
    blocks.set_block_cache(Cache(options.cache_bytes))
    blocks.set_bloom_filter(10, False)
    blocks.set_format_version(5)
    database = Options(raw_mode=True)
    database.create_if_missing(True)
    database.set_block_based_table_factory(blocks)
    database.set_compression_type(DBCompressionType.lz4())
    database.set_write_buffer_size(options.write_buffer_bytes)
    database.set_max_write_buffer_number(options.write_buffers)
    # One thread writes: nothing is gained by preparing for several.
    database.set_allow_concurrent_memtable_write(False)
    # A power cut leaves a log that ends anywhere; all before that is good.
    database.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    database.set_max_background_jobs(2)
    database.set_keep_log_file_num(5)
    database.set_max_log_file_size(4 * _MIB)
    database.set_stats_dump_period_sec(0)
    database.set_stats_persist_period_sec(0)
    # A queue leaves many deletions where it was read: merge them away early.
    database.add_compact_on_deletion_collector_factory(4096, 2048, 0.5)
    return database


class RocksEngine:
    """One open database."""

    def __init__(
        self,
        path: Path,
        options: RocksOptions | None = None,
        *,
        read_only: bool = False,
        on_damage: Callable[[], None] | None = None,
    ) -> None:
        self._db = _open(path, options or RocksOptions(), read_only=read_only)
        self._on_damage = on_damage
        self._damaged: set[bytes] = set()

    @property
    def damage_count(self) -> int:
        """Stretches that could not be read since this was opened."""
        return len(self._damaged)

    def batch(self) -> Batch:
        """An empty batch."""
        return WriteBatch(raw_mode=True)

    def apply(self, batch: Batch) -> None:
        """Write a batch to the log and the tables in memory."""
        assert isinstance(batch, WriteBatch)
        try:
            _translated("write", partial(self._db.write, batch))
        except CorruptRecordError:
            # Merging files in the background, RocksDB met damage and writes no more.
            if self._on_damage is not None:
                self._on_damage()
            raise

    def sync(self) -> None:
        """Wait until the log is on disk."""
        _translated("sync", partial(self._db.flush_wal, True))

    def get(self, key: bytes) -> bytes | None:
        """One value."""
        value: bytes | None = _translated("read", partial(self._db.get, key))
        return value

    def get_many(self, wanted: list[bytes]) -> list[bytes | None]:
        """Many values."""
        get: Callable[..., Any] = self._db.get
        try:
            values: list[bytes | None] = _translated("read", partial(get, wanted))
        except CorruptRecordError:
            values = [self._get_if_whole(key) for key in wanted]
        return values

    def scan(self, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """A range in order."""
        snapshot = self._db.snapshot()
        start: bytes | None = begin
        while start is not None:
            last = None
            items: Iterator[Any] = snapshot.items(from_key=start, read_opt=_until(end))
            for last, value in items:
                yield last, value
            start = self._resume(snapshot, start if last is None else last + b"\x00", end)

    def first(self, begin: bytes, end: bytes) -> bytes | None:
        """The least key of a range."""
        return self._resume(self._db.snapshot(), begin, end)

    def last(self, begin: bytes, end: bytes) -> bytes | None:
        """The greatest key of a range."""
        found = self._db.iter(_until(end))
        found.seek_to_last()
        if not found.valid():
            self._check(found, begin)
            return None
        key = _key(found)
        return key if key >= begin else None

    def checkpoint(self, target: Path) -> None:
        """A consistent copy."""
        _translated("copy", partial(Checkpoint(self._db).create_checkpoint, str(target)))

    def close(self) -> None:
        """Let go."""
        _translated("close", self._db.close)

    def _get_if_whole(self, key: bytes) -> bytes | None:
        try:
            return self.get(key)
        except CorruptRecordError as error:
            self._note_damage(key, error)
            return None

    def _resume(self, snapshot: Snapshot, start: bytes, end: bytes) -> bytes | None:
        """The first key from `start` on that can be read; None at the end.

        An iterator ends at damage as it does at the end, so that each end must be looked at.
        """
        found = snapshot.iter(_until(end))
        found.seek(start)
        if found.valid():
            return _key(found)
        if self._check(found, start):
            return None
        landed = _leap(snapshot, start, end)
        return None if landed is None else _key(landed)

    def _check(self, found: RdictIter, where: bytes) -> bool:
        """Whether an iterator is at its end, rather than at damage."""
        try:
            _translated("read", found.status)
        except CorruptRecordError as error:
            self._note_damage(where, error)
            return False
        return True

    def _note_damage(self, where: bytes, error: CorruptRecordError) -> None:
        if where in self._damaged:
            return
        self._damaged.add(where)
        _log.warning("records are damaged from %s on: %s", keys.describe(where), error)
        if self._on_damage is not None:
            self._on_damage()


class RocksStorage(Store):
    """The port on disk."""

    def __init__(self, path: Path, *, options: RocksOptions | None = None) -> None:
        self._path = path
        version = directory.claim(path)
        self._lock = directory.Lock(path)
        try:
            lost = _rebuild(path) if directory.is_damaged(path) else 0
            self._rocks = self._open_store(path, version, options)
        except BaseException:
            self._lock.release()
            raise
        super().__init__(self._rocks)
        self._aside.count += lost

    def free_bytes(self) -> int:
        """What the filesystem has left for us."""
        try:
            found = os.statvfs(self._path)
        except OSError as error:
            raise StorageError(f"can't see how full the disk is: {error}") from error
        return found.f_bavail * found.f_frsize

    def checkpoint(self, target: Path) -> None:
        """Write a consistent copy, a data directory like this one."""
        if target.exists():
            raise DataDirectoryError(f"{target} exists already; name a folder that does not")
        try:
            target.mkdir(parents=True)
            self._rocks.checkpoint(target / directory.STORE)
            directory.write_format(target, directory.FORMAT_VERSION)
        except OSError as error:
            raise StorageError(f"can't copy to {target}: {error}") from error

    def close(self) -> None:
        """Sync and let go."""
        try:
            self.sync()
            self._rocks.close()
        finally:
            self._lock.release()

    @staticmethod
    def _open_store(path: Path, version: int, options: RocksOptions | None) -> RocksEngine:
        directory.finish_swap(path)
        store = path / directory.STORE
        engine = RocksEngine(store, options, on_damage=partial(directory.mark_damaged, path))
        for older in range(version, directory.FORMAT_VERSION):
            UPGRADES[older](engine)
            engine.sync()
            directory.write_format(path, older + 1)
        return engine


def _rebuild(path: Path) -> int:
    """Replace a damaged store by what can be read of it; how many records were set aside."""
    _log.warning("the store in %s is damaged; copying what can be read", path)
    directory.finish_swap(path)
    directory.clear_rebuilt(path)
    source = RocksEngine(path / directory.STORE, read_only=True)
    target = RocksEngine(path / directory.REBUILT)
    lost = rebuild.copy(source, target)
    target.close()
    source.close()
    directory.put_rebuilt_in_place(path)
    return lost + source.damage_count


def _until(end: bytes) -> ReadOptions:
    options = ReadOptions()
    options.set_iterate_upper_bound(end)
    return options


def _key(found: RdictIter) -> bytes:
    key: bytes = found.key()
    return key


def _leap(snapshot: Snapshot, start: bytes, end: bytes) -> RdictIter | None:
    """An iterator at the first readable key behind damage at `start`; None if there is none.

    Doubles its leap until it lands on whole ground, then closes in on where that begins.
    """
    number = int.from_bytes(start[:_LEAP_BYTES].ljust(_LEAP_BYTES, b"\x00"), "big")
    limit = int.from_bytes(end.ljust(_LEAP_BYTES, b"\x00"), "big")
    bad, good = number, limit
    leap = 1
    while number + leap < limit:
        if _is_whole(snapshot, number + leap, end):
            good = number + leap
            break
        bad = number + leap
        leap *= 2
    while good - bad > 1:
        middle = (bad + good) // 2
        if _is_whole(snapshot, middle, end):
            good = middle
        else:
            bad = middle
    found = _landed(snapshot, good, end)
    return found if found.valid() else None


def _landed(snapshot: Snapshot, number: int, end: bytes) -> RdictIter:
    found = snapshot.iter(_until(end))
    found.seek(number.to_bytes(_LEAP_BYTES, "big"))
    return found


def _is_whole(snapshot: Snapshot, number: int, end: bytes) -> bool:
    found = _landed(snapshot, number, end)
    if found.valid():
        return True
    try:
        _translated("read", found.status)
    except CorruptRecordError:
        return False
    return True


def _open(path: Path, options: RocksOptions, *, read_only: bool) -> Rdict:
    access = AccessType.read_only(False) if read_only else AccessType.read_write()
    try:
        return Rdict(str(path), options=_database_options(options), access_type=access)
    # rocksdict raises nothing narrower.
    except Exception as error:
        raise DataDirectoryError(
            f"the store {path} can't be opened: {error}; restore a backup if it is damaged"
        ) from error


def _translated(what: str, call: Callable[[], T]) -> T:
    try:
        return call()
    # rocksdict raises nothing narrower.
    except Exception as error:
        kind = CorruptRecordError if str(error).startswith("Corruption") else StorageError
        raise kind(f"the store failed to {what}: {error}") from error
