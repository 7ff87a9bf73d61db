"""The store on disk: RocksDB below the port. The only module that knows `rocksdict`.

A write goes to the log without waiting for the disk: a killed process loses nothing then, a power
cut what was not synced. `sync` waits; it lets other threads run meanwhile, which `write` does not.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
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
    WriteBatch,
)

from fila.errors import CorruptRecordError, DataDirectoryError, StorageError
from fila.storage import directory, keys, rebuild
from fila.storage.engine import Batch, Engine
from fila.storage.store import Store

_log = logging.getLogger(__name__)

T = TypeVar("T")
_MIB = 1 << 20
_MERGE_BYTES_MAX = 256 * _MIB
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
    # Most messages are gone before they come to the third level; what does is worth packing.
    database.set_compression_per_level(
        [DBCompressionType.none()] * 2 + [DBCompressionType.lz4()] * 5
    )
    database.set_write_buffer_size(options.write_buffer_bytes)
    database.set_max_write_buffer_number(options.write_buffers)
    # One thread writes: nothing is gained by preparing for several.
    database.set_allow_concurrent_memtable_write(False)
    # A power cut leaves a log that ends anywhere; all before that is good.
    database.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    database.set_max_background_jobs(2)
    # What a merge may take up while its inputs are still there: `free_bytes` keeps it back.
    database.set_max_compaction_bytes(_MERGE_BYTES_MAX)
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
        self._stopped = False

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
        # The fast iterator ends at damage as it does at the end; this one, with the same view of
        # the store, tells the two apart, and goes on behind the damage.
        careful = self._iterator(end)
        items: Iterator[Any] = self._db.items(from_key=begin, read_opt=_until(end))
        last = None
        for last, value in items:
            yield last, value
        found = self._seek(careful, begin if last is None else last + b"\x00", end)
        while found is not None:
            while found.valid():
                last = _key(found)
                yield last, found.value()
                found.next()
            assert last is not None
            found = self._seek(self._iterator(end), last + b"\x00", end)

    def first(self, begin: bytes, end: bytes) -> bytes | None:
        """The least key of a range."""
        found = self._seek(self._iterator(end), begin, end)
        return None if found is None else _key(found)

    def last(self, begin: bytes, end: bytes) -> bytes | None:
        """The greatest key of a range."""
        found = self._iterator(end)
        found.seek_to_last()
        if not found.valid():
            self._check(found, begin)
            return None
        key = _key(found)
        return key if key >= begin else None

    @property
    def memory_bytes(self) -> int:
        """What is in the log, and in no table yet."""
        return self._property("rocksdb.cur-size-all-mem-tables")

    @property
    def merge_bytes(self) -> int:
        """What a merge of tables may take up before it gives anything back."""
        return min(self._property("rocksdb.total-sst-files-size"), _MERGE_BYTES_MAX)

    def reclaim(self, room: int) -> None:
        """Drop what is deleted: from memory, and from the tables if they fit into the room."""
        self._check_flush_fits(room)
        _translated("flush", self._db.flush)
        if self._property("rocksdb.total-sst-files-size") < room:
            _translated("merge", partial(self._db.compact_range, None, None))

    def stop_merging(self) -> None:
        """Break off what runs in the background; nothing is lost by it."""
        self._stopped = True
        _translated("stop", partial(self._db.cancel_all_background, True))

    def _property(self, name: str) -> int:
        return self._db.property_int_value(name) or 0

    def checkpoint(self, target: Path, room: int) -> None:
        """A consistent copy, for which what is in memory is written out into the room."""
        self._check_flush_fits(room)
        _translated("copy", partial(Checkpoint(self._db).create_checkpoint, str(target)))

    def _check_flush_fits(self, room: int) -> None:
        """A flush that fails would be the end: after one RocksDB writes no more."""
        if self.memory_bytes + _MIB > room:
            raise StorageError(
                f"{self.memory_bytes} bytes must be written out first, and the disk has {room} "
                "left; free some space"
            )

    def close(self) -> None:
        """Let go."""
        try:
            _translated("close", self._db.close)
        except StorageError:
            # Once stopped, it writes no tables either; the log has what is in memory.
            if not self._stopped:
                raise

    def _get_if_whole(self, key: bytes) -> bytes | None:
        try:
            return self.get(key)
        except CorruptRecordError as error:
            self._note_damage(key, error)
            return None

    def _iterator(self, end: bytes) -> RdictIter:
        return self._db.iter(_until(end))

    def _seek(self, found: RdictIter, start: bytes, end: bytes) -> RdictIter | None:
        """An iterator at the first key from `start` on that can be read; None at the end."""
        found.seek(start)
        if found.valid():
            return found
        return None if self._check(found, start) else self._leap(start, end)

    def _leap(self, start: bytes, end: bytes) -> RdictIter | None:
        """An iterator behind damage at `start`; None if there is nothing more.

        Doubles its leap until it lands on whole ground, then closes in on where that begins.
        """
        bad = int.from_bytes(start[:_LEAP_BYTES].ljust(_LEAP_BYTES, b"\x00"), "big")
        good = int.from_bytes(end.ljust(_LEAP_BYTES, b"\x00"), "big")
        leap = 1
        while bad + leap < good:
            if self._is_whole(bad + leap, end):
                good = bad + leap
                break
            bad += leap
            leap *= 2
        while good - bad > 1:
            middle = (bad + good) // 2
            if self._is_whole(middle, end):
                good = middle
            else:
                bad = middle
        found = self._iterator(end)
        found.seek(good.to_bytes(_LEAP_BYTES, "big"))
        return found if found.valid() else None

    def _is_whole(self, number: int, end: bytes) -> bool:
        """Whether reading can go on at a key, as a number."""
        # An iterator that met damage may take all else for damaged too: a new one each time.
        found = self._iterator(end)
        found.seek(number.to_bytes(_LEAP_BYTES, "big"))
        if found.valid():
            return True
        try:
            _translated("read", found.status)
        except CorruptRecordError:
            return False
        return True

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
        # Only the text: the error holds an iterator, and whoever keeps the log would keep that.
        _log.warning("records are damaged from %s on: %s", keys.describe(where), str(error))
        if self._on_damage is not None:
            self._on_damage()


class RocksStorage(Store):
    """The port on disk."""

    def __init__(self, path: Path, *, options: RocksOptions | None = None) -> None:
        self._path = path
        self._reclaiming = Lock()
        self._copying = Lock()
        self._closed = False
        version = directory.claim(path)
        self._lock = directory.Lock(path)
        try:
            lost = _rebuild(path) if directory.is_damaged(path) else 0
            self._rocks = self._open_store(path, version, options)
            try:
                super().__init__(self._rocks)
            except BaseException:
                self._rocks.close()
                raise
        except BaseException:
            self._lock.release()
            raise
        self._aside.count += lost

    def free_bytes(self) -> int:
        """What may still be written.

        Less than the filesystem has left: what is in memory will go there a second time, as a
        table, and a merge needs room for its output while its inputs are still there.
        """
        return self._left_on_disk() - self._rocks.memory_bytes - self._rocks.merge_bytes

    def reclaim(self) -> None:
        """Give the space of deleted messages back to the filesystem."""
        with self._reclaiming:
            if self._has_garbage and not self._closed:
                self._has_garbage = False
                try:
                    self._rocks.reclaim(self._left_on_disk())
                except StorageError:
                    self._has_garbage = True
                    raise

    def _left_on_disk(self) -> int:
        try:
            found = os.statvfs(self._path)
        except OSError as error:
            raise StorageError(f"can't see how full the disk is: {error}") from error
        return found.f_bavail * found.f_frsize

    def checkpoint(self, target: Path) -> None:
        """Write a consistent copy, a data directory like this one."""
        with self._copying:
            if self._closed:
                raise StorageError(f"can't copy to {target}: the store is closed")
            try:
                target.mkdir(parents=True)
            except FileExistsError:
                raise DataDirectoryError(
                    f"{target} exists already; name a folder that does not"
                ) from None
            except OSError as error:
                raise StorageError(f"can't copy to {target}: {error}") from error
            try:
                self._rocks.checkpoint(target / directory.STORE, self._left_on_disk())
                directory.write_format(target, directory.FORMAT_VERSION)
            except OSError as error:
                _remove(target)
                raise StorageError(f"can't copy to {target}: {error}") from error
            except StorageError:
                _remove(target)
                raise

    def close(self) -> None:
        """Sync and let go; a second time does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self.sync()
            if self._reclaiming.locked():
                # A merge in another thread ends early, and only then is there nobody left.
                self._rocks.stop_merging()
            # A copy is completed first.
            with self._reclaiming, self._copying:
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


def _remove(unfinished: Path) -> None:
    """A copy that failed must be in nobody's way, least of all in that of a second attempt."""
    shutil.rmtree(unfinished, ignore_errors=True)


def _until(end: bytes) -> ReadOptions:
    options = ReadOptions()
    options.set_iterate_upper_bound(end)
    return options


def _key(found: RdictIter) -> bytes:
    key: bytes = found.key()
    return key


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
