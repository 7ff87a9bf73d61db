"""Why something is not delivered, asked of a real broker through the SDK."""

import itertools
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

import fila
from fila.wire._pb import admin_pb2 as a
from tests.integration.broker_process import BrokerProcess
from tests.integration.rpc import RefusedError, Rpc

FactsT = TypeVar("FactsT")
SECRET = "payload-or-header"
_names = itertools.count(1)


@pytest.fixture
def client(shared_broker: BrokerProcess) -> Iterator[fila.Client]:
    with fila.Client(shared_broker.address) as client:
        yield client


@pytest.fixture
def queue(client: fila.Client) -> str:
    name = f"why-{next(_names)}"
    client.admin.create_queue(name)
    return name


@pytest.fixture
def throttle_key(client: fila.Client) -> Iterator[str]:
    """Limited to one message in a thousand seconds."""
    key = f"provider:{next(_names)}"
    client.admin.set_config(f"throttle:{key}:burst", "1")
    client.admin.set_config(f"throttle:{key}:rate", "0.001")
    yield key
    client.admin.delete_config(f"throttle:{key}:rate")


def put(client: fila.Client, queue: str, **options: object) -> str:
    header = {"header": SECRET}
    return client.enqueue(queue, SECRET.encode(), headers=header, **options)  # type: ignore[arg-type]


def take(client: fila.Client, queue: str) -> fila.Message:
    (message,) = client.lease(queue, 1, wait=5)
    return message


def wait_for_consumer(client: fila.Client, queue: str) -> None:
    """Until the broker knows the consumer that was opened."""
    end = time.monotonic() + 10
    while not client.admin.consumers(queue):
        assert time.monotonic() < end
        time.sleep(0.01)


def codes(explanation: fila.Explanation) -> list[str]:
    return [cause.code.name for cause in explanation.causes]


def first(explanation: fila.Explanation, kind: type[FactsT]) -> FactsT:
    facts = explanation.causes[0].facts
    assert isinstance(facts, kind)
    return facts


def test_a_leased_message_names_its_consumer(client: fila.Client, queue: str) -> None:
    message_id = put(client, queue)

    with client.consume(queue, name="worker-7") as consumer:
        next(iter(consumer))
        explanation = client.admin.explain(queue, message_id=message_id)
        (listed,) = client.admin.consumers(queue)

    lease = first(explanation, fila.LeaseFacts)
    assert codes(explanation) == ["LEASED"]
    assert (lease.consumer_id, lease.consumer_name) == (listed.id, "worker-7")
    assert lease.peer == listed.peer
    assert 0 < lease.left_ms <= 30_000
    assert lease.until - lease.leased_at == timedelta(seconds=30)
    assert "worker-7" in explanation.summary


def test_a_delayed_message_says_until_when(client: fila.Client, queue: str) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    message_id = put(client, queue, deliver_at=at)

    explanation = client.admin.explain(queue, message_id=message_id)

    delay = first(explanation, fila.DelayFacts)
    assert codes(explanation) == ["DELAYED", "NO_CONSUMER"]
    assert delay.kind == "deliver_at"
    assert abs(delay.until - at) < timedelta(milliseconds=10)


def test_a_retry_tells_the_last_error(client: fila.Client, queue: str) -> None:
    message_id = put(client, queue)
    client.nack(take(client, queue), error="card declined", delay=600)
    client.flush()

    explanation = client.admin.explain(queue, message_id=message_id)

    assert codes(explanation) == ["DELAYED", "NO_CONSUMER"]
    assert first(explanation, fila.DelayFacts).kind == "retry"
    assert isinstance(explanation.subject, fila.MessageFacts)
    assert explanation.subject.last_error == "card declined"
    assert explanation.subject.attempts == 1


def test_two_obstacles_are_told_in_the_order_in_which_they_bind(
    client: fila.Client, queue: str, throttle_key: str
) -> None:
    client.admin.pause_queue(queue)
    ids = [put(client, queue, throttle_keys=[throttle_key]) for _ in range(3)]

    with client.consume(queue, prefetch=1):
        wait_for_consumer(client, queue)
        paused = client.admin.explain(queue, message_id=ids[2])
        client.admin.resume_queue(queue)
        resumed = client.admin.explain(queue, message_id=ids[2])

    assert codes(paused) == ["PAUSED", "WAITING_TURN", "THROTTLED"]
    assert codes(resumed)[0] == "THROTTLED"


def test_a_throttled_message_tells_its_bucket(
    client: fila.Client, queue: str, throttle_key: str
) -> None:
    ids = [put(client, queue, throttle_keys=[throttle_key]) for _ in range(3)]
    client.ack(take(client, queue))
    client.flush()

    explanation = client.admin.explain(queue, message_id=ids[2])

    (cause,) = (each for each in explanation.causes if each.code is fila.CauseCode.THROTTLED)
    assert isinstance(cause.facts, fila.ThrottleFacts)
    (bucket,) = cause.facts.buckets
    assert (bucket.key, bucket.rate_per_second, bucket.burst) == (throttle_key, 0.001, 1)
    assert bucket.tokens < 1
    assert bucket.holds_back
    assert bucket.next_token_ms is not None
    assert 900_000 < bucket.next_token_ms <= 1_000_000
    assert cause.facts.earliest_ms is not None
    assert 1_900_000 < cause.facts.earliest_ms <= 2_000_000
    assert f"throttle:{throttle_key}:rate" in cause.advice


def test_a_limit_of_nothing_holds_back_until_it_is_changed(
    client: fila.Client, queue: str, throttle_key: str
) -> None:
    put(client, queue, throttle_keys=[throttle_key])
    client.ack(take(client, queue))
    client.admin.set_config(f"throttle:{throttle_key}:rate", "0")
    message_id = put(client, queue, throttle_keys=[throttle_key])

    explanation = client.admin.explain(queue, message_id=message_id)

    (cause,) = (each for each in explanation.causes if each.code is fila.CauseCode.THROTTLED)
    assert isinstance(cause.facts, fila.ThrottleFacts)
    assert cause.facts.earliest_ms is None
    assert "until it is changed" in cause.text


def test_a_message_behind_others_tells_its_turn_and_who_is_full(
    client: fila.Client, queue: str
) -> None:
    for _ in range(3):
        put(client, queue, fairness_key="other")
    ids = [put(client, queue, fairness_key="mine", weight=2) for _ in range(5)]

    with client.consume(queue, prefetch=1) as consumer:
        next(iter(consumer))
        explanation = client.admin.explain(queue, message_id=ids[4])

    assert codes(explanation) == ["WAITING_TURN", "NO_CREDIT"]
    turn = first(explanation, fila.TurnFacts)
    assert 2 <= turn.ahead_in_lane <= 4
    assert (turn.weight, turn.cost, turn.quantum, turn.active_keys) == (2, 1, 1, 2)
    credit = explanation.causes[1].facts
    assert isinstance(credit, fila.CreditFacts)
    assert (credit.count, credit.credit, credit.held) == (1, credit.held, credit.credit)
    assert credit.moving


def test_a_message_that_will_expire_says_when(client: fila.Client, queue: str) -> None:
    message_id = put(client, queue, ttl=600)

    explanation = client.admin.explain(queue, message_id=message_id)

    assert codes(explanation) == ["NO_CONSUMER", "EXPIRING"]
    expiry = explanation.causes[1].facts
    assert isinstance(expiry, fila.ExpiryFacts)
    assert 500_000 < expiry.left_ms <= 600_000


def test_a_dead_letter_is_told_from_both_queues(client: fila.Client, queue: str) -> None:
    message_id = put(client, queue)
    client.nack(take(client, queue), error="boom", dead_letter=True)
    client.flush()

    from_here = client.admin.explain(queue, message_id=message_id)
    from_there = client.admin.explain(f"{queue}.dlq", message_id=message_id)

    assert (codes(from_here), codes(from_there)) == (
        ["DEAD_LETTER"],
        ["DEAD_LETTER", "NO_CONSUMER"],
    )
    dead = first(from_here, fila.DeadLetter)
    assert (dead.reason, dead.last_error, dead.source_queue) == ("rejected", "boom", queue)
    assert isinstance(from_here.subject, fila.MessageFacts)
    assert from_here.subject.queue == f"{queue}.dlq"
    assert f"{queue}.dlq" in from_here.causes[0].advice


def test_a_key_tells_its_counts_and_why_it_waits(
    client: fila.Client, queue: str, throttle_key: str
) -> None:
    for _ in range(3):
        put(client, queue, fairness_key="acme", throttle_keys=[throttle_key])
    put(client, queue, fairness_key="acme", delay=600)
    client.ack(take(client, queue))
    client.flush()

    with client.consume(queue, prefetch=1):
        wait_for_consumer(client, queue)
        key = client.admin.explain(queue, key="acme")
    unknown = client.admin.explain(queue, key="nobody")

    assert codes(key) == ["THROTTLED", "DELAYED"]
    assert isinstance(key.subject, fila.KeyFacts)
    assert (key.subject.ready, key.subject.delayed, key.subject.throttled) == (2, 1, 2)
    assert codes(unknown) == ["NOTHING_PENDING"]


def test_a_queue_tells_who_waits_longest(client: fila.Client, queue: str) -> None:
    empty = client.admin.explain(queue)
    for key in ("a", "b"):
        put(client, queue, fairness_key=key)

    explanation = client.admin.explain(queue)

    assert codes(empty) == ["NOTHING_PENDING", "NO_CONSUMER"]
    assert codes(explanation) == ["NO_CONSUMER"]
    assert isinstance(explanation.subject, fila.QueueFacts)
    assert [each.key for each in explanation.subject.longest_waiting] == ["a", "b"]


async def test_the_asynchronous_client_asks_the_same(
    shared_broker: BrokerProcess, queue: str
) -> None:
    async with fila.AsyncClient(shared_broker.address) as client:
        message_id = await client.enqueue(queue, b"x")

        explanation = await client.admin.explain(queue, message_id=message_id)

    assert codes(explanation) == ["NO_CONSUMER"]


def test_neither_payload_nor_header_is_ever_shown(client: fila.Client, queue: str) -> None:
    message_id = put(client, queue)

    for answer in (
        client.admin.explain(queue, message_id=message_id),
        client.admin.explain(queue, key="default"),
        client.admin.explain(queue),
    ):
        assert SECRET not in repr(answer)


def test_a_message_that_is_not_there_is_said_to_be_gone_or_elsewhere(
    client: fila.Client, queue: str
) -> None:
    settled, waiting = put(client, queue), put(client, queue)
    client.ack(take(client, queue))
    client.flush()
    client.admin.create_queue(f"{queue}-other")

    def refusal(name: str, message_id: str) -> str:
        with pytest.raises(fila.errors.MessageNotFoundError) as caught:
            client.admin.explain(name, message_id=message_id)
        return str(caught.value)

    assert "acknowledged or removed" in refusal(queue, settled)
    assert f"ask for it in queue '{queue}'" in refusal(f"{queue}.dlq", waiting)
    assert "another queue's" in refusal(f"{queue}-other", waiting)


@pytest.mark.parametrize(
    ("request_fields", "code"),
    [
        ({"queue": "no-such-queue"}, "NOT_FOUND"),
        ({"queue": ""}, "INVALID_ARGUMENT"),
        ({"queue": "a\nb"}, "INVALID_ARGUMENT"),
        ({"queue": "{queue}", "message_id": "not-an-id"}, "INVALID_ARGUMENT"),
        ({"queue": "{queue}", "message_id": "\x1b[2J"}, "INVALID_ARGUMENT"),
        ({"queue": "{queue}", "fairness_key": "a\x00b"}, "INVALID_ARGUMENT"),
        ({"queue": "{queue}", "fairness_key": "k" * 513}, "INVALID_ARGUMENT"),
        ({"queue": "{queue}", "message_id": "0" * 32}, "NOT_FOUND"),
        ({"queue": "{queue}", "message_id": "f" * 32}, "NOT_FOUND"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(
    rpc: Rpc, queue: str, request_fields: dict[str, str], code: str
) -> None:
    fields = {name: value.replace("{queue}", queue) for name, value in request_fields.items()}

    with pytest.raises(RefusedError) as caught:
        rpc.call(a.ExplainRequest(**fields), a.ExplainResponse)

    assert caught.value.code == code
    assert caught.value.details.isprintable()


def test_a_question_about_two_things_is_refused(rpc: Rpc, client: fila.Client, queue: str) -> None:
    message_id = put(client, queue)
    request = a.ExplainRequest(queue=queue, message_id=message_id, fairness_key="default")

    with pytest.raises(RefusedError, match=r"INVALID_ARGUMENT: .* not both"):
        rpc.call(request, a.ExplainResponse)
    with pytest.raises(fila.errors.InvalidArgumentError, match="give either"):
        client.admin.explain(queue, message_id=message_id, key="default")


def test_a_question_about_nothing_in_particular_leaves_it_out(
    client: fila.Client, queue: str
) -> None:
    for subjects in ({"key": ""}, {"message_id": ""}):
        with pytest.raises(fila.errors.InvalidArgumentError, match="leave it out"):
            client.admin.explain(queue, **subjects)


def test_an_id_that_only_ends_like_a_messages_is_nobodys(client: fila.Client, queue: str) -> None:
    message_id = put(client, queue)

    with pytest.raises(fila.errors.MessageNotFoundError):
        client.admin.explain(queue, message_id="00000000" + message_id[8:])
