"""The store on disk: RocksDB below the port. The only module that knows `rocksdict`.

A write goes to the log without waiting for the disk: a killed process loses nothing then, a power
cut what was not synced. `sync` waits; it lets other threads run meanwhile, which `write` does not.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
)

from fila.errors import CorruptRecordError, DataDirectoryError, StorageError
from fila.storage import directory
from fila.storage.engine import Batch
from fila.storage.store import Store

T = TypeVar("T")
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RocksOptions:
    """How much memory the store may take."""

    write_buffer_bytes: int = 64 * _MIB
    write_buffers: int = 3
    cache_bytes: int = 32 * _MIB


def rocks_options(options: RocksOptions) -> Options:
    """The settings of the database, in its own terms."""
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

    def __init__(self, path: Path, options: RocksOptions) -> None:
        self._db = _open(path, options)
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
        _translated("write", partial(self._db.write, batch))

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
        values: list[bytes | None] = _translated("read", partial(get, wanted))
        return values

    def scan(self, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """A range in order."""
        items: Iterator[Any] = self._db.items(from_key=begin, read_opt=_until(end))
        yield from items

    def first(self, begin: bytes, end: bytes) -> bytes | None:
        """The least key of a range."""
        found = self._db.iter(_until(end))
        found.seek(begin)
        return found.key() if found.valid() else None

    def last(self, begin: bytes, end: bytes) -> bytes | None:
        """The greatest key of a range."""
        found = self._db.iter(_until(end))
        found.seek_to_last()
        key: bytes | None = found.key() if found.valid() else None
        return key if key is not None and key >= begin else None

    def checkpoint(self, target: Path) -> None:
        """A consistent copy."""
        _translated("copy", partial(Checkpoint(self._db).create_checkpoint, str(target)))

    def close(self) -> None:
        """Let go."""
        _translated("close", self._db.close)


class RocksStorage(Store):
    """The port on disk."""

    def __init__(self, path: Path, *, options: RocksOptions | None = None) -> None:
        self._path = path
        directory.claim(path)
        self._rocks = RocksEngine(path / directory.STORE, options or RocksOptions())
        super().__init__(self._rocks)

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
        self.sync()
        self._rocks.close()


def _until(end: bytes) -> ReadOptions:
    options = ReadOptions()
    options.set_iterate_upper_bound(end)
    return options


def _open(path: Path, options: RocksOptions) -> Rdict:
    try:
        return Rdict(str(path), options=rocks_options(options))
    # rocksdict raises nothing narrower.
    except Exception as error:
        text = str(error)
        if "lock" in text.lower():
            raise DataDirectoryError(
                f"data directory {path.parent} is in use by another server"
            ) from error
        raise DataDirectoryError(f"data directory {path.parent} can't be opened: {text}") from error


def _translated(what: str, call: Callable[[], T]) -> T:
    try:
        return call()
    # rocksdict raises nothing narrower.
    except Exception as error:
        kind = CorruptRecordError if str(error).startswith("Corruption") else StorageError
        raise kind(f"the store failed to {what}: {error}") from error
