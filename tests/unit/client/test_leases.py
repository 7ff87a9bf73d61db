"""When leases are renewed, and what is forgotten."""

import pickle

from fila.client.leases import LeaseBook
from tests.unit.client.deliveries import Holder, deliver, wire_message


def test_a_lease_is_renewed_at_a_third_of_its_time() -> None:
    book = LeaseBook(Holder())
    messages = deliver(2, book=book, lease_s=30)

    assert book.due(9.9) == []
    assert book.due(10.0) == messages
    assert book.due(10.1) == []
    assert book.due(20.0) == messages


def test_a_settled_message_is_not_renewed() -> None:
    book = LeaseBook(Holder())
    first, second = deliver(2, book=book)

    assert book.settle(first)
    assert book.due(15.0) == [second]
    assert first.grant is None
    assert not book.settle(first)


def test_each_queue_has_its_own_lease_time() -> None:
    book = LeaseBook(Holder())
    wires = [wire_message(1, queue="short", lease_s=3), wire_message(2, queue="long", lease_s=60)]
    short, long = book.receive(wires, 0.0)

    assert book.due(1.0) == [short]
    assert set(book.due(20.0)) == {short, long}
    assert book.longest() == 60


def test_a_fast_consumer_leaves_nothing_behind() -> None:
    book = LeaseBook(Holder())
    for _ in range(3):
        for message in deliver(10, book=book):
            book.settle(message)

    assert book.count == 0
    assert book.longest() == 0.0
    assert book.due(1e9) == []


def test_a_message_that_the_program_dropped_is_let_go() -> None:
    book = LeaseBook(Holder())
    kept, _ = deliver(2, book=book)
    del _

    assert book.due(10.0) == [kept]
    assert book.count == 1


def test_a_lost_stream_makes_every_lease_due() -> None:
    book = LeaseBook(Holder())
    messages = deliver(2, book=book, lease_s=30)
    book.doubt()

    assert book.due(1.0) == messages
    assert book.due(1.0) == []


def test_nothing_is_held_once_the_book_is_cleared() -> None:
    book = LeaseBook(Holder())
    (message,) = deliver(1, book=book)
    book.clear()

    assert book.count == 0
    assert book.due(1e9) == []
    assert not book.settle(message), "it can still be tried, but it is not held"
    assert book.count == 0


def test_a_message_travels_to_another_process_without_its_lease() -> None:
    (message,) = deliver(1)
    again = pickle.loads(pickle.dumps(message))

    assert (again.id, again.payload, again.queue) == (message.id, message.payload, "q")
    assert again.lease_token == message.lease_token
    assert again.grant is None
    assert message.grant is not None
