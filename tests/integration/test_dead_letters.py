"""What becomes of failed deliveries on a real broker: retries on time, and dead letters."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import fila
from tests.integration.broker_process import BrokerProcess

DELAY = timedelta(milliseconds=1500)
TOLERANCE = timedelta(milliseconds=50)
# Who says how long: the consumer that fails, or the queue's script whatever the consumer says.
BY_NACK, BY_SCRIPT = "", "function on_failure(msg) return { delay_ms = 1500 } end"
# A machine may be too busy to start a broker again within the delay.
RESTARTS_MAX = 5


@pytest.fixture
def client(shared_broker: BrokerProcess) -> Iterator[fila.Client]:
    with fila.Client(shared_broker.address) as made:
        yield made


def fail_once(client: fila.Client, queue: str, script: str) -> datetime:
    """Nack a new message, to be tried again in a second and a half; when that will be."""
    client.enqueue(queue, b"x")
    [message] = client.lease(queue)
    before = datetime.now(UTC)
    client.nack(message, "later", delay=60 if script else DELAY.total_seconds())
    client.flush()
    after = datetime.now(UTC)
    [delayed] = client.admin.browse(queue)
    assert delayed.due_at is not None
    assert before + DELAY <= delayed.due_at <= after + DELAY
    return delayed.due_at


def late_by(client: fila.Client, queue: str, due_at: datetime) -> timedelta:
    """How long after its time the message is delivered again, by the broker's own clock."""
    [message] = client.lease(queue, wait=10)
    assert message.attempts == 1
    return message.leased_at - due_at


@pytest.mark.parametrize("script", [BY_NACK, BY_SCRIPT], ids=["nack", "script"])
def test_a_retry_comes_back_after_its_delay(client: fila.Client, script: str) -> None:
    queue = f"later-{bool(script)}"
    client.admin.create_queue(queue, on_failure_script=script)

    late = late_by(client, queue, fail_once(client, queue, script))

    assert timedelta() <= late <= TOLERANCE


@pytest.mark.parametrize("script", [BY_NACK, BY_SCRIPT], ids=["nack", "script"])
def test_a_retry_comes_back_on_time_though_the_broker_was_killed(
    tmp_path: Path, script: str
) -> None:
    for turn in range(RESTARTS_MAX):
        data_dir = tmp_path / f"data-{turn}"
        with BrokerProcess(data_dir) as broker, fila.Client(broker.address) as client:
            client.admin.create_queue("later", on_failure_script=script)
            due_at = fail_once(client, "later", script)
            broker.kill()
        with BrokerProcess(data_dir) as broker, fila.Client(broker.address) as client:
            if datetime.now(UTC) + 2 * TOLERANCE < due_at:
                late = late_by(client, "later", due_at)
                break
    else:
        pytest.fail("the broker never started within the delay")

    assert timedelta() <= late <= TOLERANCE


def bury_by(client: fila.Client, queue: str, reason: str) -> str:
    """A message that ends as a dead letter; its id."""
    message_id = client.enqueue(
        queue,
        b"hello",
        headers={"tenant": "acme"},
        fairness_key="acme",
        ttl=0.1 if reason == "expired" else None,
    )
    while reason != "expired" and client.admin.stats(queue).depth:
        for message in client.lease(queue, wait=0.1):
            client.nack(message, "bad address", dead_letter=reason == "rejected")
        client.flush()
    return message_id


@pytest.mark.parametrize(
    ("reason", "attempts", "last_error"),
    [("rejected", 1, "bad address"), ("max_attempts", 2, "bad address"), ("expired", 0, "")],
)
def test_a_dead_letter_keeps_what_it_was_and_says_why(
    client: fila.Client, reason: str, attempts: int, last_error: str
) -> None:
    queue = f"for-{reason}"
    client.admin.create_queue(queue, max_attempts=2, retry_delay_ms=0)
    before = time.time()
    message_id = bury_by(client, queue, reason)
    [consumed] = client.lease(f"{queue}.dlq", wait=10)
    client.release(consumed)
    client.flush()
    [browsed] = [found.message for found in client.admin.browse(f"{queue}.dlq")]

    for message in (consumed, browsed):
        assert (message.id, message.payload) == (message_id, b"hello")
        assert (message.headers, message.fairness_key) == ({"tenant": "acme"}, "acme")
        assert (message.queue, message.attempts) == (f"{queue}.dlq", attempts)
        dead = message.dead_letter
        assert dead is not None
        assert (dead.reason, dead.last_error, dead.source_queue) == (reason, last_error, queue)
        assert dead.dead_at is not None
        assert before - 1 <= dead.dead_at.timestamp() <= time.time() + 1


def test_dead_letters_are_consumed_like_any_message(client: fila.Client) -> None:
    client.admin.create_queue("consumed")
    message_id = bury_by(client, "consumed", "rejected")

    with client.consume("consumed.dlq") as consumer:
        message = next(iter(consumer))
        client.ack(message)
        client.flush()

    assert message.id == message_id
    assert message.dead_letter is not None
    assert client.admin.stats("consumed.dlq").depth == 0
