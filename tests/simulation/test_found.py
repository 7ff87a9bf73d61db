"""Bugs that the simulation found, each as the shortest story that shows it."""

import pytest

from fila.core import commands as c
from fila.core.effects import SettleResult
from fila.errors import MessageNotFoundError
from fila.model import Spec, Timing
from tests.unit.core.driver import QUEUE, Driver


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.create()
    return driver


def test_a_purge_of_nearly_everything_is_stored_as_well(driver: Driver) -> None:
    # Stretches of messages were to be deleted, and no store knew how.
    kept = driver.enqueue(10)[:2]
    driver.take(2)
    driver.purge()

    driver.restart()

    assert driver.stored_sequences() == kept


def test_a_weight_survives_its_newest_message_with_only_a_delayed_one_behind(
    driver: Driver,
) -> None:
    # The newest message left first, by its priority, and its weight was not stored.
    driver.enqueue(spec=Spec("a", weight=3))
    driver.enqueue(spec=Spec("a", weight=3, priority=9))
    driver.enqueue(spec=Spec("a", weight=1), timing=Timing(delay_ms=60_000))
    driver.ack(*driver.take(2))
    assert driver.key("a").weight == 3

    driver.restart()

    assert driver.key("a").weight == 3


def test_a_weight_survives_its_newest_message_when_an_older_one_comes_back(
    driver: Driver,
) -> None:
    # Nothing told that the weights had become mixed after the newest message left.
    driver.enqueue(spec=Spec("a", weight=5))
    oldest = driver.take_one()
    driver.enqueue(spec=Spec("a", weight=1, priority=5))
    driver.enqueue(spec=Spec("a", weight=1, priority=9))
    driver.ack(driver.take_one())
    driver.release(oldest)
    driver.ack(driver.take_one())
    assert driver.key("a").weight == 1

    driver.restart()

    assert driver.key("a").weight == 1


def test_a_weight_after_a_restart_is_what_it_would_have_been_without(driver: Driver) -> None:
    # What is leased may come back with another weight, behind what is ready and before the newest.
    driver.enqueue(spec=Spec("a", weight=5))
    driver.enqueue(spec=Spec("a", weight=7))
    first, second = driver.take(2)
    driver.release(first)
    driver.enqueue(spec=Spec("a", weight=5, priority=9))
    driver.ack(driver.take_one())

    driver.restart()
    driver.release(second)

    assert driver.key("a").weight == 5


def test_an_operator_removes_nothing_of_a_queue_that_was_created_again(driver: Driver) -> None:
    # Looked up in a queue that was deleted and created before the command's turn.
    sequence = driver.enqueue_one()
    partition = driver.scheduler.partition_of(QUEUE)
    assert driver.storage is not None
    entry = driver.storage.read_entry(partition, sequence)
    driver.do(c.DeleteQueue(tag=0, queue=QUEUE))
    driver.create()
    assert driver.enqueue_one() == sequence

    with pytest.raises(MessageNotFoundError):
        driver.do(
            c.RemoveMessage(tag=0, queue=QUEUE, message_id="m", partition=partition, entry=entry)
        )

    assert driver.depth() == 1


def test_an_ack_without_token_settles_nothing_of_a_queue_that_was_created_again(
    driver: Driver,
) -> None:
    sequence = driver.enqueue_one()
    partition = driver.scheduler.partition_of(QUEUE)
    driver.do(c.DeleteQueue(tag=0, queue=QUEUE))
    driver.create()
    assert driver.enqueue_one() == sequence
    driver.take_one()

    reply = driver.do(
        c.Settle(
            tag=0,
            queue=QUEUE,
            action=c.Action.ACK,
            sequences=[sequence],
            tokens=[0],
            partition=partition,
        )
    )

    assert isinstance(reply, SettleResult)
    assert [error.code for error in reply.errors] == ["NOT_FOUND"]
    assert driver.depth() == 1
