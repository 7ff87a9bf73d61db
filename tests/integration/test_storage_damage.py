"""Records that can't be read, one by one and by the block: set aside, named, and lived with."""

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fila.core.effects import DeleteMessages, PutConfig
from fila.core.scheduler import Scheduler
from fila.errors import CorruptRecordError, DataDirectoryError, StorageError
from fila.model import ProducerSequence
from fila.storage import directory, keys
from fila.storage.keys import Table
from fila.storage.records import pack_outcome
from fila.storage.rocksdb import RocksEngine, RocksStorage
from fila.storage.verify import verify
from tests.contract.storage_samples import (
    DEAD,
    PRODUCER,
    body,
    everything,
    put_messages,
    put_progress,
    put_queue,
)
from tests.contract.storage_samples import LEASED as BECAME


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


@contextmanager
def opened(path: Path) -> Iterator[RocksStorage]:
    store = RocksStorage(path)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def raw(path: Path) -> Iterator[RocksEngine]:
    engine = RocksEngine(path / directory.STORE)
    try:
        yield engine
    finally:
        engine.close()


def flip(path: Path, key: bytes, *, bit: int = 37) -> bytes:
    """Change one bit of a value, past the port; what it is then."""
    with raw(path) as engine:
        value = engine.get(key)
        assert value is not None
        changed = bytearray(value)
        changed[bit // 8 % len(changed)] ^= 1 << bit % 8
        batch = engine.batch()
        batch.put(key, bytes(changed))
        engine.apply(batch)
        return bytes(changed)


def drop(path: Path, key: bytes) -> None:
    with raw(path) as engine:
        batch = engine.batch()
        batch.delete(key)
        engine.apply(batch)


def held_aside(path: Path) -> dict[bytes, bytes]:
    with raw(path) as engine:
        return {key[1:]: value for key, value in engine.scan(*keys.table_range(Table.SET_ASIDE))}


def entry_key(sequence: int) -> bytes:
    return keys.message(Table.ENTRY, 1, sequence)


def message_key(sequence: int) -> bytes:
    return keys.message(Table.MESSAGE, 1, sequence)


def progress_key(sequence: int) -> bytes:
    return keys.message(Table.PROGRESS, 1, sequence)


def fill(path: Path) -> None:
    with opened(path) as store:
        store.write(everything())


def test_a_message_with_an_unreadable_entry_is_set_aside_whole(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(path)
    changed = flip(path, entry_key(2))
    with opened(path) as store, caplog.at_level(logging.WARNING):
        assert [entry.sequence for _, entry, _ in store.recover().entries] == [1, 3]
        assert store.unreadable_count == 3
        assert store.read_messages(1, [2]) == [None]
    assert "set aside entry of message 2 in partition 1: the checksum is wrong" in caplog.text
    aside = held_aside(path)
    assert set(aside) == {entry_key(2), message_key(2), progress_key(2)}
    assert aside[entry_key(2)] == changed
    with opened(path) as store:
        assert [entry.sequence for _, entry, _ in store.recover().entries] == [1, 3]
        assert store.unreadable_count == 0


def test_a_message_with_unreadable_progress_waits_as_it_was_accepted(path: Path) -> None:
    fill(path)
    flip(path, progress_key(2))
    with opened(path) as store:
        became = {entry.sequence: progress for _, entry, progress in store.recover().entries}
        assert became[2] is None
        assert became[3] is not None
        assert store.unreadable_count == 1
    assert set(held_aside(path)) == {progress_key(2)}


def test_progress_of_a_message_that_is_not_there_is_set_aside(path: Path) -> None:
    fill(path)
    with opened(path) as store:
        store.write([put_progress({0: BECAME, 77: BECAME})])
        assert [entry.sequence for _, entry, _ in store.recover().entries] == [1, 2, 3]
        assert store.unreadable_count == 2
    assert set(held_aside(path)) == {progress_key(0), progress_key(77)}


def test_an_entry_whose_message_is_gone_is_set_aside_when_it_is_read(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(path)
    drop(path, message_key(2))
    with opened(path) as store:
        assert store.read_messages(1, [1, 2, 3])[1] is None
        assert store.unreadable_count == 2
        assert "set aside entry of message 2 in partition 1" in caplog.text
        assert [entry.sequence for _, entry, _ in store.recover().entries] == [1, 3]
        assert [entry.sequence for entry, _, _ in store.browse(1, 0)] == [1, 3]


def test_a_queue_that_lost_its_settings_comes_back_paused(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(path)
    flip(path, keys.queue("orders"))
    for _ in range(2):
        with opened(path) as store:
            queue = store.recover().queues[0]
            assert (queue.name, queue.partition, queue.paused) == ("orders", 1, True)
            assert queue.settings.visibility_timeout_ms == 30_000
            assert len(list(store.recover().entries)) == 3
    assert "queue 'orders' lost its settings" in caplog.text


def test_a_partition_that_lost_its_record_counts_on_behind_its_messages(path: Path) -> None:
    fill(path)
    flip(path, keys.partition(1))
    with opened(path) as store:
        (record,) = store.recover().partitions
        assert (record.number, record.base) == (1, "orders")
        assert record.next_sequence > 3
        assert record.id_high > 0
        assert store.unreadable_count == 1
    with opened(path) as store:
        assert list(store.recover().partitions) == [record]
        assert store.unreadable_count == 0


@pytest.mark.parametrize(
    "gone",
    [
        [keys.partition(1)],
        [keys.queue("orders")],
        [keys.queue("orders.dlq")],
        [keys.queue("orders"), keys.queue("orders.dlq")],
        [keys.partition(1), keys.queue("orders")],
        [keys.partition(1), keys.queue("orders"), keys.queue("orders.dlq")],
    ],
)
def test_records_gone_without_a_trace_are_put_together_from_what_is_left(
    path: Path, gone: list[bytes]
) -> None:
    fill(path)
    for key in gone:
        drop(path, key)
    for _ in range(2):
        with opened(path) as store:
            recovered = store.recover()
            assert [(each.number, each.base) for each in recovered.partitions] == [(1, "orders")]
            assert recovered.partitions[0].next_sequence > 3
            orders, dlq = recovered.queues
            assert (orders.name, dlq.name) == ("orders", "orders.dlq")
            assert orders.paused == (keys.queue("orders") in gone)
            assert len(list(recovered.entries)) == 3
            Scheduler(epoch=1).restore(store.recover(), now_ns=0, wall_ns=0)


def test_a_queue_without_messages_that_is_gone_without_a_trace_stays_gone(path: Path) -> None:
    with opened(path) as store:
        store.write(put_queue())
    drop(path, keys.queue("orders"))
    with opened(path) as store:
        assert [queue.name for queue in store.recover().queues] == ["orders.dlq"]


def test_only_dead_letters_bring_no_queue_back(path: Path) -> None:
    with opened(path) as store:
        store.write([*put_queue(), put_messages([b"", b""])])
        store.write([put_progress({1: DEAD}), put_progress({2: DEAD})])
    drop(path, keys.queue("orders"))
    with opened(path) as store:
        assert [queue.name for queue in store.recover().queues] == ["orders.dlq"]


def test_messages_of_a_partition_that_nobody_knows_stay_where_they_are(path: Path) -> None:
    fill(path)
    with opened(path) as store:
        store.write([put_messages([b"", b""], partition=9)])
        assert [number for number, _, _ in store.recover().entries] == [1, 1, 1]
        assert store.unreadable_count == 1
        assert store.read_entry(9, 1) is not None


@pytest.mark.parametrize(
    "key",
    [
        keys.config("throttle:mail:rate"),
        keys.key_weight(1, True, "tenant ü"),
        keys.outcome(1, PRODUCER.producer, PRODUCER.sequence),
    ],
)
def test_any_other_unreadable_record_costs_only_itself(path: Path, key: bytes) -> None:
    fill(path)
    changed = flip(path, key)
    with opened(path) as store:
        recovered = store.recover()
        assert len(list(recovered.entries)) == 3
        kept = len(recovered.config) + len(recovered.key_weights) + len(recovered.producers)
        assert kept == 2
        assert store.unreadable_count == 1
    assert held_aside(path) == {key: changed}


def test_the_newest_readable_outcome_speaks_for_its_producer(path: Path) -> None:
    fill(path)
    with opened(path) as store:
        outcome = store.read_outcome(1, PRODUCER)
    flip(path, keys.outcome(1, PRODUCER.producer, PRODUCER.sequence))
    with raw(path) as engine:
        batch = engine.batch()
        assert outcome is not None
        batch.put(keys.outcome(1, PRODUCER.producer, 3), pack_outcome(outcome))
        engine.apply(batch)
    with opened(path) as store:
        assert [producer.sequence for producer in store.recover().producers] == [3]


def test_an_unreadable_outcome_is_an_error_for_who_asks(path: Path) -> None:
    fill(path)
    flip(path, keys.outcome(1, PRODUCER.producer, PRODUCER.sequence))
    with opened(path) as store, pytest.raises(CorruptRecordError):
        store.read_outcome(1, ProducerSequence(PRODUCER.producer, PRODUCER.sequence))


@pytest.mark.parametrize("key", [keys.meta("counters"), keys.meta_copy("counters")])
def test_the_store_keeps_count_with_one_of_two_counters(path: Path, key: bytes) -> None:
    fill(path)
    flip(path, key)
    with opened(path) as store:
        assert store.epoch == 2
        assert store.recover().next_partition == 2
    with opened(path) as store:
        assert (store.epoch, store.unreadable_count) == (3, 0)


def test_a_store_that_lost_count_is_not_opened(path: Path) -> None:
    fill(path)
    for key in (keys.meta("counters"), keys.meta_copy("counters")):
        flip(path, key)
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="restore a backup"):
            RocksStorage(path)


# ---- blocks of the files themselves

COUNT = 4000


def fill_much(path: Path) -> None:
    """Enough for many blocks, all of them in a file."""
    chance = random.Random(5)
    with opened(path) as store:
        store.write(put_queue())
        for first in range(1, COUNT, 500):
            bodies = [body(chance.randbytes(200)) for _ in range(500)]
            store.write([put_messages(bodies, first=first, accepted_at_ns=first)])
        store.write([put_progress(dict.fromkeys(range(1, COUNT, 10), BECAME))])
    with raw(path) as engine:
        engine._db.compact_range(None, None)


def damage_block(path: Path, wanted: Callable[[int], bytes], sequence: int) -> None:
    """Flip a byte in the block of a file that holds the record with this key, or one close to it.

    Only every sixteenth key lies there in full.
    """
    near = [wanted(n) for n in range(sequence, sequence + 16)]
    near += [wanted(n) for n in range(sequence, max(0, sequence - 16), -1)]
    for file in sorted((path / directory.STORE).glob("*.sst")):
        content = bytearray(file.read_bytes())
        for key in near:
            where = content.find(key)
            if where >= 0:
                content[where + len(key) + 20] ^= 0xFF
                file.write_bytes(bytes(content))
                return
    raise AssertionError("no file has the key")


def sequences(store: RocksStorage) -> list[int]:
    return [entry.sequence for _, entry, _ in store.recover().entries]


def rebuilt(path: Path) -> list[str]:
    return sorted(file.name for file in path.glob("store*"))


@pytest.mark.parametrize("near", [COUNT // 5, COUNT // 2, COUNT])
def test_a_damaged_block_of_entries_costs_its_messages_and_no_others(path: Path, near: int) -> None:
    fill_much(path)
    damage_block(path, entry_key, near)
    with opened(path) as store:
        left = sequences(store)
        assert 0 < len(left) < COUNT
        gone = sorted(set(range(1, COUNT + 1)) - set(left))
        assert gone == list(range(gone[0], gone[-1] + 1))
        assert store.unreadable_count > 0
    assert directory.is_damaged(path)

    with opened(path) as store:
        assert rebuilt(path) == ["store", "store.damaged-1"]
        assert sequences(store) == left
        assert store.unreadable_count >= len(gone)
        store.write([DeleteMessages(1, left[:100]), PutConfig("a", "b")])
        store._rocks._db.compact_range(None, None)
    assert not directory.is_damaged(path)
    report = verify(path)
    aside = report.records.pop("set_aside")
    assert aside >= len(gone)
    assert report.problem_count == aside
    with opened(path) as store:
        assert sequences(store) == left[100:]
        assert store.unreadable_count == 0
        assert rebuilt(path) == ["store", "store.damaged-1"]


def test_a_store_that_can_not_be_opened_says_so_in_one_line(path: Path) -> None:
    fill(path)
    for manifest in (path / directory.STORE).glob("MANIFEST-*"):
        manifest.write_bytes(b"\x00" * 100)
    with pytest.raises(DataDirectoryError, match="can't be opened") as refused:
        RocksStorage(path)
    assert "\n" not in str(refused.value)


def test_a_damaged_block_of_queues_costs_their_settings_and_what_lies_beside_them(
    path: Path,
) -> None:
    fill_much(path)
    damage_block(path, lambda _: keys.queue("orders"), 1)
    for _ in range(2):
        with opened(path) as store:
            recovered = store.recover()
            assert [queue.paused for queue in recovered.queues] == [True, True]
            assert COUNT * 9 // 10 < len(list(recovered.entries)) <= COUNT
            Scheduler(epoch=1).restore(store.recover(), now_ns=0, wall_ns=0)


def test_a_damaged_block_of_messages_is_found_when_it_is_read(path: Path) -> None:
    fill_much(path)
    damage_block(path, message_key, COUNT // 2)
    with opened(path) as store:
        assert len(sequences(store)) == COUNT
        assert not directory.is_damaged(path)
        found = store.read_messages(1, range(1, COUNT + 1))
        gone = [n for n, stored in enumerate(found, 1) if stored is None]
        assert 0 < len(gone) < COUNT // 10
        assert store.unreadable_count >= len(gone)
    assert directory.is_damaged(path)
    with opened(path) as store:
        left = sequences(store)
        assert sorted({*left, *gone}) == list(range(1, COUNT + 1))
        assert None not in store.read_messages(1, left)
        store._rocks._db.compact_range(None, None)


def test_a_damaged_block_met_while_files_are_merged_stops_writing_until_the_next_start(
    path: Path,
) -> None:
    fill_much(path)
    damage_block(path, message_key, COUNT // 2)
    with opened_and_left(path) as store:
        merge_files(store)
        with pytest.raises(CorruptRecordError):
            store.write([PutConfig("refused", "x")])
    with opened(path) as store:
        left = sequences(store)
        assert COUNT * 9 // 10 < len(left) < COUNT
        store.write([PutConfig("after", "x")])
        merge_files(store)
        store.write([PutConfig("after that", "x")])
        assert store.recover().config["after"] == "x"


def test_an_interrupted_rebuilding_is_done_again(path: Path) -> None:
    fill_much(path)
    damage_block(path, entry_key, COUNT // 2)
    directory.mark_damaged(path)
    half = RocksEngine(path / directory.REBUILT)
    half.close()
    with opened(path) as store:
        assert len(sequences(store)) > COUNT // 2
        assert rebuilt(path) == ["store", "store.damaged-1"]


def test_a_rebuilding_interrupted_at_the_swap_is_finished(path: Path) -> None:
    fill(path)
    (path / "store").rename(path / "store.rebuilt")
    with opened(path) as store:
        assert sequences(store) == [1, 2, 3]
        assert rebuilt(path) == ["store"]


@contextmanager
def opened_and_left(path: Path) -> Iterator[RocksStorage]:
    """A store that can't be closed cleanly any more."""
    store = RocksStorage(path)
    try:
        yield store
    finally:
        with pytest.raises(StorageError):
            store.close()


def merge_files(store: RocksStorage) -> None:
    """What RocksDB does by itself, sooner or later."""
    store.write([PutConfig("merge", "x"), DeleteMessages(1, [1, COUNT])])
    with suppress(Exception):
        store._rocks._db.flush()
        store._rocks._db.compact_range(None, None)
