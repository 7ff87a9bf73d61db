"""Consumers come, subscribe, change their credit and go."""

import pytest

from fila.core import commands as c
from fila.errors import QueueNotFoundError
from tests.unit.core.driver import QUEUE, Driver


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def test_a_consumer_gets_nothing_before_it_subscribes(driver: Driver) -> None:
    driver.enqueue()

    driver.run(c.OpenConsumer(consumer=9, credit=10))

    assert not driver.delivered


def test_an_unknown_queue_cannot_be_subscribed(driver: Driver) -> None:
    driver.run(c.OpenConsumer(consumer=9, credit=10))

    with pytest.raises(QueueNotFoundError):
        driver.do(c.Subscribe(tag=0, consumer=9, queue="nowhere"))


def test_subscribing_twice_changes_nothing(driver: Driver) -> None:
    consumer = driver.consume(credit=5)
    driver.do(c.Subscribe(tag=0, consumer=consumer, queue=QUEUE))

    driver.enqueue(10)

    assert len(driver.delivered) == 5
    assert driver.scheduler.summary(QUEUE).consumers == 1


def test_after_unsubscribing_nothing_comes_but_what_is_held_stays_leased(driver: Driver) -> None:
    driver.enqueue()
    consumer = driver.consume()
    driver.do(c.Unsubscribe(tag=0, consumer=consumer, queue=QUEUE))
    driver.enqueue()

    (held,) = driver.delivered
    assert driver.scheduler.summary(QUEUE).in_flight == 1
    assert not driver.ack(held).errors


def test_who_subscribes_again_gets_messages_again(driver: Driver) -> None:
    consumer = driver.consume()
    driver.do(c.Unsubscribe(tag=0, consumer=consumer, queue=QUEUE))
    driver.enqueue()
    assert not driver.delivered

    driver.do(c.Subscribe(tag=0, consumer=consumer, queue=QUEUE))

    assert len(driver.delivered) == 1


def test_more_credit_brings_more_messages_and_less_brings_none(driver: Driver) -> None:
    driver.enqueue(10)
    consumer = driver.consume(credit=2)
    driver.set_credit(consumer, 5)
    assert len(driver.delivered) == 5

    driver.set_credit(consumer, 1)
    driver.ack(*driver.delivered[:4])
    assert len(driver.delivered) == 5
    driver.ack(driver.delivered[4])
    assert len(driver.delivered) == 6


def test_a_credit_of_nothing_stops_deliveries(driver: Driver) -> None:
    consumer = driver.consume()
    driver.set_credit(consumer, 0)

    driver.enqueue()

    assert not driver.delivered


def test_a_consumer_that_goes_keeps_nothing_beyond_its_leases(driver: Driver) -> None:
    driver.enqueue(3)
    driver.close(driver.consume(credit=2))

    assert driver.scheduler.summary(QUEUE).in_flight == 2
    driver.pass_time(30)
    assert [taken.attempts for taken in driver.take(3)] == [1, 1, 0]


def test_leases_of_a_consumer_that_went_can_still_be_settled(driver: Driver) -> None:
    driver.enqueue()

    assert not driver.ack(driver.take_one()).errors


def test_release_on_disconnect_gives_back_at_once_and_counts_nothing(driver: Driver) -> None:
    sequences = driver.enqueue(3)
    driver.close(driver.consume(credit=2, release_on_disconnect=True))

    again = driver.take(3)

    assert [taken.sequence for taken in again] == sequences
    assert [taken.attempts for taken in again] == [0, 0, 0]


def test_what_never_left_goes_back_at_once(driver: Driver) -> None:
    sent, unsent = driver.enqueue(2)
    consumer = driver.consume()
    driver.close(consumer, driver.delivered[1])

    assert [taken.sequence for taken in driver.take(2)] == [unsent]
    driver.pass_time(30)
    assert sent in [taken.sequence for taken in driver.take(2)]


def test_what_never_left_but_is_leased_to_another_by_now_stays_there(driver: Driver) -> None:
    driver.enqueue()
    first = driver.consume(credit=1)
    stale = driver.delivered[0]
    driver.pass_time(30)
    # It came back, to the same consumer, under another token.
    assert len(driver.delivered) == 2

    driver.close(first, stale)

    assert driver.scheduler.summary(QUEUE).in_flight == 1


def test_closing_twice_and_changing_who_is_gone_do_nothing(driver: Driver) -> None:
    consumer = driver.consume()
    driver.close(consumer)

    driver.close(consumer)
    driver.set_credit(consumer, 10)
    driver.do(c.Unsubscribe(tag=0, consumer=consumer, queue=QUEUE))
    driver.do(c.Subscribe(tag=0, consumer=consumer, queue=QUEUE))
    driver.enqueue()

    assert not driver.delivered
    assert driver.scheduler.consumers(None, now_ns=0) == []


def test_messages_of_a_consumer_that_goes_are_at_once_another_ones(driver: Driver) -> None:
    driver.enqueue(2)
    first = driver.consume(release_on_disconnect=True)
    second = driver.consume()

    driver.close(first)

    assert [taken.consumer for taken in driver.delivered] == [first, first, second, second]
