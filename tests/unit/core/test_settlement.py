"""Ack, nack, release and extend need the live lease, and what each of them does."""

import pytest

from fila.core import commands as c
from fila.core.effects import SettleResult
from fila.errors import QueueNotFoundError
from fila.model import QueueSettings, Reason
from tests.unit.core.driver import DLQ, QUEUE, Delivery, Driver


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def _refused(result: SettleResult) -> list[int]:
    assert all(error.code == "NOT_FOUND" for error in result.errors)
    return [error.index for error in result.errors]


def test_an_acked_message_is_gone(driver: Driver) -> None:
    driver.enqueue()

    assert not driver.ack(driver.take_one()).errors
    driver.pass_time(3600)
    assert driver.depth() == 0
    assert not driver.stored_sequences()


@pytest.mark.parametrize("action", c.Action)
def test_without_a_lease_nothing_is_settled(driver: Driver, action: c.Action) -> None:
    driver.enqueue()
    taken = driver.take_one()
    driver.ack(taken)

    assert _refused(driver.settle(action, taken)) == [0]


@pytest.mark.parametrize("action", c.Action)
def test_after_the_lease_ended_nothing_is_settled(driver: Driver, action: c.Action) -> None:
    driver.enqueue()
    taken = driver.take_one()
    driver.pass_time(30)

    assert _refused(driver.settle(action, taken)) == [0]
    assert driver.depth() == 1


@pytest.mark.parametrize("action", c.Action)
def test_a_stale_worker_cannot_settle_the_lease_of_another(
    driver: Driver, action: c.Action
) -> None:
    driver.enqueue()
    stale = driver.take_one()
    driver.pass_time(30)
    fresh = driver.take_one()

    assert stale.token != fresh.token
    assert _refused(driver.settle(action, stale)) == [0]
    assert not driver.ack(fresh).errors


def test_without_a_token_whoever_holds_the_lease_is_meant(driver: Driver) -> None:
    driver.enqueue()
    driver.take_one()
    driver.pass_time(30)
    fresh = driver.take_one()

    assert not driver.ack(fresh._replace(token=0)).errors
    assert driver.depth() == 0


def test_of_a_batch_the_live_ones_are_settled_and_the_others_named(driver: Driver) -> None:
    driver.enqueue(3)
    a, b, d = driver.take(3)
    driver.ack(b)

    assert _refused(driver.ack(a, b, d, a)) == [1, 3]
    assert driver.depth() == 0


def test_an_unknown_queue_is_refused(driver: Driver) -> None:
    driver.enqueue()
    elsewhere = driver.take_one()._replace(queue="nowhere")

    with pytest.raises(QueueNotFoundError):
        driver.ack(elsewhere)


def test_tokens_are_never_repeated_not_even_after_a_restart(driver: Driver) -> None:
    driver.enqueue()
    tokens = []
    for _ in range(3):
        taken = driver.take_one()
        tokens.append(taken.token)
        driver.release(taken)
        driver.restart()

    assert len(set(tokens)) == 3
    assert tokens == sorted(tokens)


def test_a_nack_counts_an_attempt_and_keeps_the_error(driver: Driver) -> None:
    driver.enqueue()
    driver.nack(driver.take_one(), error="boom", delay_ms=0)

    again = driver.take_one()

    assert again.attempts == 1
    assert again.message.last_error == "boom"


def test_a_release_counts_nothing_and_puts_the_message_back_in_front(driver: Driver) -> None:
    first, second = driver.enqueue(2)
    driver.release(driver.take_one())

    again = driver.take(2)

    assert [delivery.sequence for delivery in again] == [first, second]
    assert again[0].attempts == 0


def test_a_nack_with_a_delay_waits_exactly_so_long(driver: Driver) -> None:
    driver.enqueue()
    driver.nack(driver.take_one(), delay_ms=5000)
    driver.consume()
    before = len(driver.delivered)

    driver.pass_time(4.999)
    assert len(driver.delivered) == before
    driver.pass_time(0.001)
    assert len(driver.delivered) == before + 1


def test_a_nack_without_a_delay_waits_by_the_queues_backoff() -> None:
    driver = Driver()
    driver.create(
        settings=QueueSettings(
            retry_delay_ms=100, retry_backoff=3, retry_delay_max_ms=1000, max_attempts=0
        )
    )
    driver.enqueue()

    for delay_ms in (100, 300, 900, 1000, 1000):
        driver.nack(driver.take_one())
        assert driver.due_ns() == delay_ms * 1_000_000
        driver.pass_time(delay_ms / 1000)


def test_by_default_the_backoff_is_one_second_doubled_up_to_five_minutes() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_attempts=0))
    driver.enqueue()
    delays = []

    for _ in range(12):
        driver.nack(driver.take_one())
        due_ns = driver.due_ns()
        assert due_ns is not None
        delays.append(due_ns // 1_000_000_000)
        driver.pass_time(delays[-1])

    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_a_backoff_of_zero_retries_at_once_behind_the_others() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(retry_delay_ms=0))
    first, second = driver.enqueue(2)
    driver.nack(driver.take_one())

    assert [delivery.sequence for delivery in driver.take(2)] == [second, first]


def test_ten_thousand_attempts_overflow_nothing() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_attempts=0, retry_backoff=10))
    driver.enqueue()
    taken = driver.take_one()
    taken.message.attempts = 10_000

    driver.nack(taken)

    assert driver.due_ns() == 300 * 1_000_000_000


def test_a_limit_of_n_means_at_most_n_deliveries() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_attempts=3, retry_delay_ms=0))
    driver.enqueue()

    deliveries = []
    while driver.depth():
        deliveries.append(driver.take_one())
        driver.nack(deliveries[-1], error="no")

    assert len(deliveries) == 3
    dead = driver.take_one(queue=DLQ)
    assert dead.message.dead is not None
    assert dead.message.dead.reason is Reason.MAX_ATTEMPTS
    assert dead.message.dead.last_error == "no"
    assert dead.attempts == 3


def test_without_a_limit_attempts_go_on() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_attempts=0, retry_delay_ms=0))
    driver.enqueue()

    for attempt in range(50):
        taken = driver.take_one()
        assert taken.attempts == attempt
        driver.nack(taken)


def test_a_rejected_message_is_dead_with_all_that_is_known_of_it(driver: Driver) -> None:
    driver.enqueue_key("tenant", weight=3)
    taken = driver.take_one()
    driver.pass_time(2)

    driver.nack(taken, error="bad input", dead_letter=True, delay_ms=99)

    dead = driver.take_one(queue=DLQ)
    assert (dead.sequence, dead.key, dead.attempts) == (taken.sequence, "tenant", 1)
    assert dead.message.dead is not None
    assert dead.message.dead.reason is Reason.REJECTED
    assert dead.message.dead.last_error == "bad input"
    assert dead.message.dead.source_queue == QUEUE
    assert dead.message.dead.dead_at_ns == driver.wall_ns


def test_in_a_dead_letter_queue_nothing_is_given_up(driver: Driver) -> None:
    driver.bury()

    for attempt in range(1, 40):
        dead = driver.take_one(queue=DLQ)
        assert dead.attempts == attempt
        driver.nack(dead, dead_letter=True, error="again")
        driver.pass_time(300)

    assert driver.depth(DLQ) == 1


def test_a_dead_letter_can_be_acked(driver: Driver) -> None:
    driver.bury()

    assert not driver.ack(driver.take_one(queue=DLQ)).errors
    assert not driver.stored_sequences()


def test_a_lease_of_the_dead_letter_queue_is_none_of_the_queue(driver: Driver) -> None:
    driver.bury()
    dead = driver.take_one(queue=DLQ)

    assert _refused(driver.ack(dead._replace(queue=QUEUE))) == [0]


def test_an_extension_moves_the_deadline_to_the_queues_timeout_from_now(driver: Driver) -> None:
    driver.enqueue()
    taken = driver.take_one()
    driver.pass_time(20)
    driver.extend(taken)

    driver.pass_time(29.999)
    assert driver.scheduler.summary(QUEUE).in_flight == 1
    driver.pass_time(0.001)
    assert driver.scheduler.summary(QUEUE).in_flight == 0


def test_an_extension_may_also_shorten_the_lease(driver: Driver) -> None:
    driver.enqueue()
    driver.extend(driver.take_one(), delay_ms=1000)

    driver.pass_time(1)

    assert driver.take_one().attempts == 1


def test_an_extension_survives_a_restart(driver: Driver) -> None:
    driver.enqueue()
    taken = driver.take_one()
    driver.extend(taken, delay_ms=3_600_000)
    driver.restart(down_s=1800)

    driver.pass_time(1799)
    assert driver.scheduler.summary(QUEUE).in_flight == 1
    driver.pass_time(1)
    assert driver.scheduler.summary(QUEUE).in_flight == 0


def test_settling_makes_room_for_the_next_delivery(driver: Driver) -> None:
    driver.enqueue(3)
    driver.consume(credit=1)

    for held in range(1, 4):
        assert len(driver.delivered) == held
        last: Delivery = driver.delivered[-1]
        driver.ack(last)
