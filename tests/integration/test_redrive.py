"""Dead letters on a real broker: what they say of themselves, and their way back."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import fila
from fila.wire._pb import admin_pb2 as a
from fila.wire._pb import messages_pb2 as m
from tests.integration.broker_process import BrokerProcess
from tests.integration.rpc import RefusedError, Rpc


@pytest.fixture
def client(shared_broker: BrokerProcess) -> Iterator[fila.Client]:
    with fila.Client(shared_broker.address) as made:
        yield made


def redrive(rpc: Rpc, dlq: str, count: int = 0) -> int:
    request = a.RedriveRequest(dlq_queue=dlq, count=count)
    return rpc.call(request, a.RedriveResponse).redriven


def fill(client: fila.Client, queue: str, payloads: list[bytes]) -> None:
    client.enqueue_batch(queue, [fila.NewMessage(payload) for payload in payloads])


def bury(client: fila.Client, queue: str, count: int) -> None:
    """Reject what waits in a queue."""
    while count:
        messages = client.lease(queue, max_messages=min(count, 1000))
        for message in messages:
            client.nack(message, "broken", dead_letter=True)
        count -= len(messages)
    client.flush()


def browse(client: fila.Client, queue: str) -> list[fila.Message]:
    return [found.message for found in client.admin.browse(queue)]


def test_a_dead_letter_comes_back_as_it_was_sent(client: fila.Client, rpc: Rpc) -> None:
    queue = rpc.queue()
    message_id = client.enqueue(queue, b"hello", headers={"tenant": "acme"}, fairness_key="acme")
    bury(client, queue, 1)
    [before] = browse(client, f"{queue}.dlq")

    assert redrive(rpc, f"{queue}.dlq") == 1

    [again] = client.lease(queue)
    assert before.dead_letter is not None
    assert before.attempts == 1
    assert again.dead_letter is None
    assert (again.id, again.payload, dict(again.headers)) == (
        message_id,
        b"hello",
        {"tenant": "acme"},
    )
    assert (again.queue, again.fairness_key, again.attempts) == (queue, "acme", 0)
    assert again.enqueued_at == before.enqueued_at
    assert rpc.stats(f"{queue}.dlq").depth == 0


def test_options_count_anew_but_for_the_delay(client: fila.Client, rpc: Rpc) -> None:
    queue = rpc.queue()
    [message_id] = rpc.enqueue(
        queue,
        b"x",
        options=m.MessageOptions(
            fairness_key="acme",
            weight=3,
            throttle_keys=["mail"],
            priority=9,
            cost=4,
            delay_ms=3_600_000,
            ttl_ms=3_600_000,
        ),
    )
    client.admin.reschedule(queue, message_id, delay=0)
    [message] = client.lease(queue, wait=10)
    client.nack(message, dead_letter=True)
    client.flush()

    redrive(rpc, f"{queue}.dlq")

    [shown] = rpc.call(a.BrowseRequest(queue=queue), a.BrowseResponse).messages
    assert shown.state == a.MESSAGE_STATE_READY
    found = shown.message.metadata
    assert (found.fairness_key, found.weight, found.priority, found.cost) == ("acme", 3, 9, 4)
    assert list(found.throttle_keys) == ["mail"]


def test_a_time_to_live_starts_anew(client: fila.Client, rpc: Rpc) -> None:
    queue = rpc.queue()
    client.enqueue(queue, b"late", ttl=0.1)
    [late] = client.lease(f"{queue}.dlq", wait=10)
    client.release(late)
    client.flush()
    # A time to live means nothing to a dead-letter queue, but it is not forgotten.
    client.enqueue(f"{queue}.dlq", b"direct", ttl=0.1)

    assert redrive(rpc, f"{queue}.dlq") == 2

    dead: list[fila.Message] = []
    while len(dead) < 2:
        dead += client.lease(f"{queue}.dlq", max_messages=2, wait=10)
    found = {each.payload: each.dead_letter.reason for each in dead if each.dead_letter}
    assert found == {b"late": "expired", b"direct": "expired"}


def test_a_thousand_move_in_order_and_a_count_stops_in_between(
    client: fila.Client, rpc: Rpc
) -> None:
    queue = rpc.queue()
    # What is one batch for the caller may travel as two, in any order: a thousand at most.
    for part in (range(600), range(600, 1200)):
        fill(client, queue, [b"%d" % number for number in part])
    bury(client, queue, 1200)

    first = redrive(rpc, f"{queue}.dlq", 700)
    payloads: list[bytes] = []
    while len(payloads) < first:
        payloads += [message.payload for message in client.lease(queue, max_messages=1000)]
    rest = redrive(rpc, f"{queue}.dlq")

    assert (first, rest) == (700, 500)
    assert payloads == [b"%d" % number for number in range(700)]
    assert rpc.stats(queue).depth == 1200


def test_leased_dead_letters_stay_with_their_consumers(client: fila.Client, rpc: Rpc) -> None:
    queue = rpc.queue()
    fill(client, queue, [b"held", b"free"])
    bury(client, queue, 2)
    [held] = client.lease(f"{queue}.dlq")

    assert redrive(rpc, f"{queue}.dlq") == 1

    client.ack(held)
    client.flush()
    assert [message.payload for message in client.lease(queue, max_messages=9)] == [b"free"]
    assert rpc.stats(f"{queue}.dlq").depth == 0


def test_what_dies_again_meanwhile_is_not_taken_a_second_time(
    shared_broker: BrokerProcess, client: fila.Client, rpc: Rpc
) -> None:
    queue = rpc.queue()
    fill(client, queue, [b"x"] * 5000)
    bury(client, queue, 5000)
    seen = Counter[str]()
    stop = threading.Event()

    def reject() -> None:
        with fila.Client(shared_broker.address) as other:
            while not stop.is_set() or other.admin.stats(queue).depth:
                for message in other.lease(queue, max_messages=500):
                    seen[message.id] += 1
                    other.nack(message, "still broken", dead_letter=True)
                other.flush()

    thread = threading.Thread(target=reject)
    thread.start()
    moved = redrive(rpc, f"{queue}.dlq")
    stop.set()
    thread.join()

    assert moved == 5000
    assert len(seen) == 5000
    assert set(seen.values()) == {1}
    assert rpc.stats(f"{queue}.dlq").depth == 5000


def test_what_fits_moves_and_when_nothing_does_the_answer_says_why(
    client: fila.Client, rpc: Rpc
) -> None:
    queue = rpc.queue(max_depth=800)
    fill(client, queue, [b"x"] * 700)
    bury(client, queue, 700)
    fill(client, queue, [b"y"] * 200)

    assert redrive(rpc, f"{queue}.dlq") == 600

    with pytest.raises(RefusedError, match=r"RESOURCE_EXHAUSTED.*max_depth of 800"):
        redrive(rpc, f"{queue}.dlq")
    assert (rpc.stats(queue).depth, rpc.stats(f"{queue}.dlq").depth) == (800, 100)


def test_large_dead_letters_move_some_at_a_time(client: fila.Client, rpc: Rpc) -> None:
    queue = rpc.queue()
    for _ in range(12):
        client.enqueue(queue, bytes(1_000_000))
    bury(client, queue, 12)

    assert redrive(rpc, f"{queue}.dlq") == 12

    assert [len(message.payload) for message in browse(client, queue)] == [1_000_000] * 12


def test_a_redrive_of_nothing_is_nothing(rpc: Rpc) -> None:
    assert redrive(rpc, f"{rpc.queue()}.dlq") == 0


def test_what_cannot_be_redriven_is_refused(client: fila.Client, rpc: Rpc) -> None:
    queue = rpc.queue()
    client.admin.create_queue("lonely.dlq")

    for name, code in (
        (queue, "INVALID_ARGUMENT"),
        ("", "INVALID_ARGUMENT"),
        ("nowhere.dlq", "NOT_FOUND"),
        ("lonely.dlq", "FAILED_PRECONDITION"),
    ):
        with pytest.raises(RefusedError) as refused:
            redrive(rpc, name)
        assert refused.value.code == code
    with pytest.raises(fila.errors.InvalidArgumentError, match="count is -1"):
        client.admin.redrive(f"{queue}.dlq", -1)


def test_pausing_either_queue_does_not_stop_it(client: fila.Client, rpc: Rpc) -> None:
    queue = rpc.queue()
    client.enqueue(queue, b"x")
    bury(client, queue, 1)
    client.admin.pause_queue(queue)
    client.admin.pause_queue(f"{queue}.dlq")

    assert client.admin.redrive(f"{queue}.dlq") == 1


def test_a_caller_that_goes_away_ends_the_redrive(client: fila.Client, rpc: Rpc) -> None:
    queue, count = rpc.queue(), 10_000
    fill(client, queue, [b"x"] * count)
    bury(client, queue, count)
    request = a.RedriveRequest(dlq_queue=f"{queue}.dlq")

    with pytest.raises(RefusedError, match="DEADLINE_EXCEEDED"):
        rpc.raw("FilaAdmin/Redrive", request.SerializeToString(), timeout=0.03)

    # Behind whatever of it was on its way to the core.
    rpc.queue()
    left = rpc.stats(f"{queue}.dlq").depth
    assert left > 0
    assert rpc.stats(queue).depth == count - left
    assert redrive(rpc, f"{queue}.dlq") == left


def test_a_full_disk_takes_none_back(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker, fila.Client(broker.address) as client:
        client.admin.create_queue("orders")
        client.enqueue("orders", b"x")
        bury(client, "orders", 1)
        broker.terminate()
    full = {"FILA_STORAGE__MIN_FREE_BYTES": str(1 << 60)}

    with (
        BrokerProcess(tmp_path / "data", environment=full) as broker,
        fila.Client(broker.address) as client,
        pytest.raises(fila.errors.ExhaustedError, match="min_free_bytes"),
    ):
        client.admin.redrive("orders.dlq")


def test_dead_letters_moved_back_stay_where_they_are_after_a_kill(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker, fila.Client(broker.address) as client:
        client.admin.create_queue("orders")
        fill(client, "orders", [b"x"] * 50)
        bury(client, "orders", 50)
        assert client.admin.redrive("orders.dlq", 20) == 20
        broker.kill()

    with BrokerProcess(tmp_path / "data") as broker, fila.Client(broker.address) as client:
        assert client.admin.stats("orders").ready == 20
        assert client.admin.stats("orders.dlq").ready == 30
        assert {message.attempts for message in browse(client, "orders")} == {0}
        assert {message.attempts for message in browse(client, "orders.dlq")} == {1}
