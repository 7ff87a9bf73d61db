"""The storage port: one suite for every implementation."""

import threading

import pytest

from fila import ids
from fila.core.effects import (
    DeleteMessages,
    DeletePartition,
    DeleteRanges,
    DropKeyWeight,
    DropOutcomes,
    DropQueue,
    Mutation,
    PutConfig,
    PutKeyWeight,
    PutOutcome,
    PutPartition,
    PutTimes,
)
from fila.core.records import Entry, KeyWeight, PartitionRecord, ProducerHigh
from fila.errors import StorageError
from fila.model import Outcome, ProducerSequence, Spec
from fila.storage.port import Storage
from fila.storage.store import Store
from fila.wire._pb import messages_pb2 as pb
from tests.contract.disk import Disk
from tests.contract.storage_samples import (
    DEAD,
    ID_HIGH,
    LEASED,
    OUTCOME,
    PRODUCER,
    body,
    everything,
    put_messages,
    put_progress,
    put_queue,
    state,
)

EDGES = (1, 255, 256, 257, 65_535, 65_536, 2**32 - 2)


def entries(store: Storage) -> list[Entry]:
    return [entry for _, entry, _ in store.recover().entries]


def sequences(store: Storage, partition: int) -> list[int]:
    return [entry.sequence for number, entry, _ in store.recover().entries if number == partition]


def all_keys(store: Storage) -> list[bytes]:
    """Past the port: nothing may lie about that no question finds."""
    assert isinstance(store, Store)
    return [key for key, _ in store._engine.scan(b"\x00", b"\xff")]


def test_a_new_store_holds_nothing(store: Storage) -> None:
    assert state(store) == ([], [], [], [], [], [], {})
    assert store.epoch == 1
    assert store.unreadable_count == 0
    assert store.recover().next_partition == 1


def test_every_record_comes_back_as_it_was_written(store: Storage) -> None:
    store.write(everything())

    recovered = store.recover()
    assert [partition.base for partition in recovered.partitions] == ["orders"]
    assert [(queue.name, queue.paused) for queue in recovered.queues] == [
        ("orders", False),
        ("orders.dlq", True),
    ]
    assert recovered.queues[0].settings.visibility_timeout_ms == 5_000
    assert recovered.queues[0].settings.on_failure_script == "return 1\n"
    tenant = Spec("tenant ü", 10_000, ("mail", "sms"), 255, 10_000)
    plain = Entry(sequence=1, id_high=ID_HIGH, spec=Spec(), accepted_at_ns=1_000)
    timed = plain._replace(sequence=2, spec=tenant, deliver_at_ns=9_000, expires_at_ns=10_000)
    assert list(recovered.entries) == [
        (1, plain, None),
        (1, timed, LEASED),
        (1, plain._replace(sequence=3), DEAD),
    ]
    assert recovered.key_weights == [
        KeyWeight(partition=1, in_dlq=True, fairness_key="tenant ü", weight=4, place=3)
    ]
    assert recovered.producers == [
        ProducerHigh(partition=1, producer=PRODUCER.producer, sequence=7, at_ns=1_000)
    ]
    assert recovered.config == {"throttle:mail:rate": "10"}
    assert store.read_outcome(1, PRODUCER) == OUTCOME


def test_what_was_written_is_there_after_the_process_ended(disk: Disk) -> None:
    disk.store.write(everything())
    before = state(disk.store)
    assert state(disk.reopen()) == before
    assert state(disk.reopen()) == before


def test_each_opening_counts(disk: Disk) -> None:
    assert [disk.store.epoch, disk.reopen().epoch, disk.reopen().epoch] == [1, 2, 3]


def test_a_stored_message_is_what_was_sent_with_id_and_metadata(store: Storage) -> None:
    spec = Spec("tenant", 3, ("mail",), 7, 2)
    store.write([put_messages([body(b"payload", a="b")], specs=[spec], first=5)])

    (stored,) = store.read_messages(1, [5])
    assert stored is not None
    message = pb.Message.FromString(stored)
    assert message.payload == b"payload"
    assert dict(message.headers) == {"a": "b"}
    assert message.id.startswith("01990000-0000-7001-8")
    assert message.metadata.fairness_key == "tenant"
    assert message.metadata.queue_id == "orders"
    assert (message.metadata.weight, message.metadata.priority, message.metadata.cost) == (3, 7, 2)
    assert list(message.metadata.throttle_keys) == ["mail"]
    assert message.timestamps.enqueued_at.ToNanoseconds() == 1_000


def test_each_message_has_the_id_that_leads_to_it(store: Storage) -> None:
    store.write([*put_queue("a", 300), put_messages([b""] * 5, partition=300, first=2**30 - 2)])
    wanted = range(2**30 - 2, 2**30 + 3)
    for sequence, stored in zip(wanted, store.read_messages(300, wanted), strict=True):
        assert stored is not None
        high, low = ids.parse_id(pb.Message.FromString(stored).id)
        assert high == ID_HIGH
        assert ids.sequence_of(low) == sequence
        assert ids.belongs_to(low, 300)


@pytest.mark.parametrize("payload", [b"", b"\x00" * 4 * 1024 * 1024, bytes(range(256))])
def test_payloads_of_any_size_come_back(disk: Disk, payload: bytes) -> None:
    disk.store.write([*put_queue(), put_messages([body(payload)])])
    (stored,) = disk.reopen().read_messages(1, [1])
    assert stored is not None
    assert pb.Message.FromString(stored).payload == payload


@pytest.mark.parametrize("text", ["", "\x00", "ÿ\U0001f4ec", "k" * 512, "a:b\xff"])
def test_keys_of_any_text_come_back(disk: Disk, text: str) -> None:
    spec = Spec(text, 1, (text, text + "2"))
    weight = KeyWeight(partition=1, in_dlq=False, fairness_key=text, weight=9, place=2)
    disk.store.write([*put_queue(), put_messages([body(b"")], specs=[spec]), PutKeyWeight(weight)])
    disk.store.write([PutConfig("k" + text, text + "v")])

    again = disk.reopen()
    assert entries(again)[0].spec == spec
    assert again.recover().key_weights == [weight]
    assert again.recover().config == {"k" + text: text + "v"}


def test_equal_specs_come_back_as_one_object(disk: Disk) -> None:
    specs = [Spec("a"), Spec("b"), Spec("a")]
    disk.store.write([*put_queue(), put_messages([b"", b"", b""], specs=specs)])
    first, second, third = entries(disk.reopen())
    assert first.spec is third.spec
    assert first.spec is not second.spec


def test_a_batch_takes_effect_in_order(store: Storage) -> None:
    store.write(
        [
            *put_queue(),
            put_messages([b"", b""]),
            put_progress({1: LEASED}),
            DeleteMessages(1, [1]),
            PutConfig("a", "1"),
            PutConfig("a", "2"),
            PutConfig("b", "1"),
            PutConfig("b", ""),
        ]
    )
    assert sequences(store, 1) == [2]
    assert store.recover().config == {"a": "2"}


def test_a_deleted_message_leaves_nothing(store: Storage) -> None:
    store.write([*put_queue(), put_messages([b"", b"", b""]), put_progress({2: LEASED})])
    store.write([DeleteMessages(1, [2])])

    assert b"\x00\x00\x00\x02" not in {key[-4:] for key in all_keys(store) if len(key) == 13}
    assert sequences(store, 1) == [1, 3]
    assert store.read_messages(1, [1, 2, 3])[1] is None
    assert store.read_entry(1, 2) is None
    store.write([put_messages([b""], first=2)])
    assert [progress for _, _, progress in store.recover().entries] == [None, None, None]


def test_deleting_what_is_not_there_changes_nothing(store: Storage) -> None:
    store.write(everything())
    before = state(store)
    store.write(
        [
            DeleteMessages(1, [55, 56]),
            DeletePartition(9),
            DropQueue("nobody's"),
            DropKeyWeight(1, False, "tenant ü"),
            DropOutcomes(1, b"another", 99),
            PutConfig("unknown", ""),
        ]
    )
    assert state(store) == before


def test_deleted_ranges_leave_nothing_and_touch_nothing_else(store: Storage) -> None:
    store.write(put_queue("a", 1) + put_queue("b", 2))
    for partition in (1, 2):
        store.write([put_messages([b""] * 300, partition=partition)])
        store.write([put_progress(dict.fromkeys(range(1, 301), LEASED), partition=partition)])
    store.write([DeleteRanges(1, [(1, 1), (100, 256), (300, 400)])])

    assert sequences(store, 1) == [*range(2, 100), *range(257, 300)]
    assert sequences(store, 2) == list(range(1, 301))
    assert len([key for key in all_keys(store) if key[1:5] == b"\x00\x00\x00\x01"]) == 1 + 141 * 3
    assert store.unreadable_count == 0


def test_reclaiming_space_changes_nothing_that_is_kept(disk: Disk) -> None:
    disk.store.write(everything())
    disk.store.write([put_messages([b"x" * 1000] * 100, first=10)])
    disk.store.write([DeleteMessages(1, range(10, 110))])
    before = state(disk.store)
    disk.store.reclaim()
    disk.store.reclaim()
    assert state(disk.store) == before
    assert state(disk.reopen()) == before


def test_later_progress_replaces_earlier(store: Storage) -> None:
    store.write([*put_queue(), put_messages([b""]), put_progress({1: DEAD})])
    store.write([put_progress({1: LEASED})])
    assert [progress for _, _, progress in store.recover().entries] == [LEASED]


def test_a_rescheduled_message_keeps_all_but_its_times(store: Storage) -> None:
    spec = Spec("tenant", 2)
    store.write([*put_queue(), put_messages([b""], specs=[spec], times={0: (5, 6)}, in_dlq=True)])
    before = store.read_entry(1, 1)
    assert before is not None
    store.write([PutTimes(1, {1: (50, 60)})])
    assert store.read_entry(1, 1) == before._replace(deliver_at_ns=50, expires_at_ns=60)


def test_what_became_of_one_message_is_read_alone(store: Storage) -> None:
    store.write([*put_queue(), put_messages([b"", b"", b""]), put_progress({2: LEASED})])

    assert store.read_progress(1, 2) == LEASED
    assert store.read_progress(1, 1) is None
    assert store.read_progress(1, 99) is None


def test_rescheduling_what_is_not_there_fails_and_writes_nothing(store: Storage) -> None:
    with pytest.raises(StorageError, match="not stored"):
        store.write([PutConfig("a", "b"), PutTimes(1, {1: (50, 60)})])
    assert store.recover().config == {}


@pytest.mark.parametrize("gone", EDGES)
def test_deleting_a_partition_leaves_nothing_of_it_and_all_of_others(disk: Disk, gone: int) -> None:
    outcome = ProducerSequence(b"p", 2**64 - 1)
    for number in EDGES:
        weight = KeyWeight(partition=number, in_dlq=False, fairness_key="k", weight=1, place=1)
        changes: list[Mutation] = [
            *put_queue(f"q{number}", number),
            put_messages([b"", b""], partition=number, first=2**44 - 2),
            put_progress({2**44 - 1: LEASED}, partition=number),
            PutOutcome(number, outcome, OUTCOME),
            PutKeyWeight(weight),
        ]
        disk.store.write(changes)
    disk.store.write([DeletePartition(gone), DropQueue(f"q{gone}"), DropQueue(f"q{gone}.dlq")])

    again = disk.reopen()
    mine = gone.to_bytes(4, "big")
    assert [
        key for key in all_keys(again) if key[1:5] == mine and key[0] in (1, 4, 5, 6, 7, 8)
    ] == []
    recovered = again.recover()
    left = [number for number in EDGES if number != gone]
    assert [partition.number for partition in recovered.partitions] == left
    assert sorted({queue.partition for queue in recovered.queues}) == left
    assert [number for number, _, _ in recovered.entries] == [n for n in left for _ in range(2)]
    assert [weight.partition for weight in recovered.key_weights] == left
    assert [producer.partition for producer in recovered.producers] == left
    assert again.read_messages(gone, [2**44 - 2, 2**44 - 1]) == [None, None]
    assert again.read_outcome(gone, outcome) is None
    assert list(again.browse(gone, 0)) == []
    assert again.unreadable_count == 0
    again.write(put_queue(f"q{gone}", gone))
    assert sequences(again, gone) == []


def test_a_partition_number_is_never_free_again(disk: Disk) -> None:
    disk.store.write(put_queue("a", 1) + put_queue("b", 7))
    assert disk.store.recover().next_partition == 8
    disk.store.write([DeletePartition(7), DropQueue("b"), DropQueue("b.dlq")])
    assert disk.store.recover().next_partition == 8
    assert disk.reopen().recover().next_partition == 8
    disk.store.write([PutPartition(PartitionRecord(number=1, base="a", next_sequence=5))])
    assert disk.reopen().recover().next_partition == 8


def test_browse_shows_messages_in_order_from_where_it_is_told(store: Storage) -> None:
    bodies = [body(str(index).encode()) for index in range(300)]
    store.write([*put_queue(), *put_queue("other", 2)])
    store.write([put_messages(bodies), put_messages([b""], partition=2, first=50)])
    store.write([put_progress({2: LEASED, 3: DEAD}), DeleteMessages(1, [5, 300])])

    rows = list(store.browse(1, 0))
    assert [entry.sequence for entry, _, _ in rows] == [1, 2, 3, 4, *range(6, 300)]
    assert [progress for _, progress, _ in rows[:4]] == [None, LEASED, DEAD, None]
    assert pb.Message.FromString(rows[3][2]).payload == b"3"
    assert [entry.sequence for entry, _, _ in store.browse(1, 297)] == [298, 299]
    assert list(store.browse(1, 299)) == []
    page = [next(rows_from) for rows_from in [store.browse(1, 4)] for _ in range(3)]
    assert [entry.sequence for entry, _, _ in page] == [6, 7, 8]


def test_browse_goes_on_while_messages_come_and_go(store: Storage) -> None:
    store.write([*put_queue(), put_messages([b""] * 200)])
    rows = store.browse(1, 0)
    seen = [next(rows)[0].sequence]
    store.write([DeleteMessages(1, range(100, 150)), put_messages([b""] * 50, first=201)])
    seen += [entry.sequence for entry, _, _ in rows]
    assert seen == [*range(1, 100), *range(150, 201)]


def test_outcomes_are_kept_apart_by_partition_producer_and_sequence(store: Storage) -> None:
    store.write(put_queue("a", 1) + put_queue("b", 2))
    made = {
        (partition, producer, sequence): Outcome(ID_HIGH, sequence, partition, len(producer))
        for partition in (1, 2)
        for producer in (b"", b"\x00", b"p", b"pp", b"p\xff", b"\xff\xff", b"p" * 64)
        for sequence in (0, 1, 255, 256, 2**64 - 1)
    }
    store.write(
        [
            PutOutcome(p, ProducerSequence(name, n), outcome)
            for (p, name, n), outcome in made.items()
        ]
    )
    for (partition, name, sequence), outcome in made.items():
        assert store.read_outcome(partition, ProducerSequence(name, sequence)) == outcome
    assert store.read_outcome(1, ProducerSequence(b"p", 2)) is None
    highs = store.recover().producers
    assert {(high.partition, high.producer) for high in highs} == {(p, n) for p, n, _ in made}
    assert {high.sequence for high in highs} == {2**64 - 1}


@pytest.mark.parametrize("up_to", [0, 254, 255, 2**64 - 1])
def test_old_outcomes_of_one_producer_are_forgotten(store: Storage, up_to: int) -> None:
    kept = (0, 1, 255, 256, 2**64 - 1)
    store.write(put_queue())
    store.write(
        [
            PutOutcome(1, ProducerSequence(name, sequence), OUTCOME)
            for name in (b"o", b"p", b"pp", b"q")
            for sequence in kept
        ]
    )
    store.write([DropOutcomes(1, b"p", up_to)])
    for name in (b"o", b"p", b"pp", b"q"):
        for sequence in kept:
            gone = name == b"p" and sequence <= up_to
            found = store.read_outcome(1, ProducerSequence(name, sequence))
            assert (found is None) == gone


def test_a_dropped_weight_is_gone(store: Storage) -> None:
    store.write(everything())
    store.write([DropKeyWeight(1, True, "tenant ü")])
    assert store.recover().key_weights == []


def test_reading_many_messages_keeps_the_order_asked_for(store: Storage) -> None:
    store.write([*put_queue(), put_messages([body(b"%d" % i) for i in range(1, 6)])])
    found = store.read_messages(1, [4, 99, 2, 4])
    payloads = [stored and pb.Message.FromString(stored).payload for stored in found]
    assert payloads == [b"4", None, b"2", b"4"]
    assert store.read_messages(1, []) == []
    assert store.unreadable_count == 0


def test_sync_may_run_in_another_thread_while_writes_go_on(disk: Disk) -> None:
    disk.store.write(put_queue())
    thread = threading.Thread(target=disk.store.sync)
    thread.start()
    for index in range(50):
        disk.store.write([put_messages([b""], first=index + 1)])
    thread.join()
    disk.store.sync()
    assert sequences(disk.reopen(), 1) == list(range(1, 51))


def test_the_disk_has_room(store: Storage) -> None:
    assert store.free_bytes() > 0


def test_a_closed_store_takes_no_writes(disk: Disk) -> None:
    disk.store.close()
    with pytest.raises(StorageError):
        disk.store.write([PutConfig("a", "b")])
    disk.reopen()
