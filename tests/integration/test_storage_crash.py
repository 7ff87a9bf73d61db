"""The store on disk, when the process is killed and when the power fails."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fila.core.effects import DeleteMessages, Mutation
from fila.core.records import Progress, Status
from fila.errors import DataDirectoryError
from fila.storage import rocksdb
from fila.storage.rocksdb import RocksStorage
from tests.contract.storage_samples import body, put_messages, put_progress, put_queue, state

ROUNDS = 12
LEASED = Progress(status=Status.LEASED, in_dlq=False, place=1, attempts=0, delivered=True)


def batch(number: int) -> list[Mutation]:
    """Something of everything, so that half a batch would show."""
    first = 1 + 5 * number
    changes: list[Mutation] = [
        put_messages([body(b"x" * 1500)] * 5, first=first),
        put_progress({first: LEASED, first + 3: LEASED}),
        DeleteMessages(1, [first + 1]),
    ]
    return changes if number else [*put_queue(), *changes]


def log_of(path: Path) -> Path:
    """The write-ahead log in use."""
    return max((path / "store").glob("*.log"))


def written_rounds(path: Path, synced_rounds: int) -> tuple[RocksStorage, list[object], int]:
    """A store after all rounds; its states after each; the log's length at the last sync."""
    store = RocksStorage(path)
    states: list[object] = [state(store)]
    synced_bytes = log_of(path).stat().st_size
    for number in range(ROUNDS):
        store.write(batch(number))
        states.append(state(store))
        if number + 1 == synced_rounds:
            store.sync()
            synced_bytes = log_of(path).stat().st_size
    return store, states, synced_bytes


def after_power_cut(path: Path, copy: Path, length: int, tail: bytes = b"") -> object:
    """What a copy of the directory holds whose log ends at `length`."""
    shutil.copytree(path, copy)
    log = log_of(copy)
    log.write_bytes(log.read_bytes()[:length] + tail)
    store = RocksStorage(copy)
    try:
        assert store.unreadable_count == 0
        return state(store)
    finally:
        store.close()
        shutil.rmtree(copy)


def test_a_power_cut_leaves_exactly_what_was_synced(tmp_path: Path) -> None:
    for synced in range(ROUNDS + 1):
        path = tmp_path / f"data{synced}"
        store, states, length = written_rounds(path, synced)
        assert after_power_cut(path, tmp_path / "copy", length) == states[synced]
        store.close()


def test_wherever_the_log_ends_what_is_left_is_a_run_of_whole_batches(tmp_path: Path) -> None:
    path = tmp_path / "data"
    store, states, synced_bytes = written_rounds(path, 3)
    total = log_of(path).stat().st_size
    reached = set()
    for length in range(synced_bytes, total + 1, (total - synced_bytes) // 40):
        for tail in (b"", b"\x00" * 4096, b"\xa5" * 700):
            left = after_power_cut(path, tmp_path / "copy", length, tail)
            reached.add(states.index(left, 3))
    assert {3, ROUNDS - 1} <= reached
    store.close()


def test_nothing_behind_a_broken_place_in_the_log_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "data"
    store, states, synced_bytes = written_rounds(path, 3)
    log = log_of(path).read_bytes()
    for where in range(synced_bytes + 50, len(log) - 50, len(log) // 12):
        tail = bytes([log[where] ^ 0xFF]) + log[where + 1 :]
        left = after_power_cut(path, tmp_path / "copy", where, tail)
        assert left in states[3:-1]
    store.close()


def test_a_start_after_a_power_cut_goes_on_from_there(tmp_path: Path) -> None:
    path = tmp_path / "data"
    store, states, length = written_rounds(path, 5)
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    log = log_of(copy)
    log.write_bytes(log.read_bytes()[: length + 100])
    store.close()

    again = RocksStorage(copy)
    assert state(again) == states[5]
    again.write(batch(5))
    again.sync()
    again.close()
    last = RocksStorage(copy)
    assert state(last) == states[6]
    assert last.epoch == 3
    last.close()


def test_each_sync_waits_for_the_disk_and_no_write_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = rocksdb._database_options(rocksdb.RocksOptions())
    options.enable_statistics()
    monkeypatch.setattr(rocksdb, "_database_options", lambda _: options)

    def syncs() -> int:
        found = re.search(r"rocksdb\.wal\.synced COUNT : (\d+)", options.get_statistics() or "")
        assert found is not None
        return int(found[1])

    store = RocksStorage(tmp_path / "data")
    before = syncs()
    for number in range(5):
        store.write(batch(number))
    assert syncs() == before
    store.sync()
    assert syncs() == before + 1
    store.close()


WRITER = """
import sys
from pathlib import Path
from fila.storage.rocksdb import RocksStorage
from tests.integration.test_storage_crash import batch

store = RocksStorage(Path(sys.argv[1]))
for number in range(1_000_000):
    store.write(batch(number))
    print(number, flush=True)
"""


def test_a_killed_process_loses_nothing_that_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        seen = [int(writer.stdout.readline()) for _ in range(200)]
        with pytest.raises(DataDirectoryError, match="another server"):
            RocksStorage(path)
        writer.kill()
        seen += [int(line) for line in writer.stdout]

    store = RocksStorage(path)
    found = [entry.sequence for _, entry, _ in store.recover().entries]
    rounds = len(found) // 4
    # The last round may have been written and not yet told of.
    assert rounds - 1 in (seen[-1], seen[-1] + 1)
    assert found == [5 * r + n for r in range(rounds) for n in (1, 3, 4, 5)]
    assert store.unreadable_count == 0
    store.close()
