"""Whose a data directory is, copies of it, and what is checked in it."""

import errno
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fila.core.effects import PutConfig
from fila.core.records import Entry
from fila.errors import DataDirectoryError, StorageError
from fila.model import Spec
from fila.storage import directory, keys, rocksdb
from fila.storage.engine import Engine
from fila.storage.records import pack_entry
from fila.storage.rocksdb import RocksEngine, RocksStorage
from fila.storage.verify import verify
from tests.contract.storage_samples import (
    ID_HIGH,
    body,
    everything,
    put_messages,
    put_queue,
    state,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


def fill(path: Path) -> object:
    store = RocksStorage(path)
    store.write(everything())
    held = state(store)
    store.close()
    return held


def test_a_second_opening_is_refused_until_the_first_ends(path: Path) -> None:
    store = RocksStorage(path)
    with pytest.raises(DataDirectoryError) as refused:
        RocksStorage(path)
    assert str(refused.value) == f"data directory {path} is in use: another server holds it"
    store.close()
    RocksStorage(path).close()


@pytest.mark.parametrize("name", ["notes.txt", "CURRENT", "store"])
def test_a_directory_of_something_else_is_refused_and_left_alone(path: Path, name: str) -> None:
    path.mkdir()
    (path / name).write_text("mine")
    with pytest.raises(DataDirectoryError, match="not empty and not Fila's"):
        RocksStorage(path)
    assert [file.name for file in path.iterdir()] == [name]


def test_a_fresh_filesystem_counts_as_empty(path: Path) -> None:
    (path / "lost+found").mkdir(parents=True)
    RocksStorage(path).close()


@pytest.mark.parametrize("line", ["", "a file\n", "fila data directory, format x\n", "\xff"])
def test_a_marker_that_is_not_ours_is_refused(path: Path, line: str) -> None:
    path.mkdir()
    (path / "FORMAT").write_text(line, encoding="latin-1")
    with pytest.raises(DataDirectoryError, match="not Fila's"):
        RocksStorage(path)


def test_a_newer_format_is_refused_and_left_alone(path: Path) -> None:
    fill(path)
    (path / "FORMAT").write_text("fila data directory, format 2\n")
    before = sorted(file.name for file in path.rglob("*"))
    with pytest.raises(DataDirectoryError, match="a newer Fila wrote it"):
        RocksStorage(path)
    assert sorted(file.name for file in path.rglob("*")) == before


def test_an_older_format_is_upgraded_step_by_step(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)

    def upgrade(name: str) -> object:
        def run(engine: Engine) -> None:
            batch = engine.batch()
            batch.put(keys.meta(name), name.encode())
            engine.apply(batch)

        return run

    monkeypatch.setattr(directory, "FORMAT_VERSION", 3)
    monkeypatch.setattr(rocksdb, "UPGRADES", {1: upgrade("one"), 2: upgrade("two")})
    store = RocksStorage(path)
    assert [store._engine.get(keys.meta(name)) for name in ("one", "two")] == [b"one", b"two"]
    store.close()
    assert directory.read_format(path) == 3
    monkeypatch.setattr(rocksdb, "UPGRADES", {})
    RocksStorage(path).close()


def test_a_place_that_can_not_be_written_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "below"):
        with pytest.raises(DataDirectoryError) as refused:
            RocksStorage(path)
        assert str(path) in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_copy_taken_while_running_is_a_data_directory(path: Path, tmp_path: Path) -> None:
    store = RocksStorage(path)
    store.write(everything())
    held = state(store)
    store.checkpoint(tmp_path / "backups" / "today")
    store.write([PutConfig("later", "x")])

    copy = RocksStorage(tmp_path / "backups" / "today")
    assert state(copy) == held
    assert copy.epoch == 2
    copy.close()
    assert verify(tmp_path / "backups" / "today").ok
    store.close()


def test_a_copy_never_goes_over_something_else(path: Path, tmp_path: Path) -> None:
    store = RocksStorage(path)
    with pytest.raises(StorageError, match="exists already"):
        store.checkpoint(tmp_path)
    store.close()


def test_a_copy_that_failed_is_in_nobodys_way(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RocksStorage(path)
    store.write(everything())

    def fail(_path: Path, _version: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(directory, "write_format", fail)
        with pytest.raises(StorageError, match="No space left"):
            store.checkpoint(tmp_path / "copy")
    store.checkpoint(tmp_path / "copy")
    store.close()

    assert verify(tmp_path / "copy").ok


def test_on_a_full_disk_neither_a_copy_nor_a_clean_up_is_begun_that_would_end_all_writing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RocksStorage(path)
    store.write(everything())

    with monkeypatch.context() as full:
        full.setattr(RocksStorage, "_left_on_disk", lambda _: 1000)
        with pytest.raises(StorageError, match="the disk has 1000 left; free some space"):
            store.checkpoint(tmp_path / "copy")
        with pytest.raises(StorageError, match="the disk has 1000 left; free some space"):
            store.reclaim()
    assert not (tmp_path / "copy").exists()

    store.reclaim()
    store.checkpoint(tmp_path / "copy")
    store.close()
    assert verify(tmp_path / "copy").ok


def test_a_store_is_closed_when_its_copy_is_complete(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RocksStorage(path)
    store.write(everything())
    begun, closing = threading.Event(), threading.Event()
    copy, sync = RocksEngine.checkpoint, RocksStorage.sync

    def copy_for_long(engine: RocksEngine, target: Path, room: int) -> None:
        begun.set()
        assert closing.wait(30)
        copy(engine, target, room)

    def sync_at_the_end(closed: RocksStorage) -> None:
        sync(closed)
        closing.set()

    monkeypatch.setattr(RocksEngine, "checkpoint", copy_for_long)
    with ThreadPoolExecutor(1) as elsewhere:
        done = elsewhere.submit(store.checkpoint, tmp_path / "copy")
        assert begun.wait(30)
        monkeypatch.setattr(RocksStorage, "sync", sync_at_the_end)
        store.close()
        done.result(30)

    assert verify(tmp_path / "copy").ok
    with pytest.raises(StorageError, match="closed"):
        store.checkpoint(tmp_path / "late")


def test_verify_counts_what_is_there(path: Path) -> None:
    fill(path)
    report = verify(path)
    assert report.ok, report.problems
    assert report.format_version == 1
    assert report.records == {
        "meta": 1,
        "partition": 1,
        "queue": 2,
        "config": 1,
        "message": 3,
        "entry": 3,
        "progress": 2,
        "outcome": 1,
        "key_weight": 1,
        "meta_copy": 1,
    }


def test_verify_changes_nothing(path: Path) -> None:
    held = fill(path)
    before = {file: file.read_bytes() for file in path.rglob("*.sst")}
    verify(path)
    verify(path)
    assert {file: file.read_bytes() for file in path.rglob("*.sst")} == before
    store = RocksStorage(path)
    assert state(store) == held
    assert store.epoch == 2
    store.close()


def test_verify_does_not_look_into_a_running_servers_directory(path: Path) -> None:
    store = RocksStorage(path)
    with pytest.raises(DataDirectoryError, match="another server"):
        verify(path)
    store.close()


def test_verify_needs_a_data_directory(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match="no data directory"):
        verify(tmp_path)
    with pytest.raises(DataDirectoryError, match="no data directory"):
        verify(tmp_path / "nothing")


ENTRY, MESSAGE, PROGRESS = (
    keys.message(table, 1, 2)
    for table in (keys.Table.ENTRY, keys.Table.MESSAGE, keys.Table.PROGRESS)
)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (ENTRY, b"junk", "entry of message 2 in partition 1: the checksum is wrong"),
        (
            ENTRY,
            pack_entry(Entry(2, ID_HIGH, Spec("another"), accepted_at_ns=1_000)),
            "entry of message 2 in partition 1: its message tells consumers something else",
        ),
        (ENTRY, None, "message of message 2 in partition 1: the message has no entry"),
        (MESSAGE, None, "entry of message 2 in partition 1: the message itself is not there"),
        (MESSAGE, b"\x0a\x02no", "message of message 2 in partition 1: it is no message"),
        (MESSAGE, b"\xff", "message of message 2 in partition 1: it is no message"),
        (PROGRESS, b"", "progress of message 2 in partition 1: the checksum is wrong"),
        (keys.partition(1), None, "queue b'orders': there is no partition 1"),
        (keys.queue("orders"), b"x", "queue b'orders': the checksum is wrong"),
        (keys.meta("counters"), b"x", "meta b'counters': the checksum is wrong"),
        (b"\x77key", b"x", "key 776b6579: no table has such keys"),
        (b"\x05\x00", b"x", "entry b'\\x00': the key is malformed"),
    ],
)
def test_verify_names_what_does_not_fit(
    path: Path, key: bytes, value: bytes | None, problem: str
) -> None:
    fill(path)
    change(path, key, value)
    report = verify(path)
    assert not report.ok
    assert any(named.startswith(problem) for named in report.problems), report.problems


def test_verify_names_no_more_problems_than_anyone_reads(path: Path) -> None:
    store = RocksStorage(path)
    store.write([*put_queue(), put_messages([body(b"")] * 1500)])
    batch = store._engine.batch()
    batch.delete_range(*keys.partition_range(keys.Table.ENTRY, 1))
    store._engine.apply(batch)
    store.close()
    report = verify(path)
    assert report.problem_count == 1500
    assert len(report.problems) == 1000


def change(path: Path, key: bytes, value: bytes | None) -> None:
    """Write past the port."""
    engine = rocksdb.RocksEngine(path / directory.STORE)
    batch = engine.batch()
    if value is None:
        batch.delete(key)
    else:
        batch.put(key, value)
    engine.apply(batch)
    engine.close()
