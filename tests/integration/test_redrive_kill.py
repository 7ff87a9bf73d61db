"""SIGKILL at random moments of a redrive: each message is in exactly one place, and whole."""

import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import fila
from tests import proof
from tests.integration.broker_process import BrokerProcess

ROUNDS = proof.length(reduced=5, full=100)
SEED = 20261203
MESSAGES = 3000
_DELAY_SECONDS_MAX = 0.15
_TURNS_MAX = 6 * ROUNDS


def payload(number: int) -> bytes:
    return b"%d:" % number + bytes(number % 700)


def fill(address: str) -> dict[str, int]:
    """Dead letters; the number of each by its id."""
    with fila.Client(address) as client:
        client.admin.create_queue("orders", max_attempts=1)
        messages = [
            fila.NewMessage(
                payload(number),
                headers={"number": str(number)},
                fairness_key=f"tenant {number % 7}",
            )
            for number in range(MESSAGES)
        ]
        sent = client.enqueue_batch("orders", messages)
        buried = 0
        while buried < MESSAGES:
            leased = client.lease("orders", max_messages=500)
            for message in leased:
                client.nack(message, f"error {message.headers['number']}")
            buried += len(leased)
        client.flush()
    return {each: number for number, each in enumerate(sent) if isinstance(each, str)}


def redrive(address: str, begun: threading.Event) -> None:
    """All of them, for as long as the broker lives."""
    with fila.Client(address) as client:
        begun.set()
        try:
            client.admin.redrive("orders.dlq")
        except fila.FilaError:
            # It was killed.
            return


def look(address: str, queue: str) -> list[fila.Message]:
    with fila.Client(address) as client:
        return [found.message for found in client.admin.browse(queue, page_size=1000)]


def check(numbers: dict[str, int], alive: list[fila.Message], dead: list[fila.Message]) -> None:
    """Nothing is lost, nothing is there twice, and nothing is half-way."""
    places = Counter(message.id for message in alive + dead)
    assert set(places) == set(numbers)
    assert set(places.values()) == {1}
    for message in alive + dead:
        number = numbers[message.id]
        assert message.payload == payload(number)
        assert message.headers == {"number": str(number)}
        assert message.fairness_key == f"tenant {number % 7}"
    assert {(message.attempts, message.dead_letter, message.queue) for message in alive} <= {
        (0, None, "orders")
    }
    for message in dead:
        assert (message.attempts, message.queue) == (1, "orders.dlq")
        assert message.dead_letter is not None
        assert message.dead_letter.last_error == f"error {numbers[message.id]}"


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_a_redrive_killed_half_way_leaves_each_message_in_one_place(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    half_way, moved, turn = 0, 0, 0
    # Only kills in the middle count.
    while half_way < ROUNDS:
        turn += 1
        assert turn <= _TURNS_MAX, (half_way, turn)
        data_dir = tmp_path / f"data-{turn}"
        with BrokerProcess(data_dir) as broker:
            numbers = fill(broker.address)
            begun = threading.Event()
            mover = threading.Thread(target=redrive, args=(broker.address, begun))
            mover.start()
            begun.wait()
            time.sleep(chance.uniform(0, _DELAY_SECONDS_MAX))
            broker.kill()
            mover.join()
        with BrokerProcess(data_dir) as broker:
            alive = look(broker.address, "orders")
            dead = look(broker.address, "orders.dlq")
            check(numbers, alive, dead)
            half_way += 0 < len(alive) < MESSAGES
            moved += len(alive)
            with fila.Client(broker.address) as client:
                assert client.admin.redrive("orders.dlq") == len(dead)
            check(numbers, look(broker.address, "orders"), [])

    proof.record(
        "redrive", seed=SEED, rounds=turn, messages=MESSAGES, half_way=half_way, moved=moved
    )


def test_the_check_notices_what_it_is_there_for(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        numbers = fill(broker.address)
        dead = look(broker.address, "orders.dlq")

    check(numbers, [], dead)
    for wrong in (dead[1:], [*dead, dead[0]]):
        with pytest.raises(AssertionError):
            check(numbers, [], wrong)
    with pytest.raises(AssertionError):
        check(numbers, dead[:1], dead[1:])
