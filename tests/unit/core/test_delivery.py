"""Bringing messages and consumers together."""

from collections import Counter

import pytest

from fila.core import commands as c
from fila.core import delivery
from fila.core.effects import PutMessages, PutProgress
from fila.model import NS_PER_S, QueueSettings, Spec
from tests.unit.core.driver import QUEUE, Driver


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def test_a_consumer_that_waits_gets_a_message_in_the_pass_that_accepts_it(driver: Driver) -> None:
    driver.consume()

    effects = driver.step(c.Enqueue(tag=0, queue=QUEUE, bodies=[b""], specs=[Spec()]))

    assert len(driver.delivered) == 1
    kinds = [type(change) for change in effects.mutations]
    assert kinds.index(PutMessages) < kinds.index(PutProgress)


def test_a_delivery_leases_for_the_queues_timeout() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(visibility_timeout_ms=1000))
    driver.enqueue()

    message = driver.take_one().message

    assert message.leased_at_ns == driver.wall_ns
    assert message.due_wall_ns == driver.wall_ns + NS_PER_S
    assert driver.due_ns() == NS_PER_S


def test_nobody_gets_more_than_credit(driver: Driver) -> None:
    driver.enqueue(10)
    driver.consume(credit=3)

    assert len(driver.delivered) == 3
    assert driver.scheduler.summary(QUEUE).in_flight == 3


def test_consumers_take_turns(driver: Driver) -> None:
    first, second = driver.consume(), driver.consume()
    driver.enqueue(10)

    assert Counter(delivery.consumer for delivery in driver.delivered) == {first: 5, second: 5}


def test_consumers_take_turns_over_single_messages_too(driver: Driver) -> None:
    consumers = [driver.consume() for _ in range(3)]

    for _ in range(6):
        driver.enqueue()

    assert [delivery.consumer for delivery in driver.delivered] == consumers * 2


def test_a_slow_consumer_slows_only_itself(driver: Driver) -> None:
    slow = driver.consume(credit=2)
    quick = driver.consume(credit=2)
    driver.enqueue(20)

    for _ in range(20):
        held = [taken for taken in driver.delivered if taken.consumer == quick]
        driver.ack(*held[-2:])

    assert Counter(taken.consumer for taken in driver.delivered) == {slow: 2, quick: 18}


def test_no_message_waits_while_a_consumer_has_room_whatever_the_rest_does(
    driver: Driver,
) -> None:
    driver.consume(credit=1)
    driver.consume(credit=7)
    driver.consume(credit=30)

    driver.enqueue(50)

    assert Counter(taken.consumer for taken in driver.delivered) == {1: 1, 2: 7, 3: 30}


def test_a_delivery_that_could_not_happen_moves_nothing(driver: Driver) -> None:
    driver.enqueue_key("a", 10, weight=2)
    driver.enqueue_key("b", 10)
    driver.take(1)
    before = [(key.key, key.deficit) for key in driver.scheduler.stats(QUEUE, now_ns=0).keys]

    full = driver.consume(credit=0)
    for _ in range(20):
        driver.run()

    after = [(key.key, key.deficit) for key in driver.scheduler.stats(QUEUE, now_ns=0).keys]
    assert before == after
    driver.set_credit(full, 5)
    assert [taken.key for taken in driver.delivered[1:]] == ["a", "b", "a", "a", "b"]


def test_a_consumer_of_several_queues_holds_its_credit_in_all(driver: Driver) -> None:
    driver.create("other")
    driver.enqueue(10)
    driver.enqueue(10, queue="other")

    driver.consume(QUEUE, "other", credit=6)

    assert Counter(taken.queue for taken in driver.delivered) == {QUEUE: 3, "other": 3}


def test_queues_take_turns_at_a_consumer_with_little_credit(driver: Driver) -> None:
    driver.create("other")
    driver.enqueue(10)
    driver.enqueue(10, queue="other")
    driver.consume(QUEUE, "other", credit=1)

    for _ in range(9):
        driver.ack(driver.delivered[-1])

    assert Counter(taken.queue for taken in driver.delivered) == {QUEUE: 5, "other": 5}


def test_a_great_backlog_is_delivered_over_several_passes(driver: Driver) -> None:
    count = delivery.DELIVERIES_MAX + 10
    driver.enqueue(count)
    driver.step(
        c.OpenConsumer(consumer=1, credit=10_000), c.Subscribe(tag=0, consumer=1, queue=QUEUE)
    )

    assert len(driver.delivered) == delivery.DELIVERIES_MAX
    assert driver.due_ns() == 0
    driver.step()
    assert len(driver.delivered) == count
    assert driver.due_ns() != 0


def test_every_delivery_has_its_own_token(driver: Driver) -> None:
    driver.enqueue(50)
    driver.consume(credit=30)
    driver.consume(credit=30)

    assert len({taken.token for taken in driver.delivered}) == 50


def test_a_paused_queue_delivers_nothing_and_goes_on_when_resumed(driver: Driver) -> None:
    driver.consume()
    driver.pause()
    driver.enqueue(3)
    assert not driver.delivered

    driver.pause(paused=False)

    assert len(driver.delivered) == 3


def test_what_is_leased_from_a_paused_queue_can_be_settled(driver: Driver) -> None:
    driver.enqueue(2)
    taken = driver.take_one()
    driver.pause()

    assert not driver.ack(taken).errors
    assert driver.depth() == 1
