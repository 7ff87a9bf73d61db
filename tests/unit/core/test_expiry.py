"""What time does by itself, on each of the two clocks."""

import pytest

from fila.core import expiry
from fila.model import NS_PER_S, QueueSettings, Reason, Timing
from tests.unit.core.driver import DLQ, QUEUE, Driver


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def test_a_lease_ends_with_the_queues_timeout_and_counts_an_attempt(driver: Driver) -> None:
    driver.enqueue()
    driver.take_one()

    driver.pass_time(29.999)
    assert driver.take() == []
    driver.pass_time(0.001)
    assert driver.take_one().attempts == 1


def test_a_message_whose_lease_ended_is_in_front_again(driver: Driver) -> None:
    first, second, third = driver.enqueue(3)
    driver.take(2)
    driver.pass_time(30)

    assert [delivery.sequence for delivery in driver.take(3)] == [first, second, third]


def test_the_last_lease_to_run_out_dead_letters_the_message() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_attempts=2))
    driver.enqueue()

    for _ in range(2):
        driver.take_one()
        driver.pass_time(30)

    dead = driver.take_one(queue=DLQ)
    assert dead.message.dead is not None
    assert dead.message.dead.reason is Reason.MAX_ATTEMPTS
    assert dead.attempts == 2


def test_leases_and_delays_do_not_follow_a_jump_of_the_wall_clock(driver: Driver) -> None:
    driver.enqueue()
    driver.take_one()
    driver.enqueue(timing=Timing(delay_ms=30_000))

    driver.jump(3600)
    assert driver.take(2) == []
    driver.jump(-7200)
    driver.pass_time(30)
    assert len(driver.take(2)) == 2


def test_a_time_to_live_follows_the_wall_clock(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=1000))

    driver.jump(1)

    assert driver.depth() == 0
    assert driver.depth(DLQ) == 1


def test_a_message_that_outlived_its_time_is_dead_as_expired(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=1000))
    driver.pass_time(1)

    dead = driver.take_one(queue=DLQ)

    assert dead.message.dead is not None
    assert dead.message.dead.reason is Reason.EXPIRED
    assert dead.message.dead.source_queue == QUEUE
    assert dead.attempts == 0


def test_the_first_delivery_ends_the_time_to_live(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=1000))
    driver.release(driver.take_one())

    driver.pass_time(3600)

    assert driver.depth(DLQ) == 0
    assert driver.take_one().attempts == 0


def test_the_first_delivery_ends_the_time_to_live_over_a_restart_too(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=1000))
    driver.release(driver.take_one())

    driver.restart(down_s=3600)

    assert driver.depth(DLQ) == 0
    assert driver.depth() == 1


def test_what_is_paused_expires_all_the_same(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=1000))
    driver.pause()

    driver.pass_time(1)

    assert driver.depth(DLQ) == 1


def test_what_is_due_is_not_done_all_in_one_pass(driver: Driver) -> None:
    count = expiry.DUE_MAX + 10
    driver.enqueue(count, timing=Timing(delay_ms=1000))
    driver.now_ns += 1_000_000_000

    driver.step()
    assert driver.scheduler.stats(QUEUE, now_ns=0).delayed == 10
    assert driver.due_ns() == 0
    driver.step()
    assert driver.scheduler.stats(QUEUE, now_ns=0).delayed == 0


def test_it_says_when_the_next_thing_is_due(driver: Driver) -> None:
    assert driver.due_ns() is None
    driver.enqueue(timing=Timing(delay_ms=5000))
    assert driver.due_ns() == 5_000_000_000
    driver.enqueue(timing=Timing(deliver_at_ns=driver.wall_ns + 3))
    assert driver.due_ns() == 3
    driver.pass_time(100)
    assert driver.due_ns() is None


def test_a_message_whose_delay_and_life_ended_while_nobody_looked_is_not_delivered(
    driver: Driver,
) -> None:
    driver.consume()
    driver.enqueue(timing=Timing(delay_ms=1000, ttl_ms=1000))

    driver.pass_time(3)

    assert driver.delivered == []
    assert driver.depth(DLQ) == 1


def test_of_more_than_a_pass_can_expire_none_is_delivered_late(driver: Driver) -> None:
    count = expiry.DUE_MAX + 10
    driver.enqueue(count, timing=Timing(ttl_ms=1000))
    driver.now_ns += 2 * NS_PER_S
    driver.wall_ns += 2 * NS_PER_S

    driver.consume(credit=count)
    driver.run()

    assert driver.delivered == []
    assert driver.depth(DLQ) == count


def test_of_more_than_a_pass_can_end_none_is_settled_late(driver: Driver) -> None:
    count = expiry.DUE_MAX + 10
    driver.enqueue(count)
    taken = driver.take(count)
    driver.now_ns += 30 * NS_PER_S
    driver.wall_ns += 30 * NS_PER_S

    assert len(driver.ack(*taken).errors) == count
    assert driver.depth() == count
