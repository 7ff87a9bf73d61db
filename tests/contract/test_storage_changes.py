"""Messages that ask for something else than when they were accepted: stored as such, and whole."""

import pytest

from fila.core.effects import DeleteMessages, PutSpecs, PutTimes
from fila.core.message import Message
from fila.core.records import Entry, Progress
from fila.errors import StorageError
from fila.model import Spec
from fila.storage.port import Storage
from fila.wire._pb import messages_pb2 as pb
from tests.contract.disk import Disk
from tests.contract.storage_samples import (
    DEAD,
    LEASED,
    body,
    message,
    put_messages,
    put_queue,
    state,
)


def entries(store: Storage) -> list[Entry]:
    return [entry for _, entry, _ in store.recover().entries]


def respecced(sequence: int, spec: Spec, progress: Progress) -> Message:
    changed = message(progress, sequence)
    changed.spec = spec
    return changed


def parsed(store: Storage, sequence: int) -> pb.Message:
    (stored,) = store.read_messages(1, [sequence])
    assert stored is not None
    return pb.Message.FromString(stored)


def test_a_changed_spec_replaces_the_old_one_in_both_halves(disk: Disk) -> None:
    bodies = [body(b"one", a="b"), body(b"two")]
    old, new = Spec("a", 2, ("mail", "sms"), 3, 4), Spec("ü", 5, ("sms",), 0, 4)
    disk.store.write([*put_queue(), put_messages(bodies, specs=[old, old], times={0: (5, 6)})])
    before = disk.store.read_entry(1, 1)
    was = parsed(disk.store, 1)
    untouched = disk.store.read_messages(1, [2])
    assert before is not None

    disk.store.write([PutSpecs(1, [respecced(1, new, LEASED)])])

    store = disk.reopen()
    assert store.read_entry(1, 1) == before._replace(spec=new)
    now = parsed(store, 1)
    assert (now.metadata.fairness_key, now.metadata.weight) == ("ü", 5)
    assert list(now.metadata.throttle_keys) == ["sms"]
    assert (now.metadata.priority, now.metadata.cost, now.metadata.queue_id) == (0, 4, "orders")
    now.metadata.CopyFrom(was.metadata)
    assert now == was
    assert store.read_messages(1, [2]) == untouched


def test_a_spec_can_change_again_and_again_and_the_message_does_not_grow(store: Storage) -> None:
    specs = [Spec("a", 1, ("mail",)), Spec("b", 1, ("sms",))]
    store.write([*put_queue(), put_messages([body(b"x" * 1000)], specs=specs[:1])])
    before, (stored,) = parsed(store, 1), store.read_messages(1, [1])

    for turn in range(1, 9):
        store.write([PutSpecs(1, [respecced(1, specs[turn % 2], LEASED)])])

    assert parsed(store, 1) == before
    assert [len(now) for now in store.read_messages(1, [1]) if now] == [len(stored or b"")]


def test_a_changed_message_is_at_home_where_it_is_now(store: Storage) -> None:
    store.write([*put_queue(), put_messages([body(b"")] * 2, in_dlq=True)])

    direct = LEASED._replace(in_dlq=True)
    store.write([PutSpecs(1, [respecced(1, Spec(), LEASED), respecced(2, Spec(), direct)])])

    assert [entry.in_dlq for entry in entries(store)] == [False, True]
    assert parsed(store, 1).metadata.queue_id == "orders"
    assert parsed(store, 2).metadata.queue_id == "orders.dlq"


def test_a_dead_letters_own_bytes_name_the_queue_that_it_came_from(store: Storage) -> None:
    store.write([*put_queue(), put_messages([body(b"")])])

    store.write([PutSpecs(1, [respecced(1, Spec("new"), DEAD)])])

    assert parsed(store, 1).metadata.queue_id == "orders"


def test_times_and_spec_may_change_in_one_batch_in_either_order(store: Storage) -> None:
    store.write([*put_queue(), put_messages([body(b"")] * 2)])
    new = Spec("new")

    store.write(
        [
            PutTimes(1, {1: (50, 60)}),
            PutSpecs(1, [respecced(1, new, LEASED), respecced(2, new, LEASED)]),
            PutTimes(1, {2: (50, 60)}),
        ]
    )

    changed = [(entry.spec, entry.deliver_at_ns, entry.expires_at_ns) for entry in entries(store)]
    assert changed == [(new, 50, 60)] * 2


def test_a_spec_may_come_with_new_times_for_some(store: Storage) -> None:
    store.write([*put_queue(), put_messages([body(b"")] * 2, times={0: (1, 2), 1: (3, 4)})])
    new = Spec("new")

    changes = [respecced(1, new, LEASED), respecced(2, new, LEASED)]
    store.write([PutSpecs(1, changes, {2: (50, 60)})])

    changed = [(entry.spec, entry.deliver_at_ns, entry.expires_at_ns) for entry in entries(store)]
    assert changed == [(new, 1, 2), (new, 50, 60)]


def test_entries_are_read_together_in_the_order_asked_for(store: Storage) -> None:
    store.write([*put_queue(), put_messages([body(b"")] * 3, specs=[Spec("a"), Spec("b"), Spec()])])

    found = store.read_entries(1, [3, 9, 1])

    assert found == [store.read_entry(1, 3), None, store.read_entry(1, 1)]


def test_a_spec_and_what_else_happened_are_written_together_or_not_at_all(store: Storage) -> None:
    store.write([*put_queue(), put_messages([body(b"")], specs=[Spec("old")])])
    before = state(store)

    with pytest.raises(StorageError, match="not stored"):
        store.write([PutSpecs(1, [respecced(1, Spec("new"), DEAD)]), PutTimes(1, {9: (1, 1)})])

    assert state(store) == before


def test_a_changed_message_that_is_deleted_in_the_same_batch_is_gone(store: Storage) -> None:
    store.write([*put_queue(), put_messages([body(b"")])])

    store.write([PutSpecs(1, [respecced(1, Spec("new"), LEASED)]), DeleteMessages(1, [1])])

    assert entries(store) == []
    assert store.read_messages(1, [1]) == [None]
