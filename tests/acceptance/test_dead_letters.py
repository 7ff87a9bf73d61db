"""Dead letters as an operator meets them: seen with their reason, and moved back."""

import json

import pytest

import fila
from tests.acceptance.processes import Broker, Finished


def done(finished: Finished) -> str:
    assert (finished.code, finished.err) == (0, ""), finished
    return finished.out


def bury(broker: Broker, queue: str, count: int = 1, *, settings: tuple[str, ...] = ()) -> None:
    done(broker.fila("queue", "create", queue, *settings))
    done(broker.fila("enqueue", queue, "x", "--count", str(count)))
    with fila.Client(broker.addr) as client:
        for _ in range(0, count, 500):
            for message in client.lease(queue, max_messages=500):
                client.nack(message, "bad address", dead_letter=True)
        client.flush()


def test_dead_letters_move_back_and_the_answer_says_how_many(broker: Broker) -> None:
    bury(broker, "orders", 3)

    told = done(broker.fila("redrive", "orders.dlq", "--count", "2"))
    rest = json.loads(done(broker.fila("redrive", "orders.dlq", "--json")))
    none = done(broker.fila("redrive", "orders.dlq"))

    assert told == "moved 2 messages back to orders\n"
    assert rest == {"queue": "orders.dlq", "redriven": 1}
    assert none == "moved 0 messages back to orders\n"
    assert done(broker.fila("consume", "orders", "--timeout", "0")) == "x\n" * 3


def test_thousands_move_in_one_command(broker: Broker) -> None:
    bury(broker, "thousands", 4500)

    assert done(broker.fila("redrive", "thousands.dlq")) == (
        "moved 4,500 messages back to thousands\n"
    )


def test_what_has_moved_is_told_when_there_is_no_room_for_the_rest(broker: Broker) -> None:
    bury(broker, "small", 5, settings=("--max-depth", "5"))
    done(broker.fila("enqueue", "small", "y", "--count", "2"))

    finished = broker.fila("redrive", "small.dlq")
    again = broker.fila("redrive", "small.dlq", "--json")

    assert finished.code == again.code == 1
    assert finished.out == "moved 3 messages back to small\n"
    assert "queue 'small' is full" in finished.err
    assert finished.err.count("\n") == 1
    assert again.out == ""


@pytest.mark.parametrize(
    ("name", "says"),
    [("plain", "not a dead-letter queue"), ("nowhere.dlq", "not exist"), ("lonely.dlq", "source")],
)
def test_what_cannot_be_redriven_is_one_line(broker: Broker, name: str, says: str) -> None:
    if name != "nowhere.dlq":
        done(broker.fila("queue", "create", name))

    finished = broker.fila("redrive", name)

    assert (finished.code, finished.out) == (1, "")
    assert says in finished.err
    assert finished.err.count("\n") == 1


def test_a_count_of_none_is_wrong_usage(broker: Broker) -> None:
    assert broker.fila("redrive", "orders.dlq", "--count", "0").code == 2


def test_a_dead_letter_shows_why_it_is_one(broker: Broker) -> None:
    bury(broker, "why")

    shown = done(broker.fila("queue", "browse", "why.dlq"))
    document = json.loads(done(broker.fila("queue", "browse", "why.dlq", "--json")))

    assert "rejected: bad address" in shown
    assert document["dead_letter"]["source_queue"] == "why"
    assert document["attempts"] == 1
