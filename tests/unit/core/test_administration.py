"""Queues made, changed, paused, emptied and deleted; single messages; runtime settings."""

import pytest

from fila.core import commands as c
from fila.core.effects import DeleteMessages, DeleteRanges
from fila.errors import (
    MessageNotFoundError,
    PreconditionError,
    QueueExistsError,
    QueueNotFoundError,
)
from fila.model import QueueSettings, Spec, Timing
from tests.unit.core.driver import DLQ, QUEUE, Driver, after_ms


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def test_a_queue_is_created_with_its_dead_letter_queue(driver: Driver) -> None:
    assert driver.scheduler.queue_names() == [QUEUE, DLQ]
    assert driver.scheduler.partition_of(QUEUE) == driver.scheduler.partition_of(DLQ)


def test_a_second_queue_of_the_name_is_refused(driver: Driver) -> None:
    for name in (QUEUE, DLQ):
        with pytest.raises(QueueExistsError):
            driver.create(name)


def test_a_dead_letter_queue_that_exists_is_adopted() -> None:
    driver = Driver()
    driver.create(DLQ, QueueSettings(visibility_timeout_ms=5000))
    (kept,) = driver.enqueue(queue=DLQ)

    driver.create(QUEUE)

    assert driver.scheduler.settings(DLQ).visibility_timeout_ms == 5000
    driver.bury()
    assert driver.depth(DLQ) == 2
    assert driver.take_one(queue=DLQ).sequence == kept


def test_a_dead_letter_queue_has_none_of_its_own_and_no_limit_of_attempts() -> None:
    driver = Driver()
    driver.create(DLQ, QueueSettings(max_attempts=5))
    driver.do(c.UpdateQueue(tag=0, queue=DLQ, settings=QueueSettings(max_attempts=7)))

    assert driver.scheduler.queue_names() == [DLQ]
    assert driver.scheduler.settings(DLQ).max_attempts == 0


def test_an_update_loses_no_message_and_counts_from_the_next_lease_on(driver: Driver) -> None:
    driver.enqueue(3)
    driver.take_one()

    driver.do(c.UpdateQueue(tag=0, queue=QUEUE, settings=QueueSettings(visibility_timeout_ms=5000)))

    assert driver.depth() == 3
    driver.take_one()
    driver.pass_time(5)
    assert driver.scheduler.summary(QUEUE).in_flight == 1


def test_a_new_quantum_is_used_from_the_next_turn_on(driver: Driver) -> None:
    driver.enqueue_key("a", 20)
    driver.enqueue_key("b", 20)
    driver.do(c.UpdateQueue(tag=0, queue=QUEUE, settings=QueueSettings(quantum=3)))

    assert "".join(taken.key for taken in driver.take(12)) == "aaabbb" * 2
    driver.do(c.UpdateQueue(tag=0, queue=QUEUE, settings=QueueSettings()))
    assert "".join(taken.key for taken in driver.take(4)) == "abab"


@pytest.mark.parametrize("queue", ["nowhere", "nowhere.dlq"])
def test_what_does_not_exist_cannot_be_administered(driver: Driver, queue: str) -> None:
    for command in (
        c.UpdateQueue(tag=0, queue=queue, settings=QueueSettings()),
        c.DeleteQueue(tag=0, queue=queue),
        c.PauseQueue(tag=0, queue=queue, paused=True),
        c.PurgeQueue(tag=0, queue=queue),
        c.RemoveMessage(tag=0, queue=queue, message_id="x", partition=1, entry=None),
        c.Reschedule(tag=0, queue=queue, message_id="x", partition=1, entry=None, deliver_at_ns=0),
    ):
        with pytest.raises(QueueNotFoundError):
            driver.do(command)


def test_a_deleted_queue_leaves_nothing_and_never_comes_back(driver: Driver) -> None:
    driver.create("other")
    driver.bury(2)
    driver.enqueue(3)
    driver.enqueue(timing=Timing(delay_ms=1000))
    driver.enqueue(timing=Timing(ttl_ms=1000))
    driver.take(2)

    driver.do(c.DeleteQueue(tag=0, queue=QUEUE))

    assert driver.scheduler.queue_names() == ["other", "other.dlq"]
    assert driver.due_ns() is None
    driver.restart()
    driver.create()
    driver.pass_time(3600)
    assert driver.depth() == driver.depth(DLQ) == 0
    assert driver.take(5) == driver.take(5, queue=DLQ) == []
    assert not driver.stored_sequences()


def test_a_partitions_number_is_never_used_again(driver: Driver) -> None:
    numbers = set()
    for _ in range(3):
        numbers.add(driver.scheduler.partition_of(QUEUE))
        driver.do(c.DeleteQueue(tag=0, queue=QUEUE))
        driver.restart()
        driver.create()

    assert len(numbers) == 3


def test_deleting_ends_the_streams_of_both_queues(driver: Driver) -> None:
    first = driver.consume(QUEUE)
    second = driver.consume(DLQ)

    driver.do(c.DeleteQueue(tag=0, queue=QUEUE))

    assert {(closed.consumer, closed.queue) for closed in driver.closed} == {
        (first, QUEUE),
        (second, DLQ),
    }
    assert all(isinstance(closed.error, QueueNotFoundError) for closed in driver.closed)


def test_a_consumer_goes_on_with_its_other_queues_and_has_its_credit_back(driver: Driver) -> None:
    driver.create("other")
    driver.enqueue(5)
    driver.consume(QUEUE, "other", credit=3)

    driver.do(c.DeleteQueue(tag=0, queue=QUEUE))
    driver.enqueue(5, queue="other")

    assert [taken.queue for taken in driver.delivered] == [QUEUE] * 3 + ["other"] * 3


def test_a_queue_made_again_can_be_subscribed_again(driver: Driver) -> None:
    consumer = driver.consume()
    driver.do(c.DeleteQueue(tag=0, queue=QUEUE))
    driver.create()
    driver.enqueue()
    assert not driver.delivered

    driver.do(c.Subscribe(tag=0, consumer=consumer, queue=QUEUE))

    assert len(driver.delivered) == 1


def test_a_careful_caller_is_refused_while_there_are_dead_letters(driver: Driver) -> None:
    driver.bury()
    with pytest.raises(PreconditionError, match="holds 1 messages"):
        driver.do(c.DeleteQueue(tag=0, queue=QUEUE, keep_dead_letters=True))

    driver.purge(DLQ)

    assert driver.do(c.DeleteQueue(tag=0, queue=QUEUE, keep_dead_letters=True)) is None


def test_a_dead_letter_queue_goes_with_its_queue_and_not_before(driver: Driver) -> None:
    with pytest.raises(PreconditionError, match="belongs to queue"):
        driver.do(c.DeleteQueue(tag=0, queue=DLQ))


def test_a_dead_letter_queue_without_a_queue_can_be_deleted() -> None:
    driver = Driver()
    driver.create(DLQ)

    driver.do(c.DeleteQueue(tag=0, queue=DLQ))

    assert driver.scheduler.queue_names() == []


def test_a_purge_takes_what_waits_and_leaves_what_is_leased(driver: Driver) -> None:
    driver.bury(2)
    driver.enqueue(6)
    driver.enqueue(timing=Timing(delay_ms=1000))
    driver.enqueue(timing=Timing(ttl_ms=1000))
    taken = driver.take(2)

    assert driver.purge() == 6

    assert driver.depth() == 2
    assert driver.depth(DLQ) == 2
    assert len(driver.stored_sequences()) == 4
    driver.pass_time(1)
    assert driver.take() == []
    assert not driver.ack(*taken).errors


def test_a_purge_takes_leased_messages_on_request(driver: Driver) -> None:
    driver.bury(2)
    driver.enqueue(6)
    taken = driver.take(2)

    assert driver.purge(include_leased=True) == 6

    assert driver.depth() == 0
    assert driver.depth(DLQ) == len(driver.stored_sequences()) == 2
    assert len(driver.ack(*taken).errors) == 2


def test_a_consumer_has_its_credit_back_after_a_purge_of_what_it_held(driver: Driver) -> None:
    driver.enqueue(3)
    driver.consume(credit=3)
    driver.purge(include_leased=True)

    driver.enqueue(3)

    assert len(driver.delivered) == 6


def test_purging_the_dead_letters_leaves_the_queue_alone(driver: Driver) -> None:
    driver.enqueue(3)
    driver.take(1)
    driver.bury(20)
    before = driver.depth()

    assert driver.purge(DLQ) == 20

    assert DeleteRanges in {type(change) for change in driver.mutations}
    assert driver.depth() == before == len(driver.stored_sequences())


@pytest.mark.parametrize(("waiting", "kind"), [(2, DeleteMessages), (20, DeleteRanges)])
def test_a_purge_is_stored_in_the_way_that_names_fewer(
    driver: Driver, waiting: int, kind: type
) -> None:
    driver.bury(5)
    driver.enqueue(waiting)

    driver.purge()

    assert kind in {type(change) for change in driver.mutations}
    assert len(driver.stored_sequences()) == 5


def test_what_was_purged_does_not_come_back_after_a_restart(driver: Driver) -> None:
    driver.enqueue(10)
    driver.take(1)
    driver.purge()

    driver.restart()

    assert driver.depth() == 1
    assert driver.scheduler.summary(QUEUE).in_flight == 1


def test_messages_accepted_after_a_purge_in_the_same_pass_stay(driver: Driver) -> None:
    enqueue = c.Enqueue(tag=0, queue=QUEUE, bodies=[b""] * 3, specs=[Spec()] * 3)

    driver.run(enqueue, c.PurgeQueue(tag=0, queue=QUEUE), enqueue)

    assert driver.depth() == len(driver.stored_sequences()) == 3


def test_one_waiting_message_can_be_removed(driver: Driver) -> None:
    first, second, third = driver.enqueue(3)

    driver.remove(second)

    assert driver.stored_sequences() == [first, third]
    assert [taken.sequence for taken in driver.take(3)] == [first, third]


def test_a_delayed_message_can_be_removed(driver: Driver) -> None:
    sequence = driver.enqueue_one(timing=Timing(delay_ms=1000))

    driver.remove(sequence)

    assert driver.due_ns() is None
    assert driver.depth() == 0


def test_a_message_that_was_retried_or_expires_can_be_removed(driver: Driver) -> None:
    retried = driver.enqueue_one()
    driver.nack(driver.take_one(), delay_ms=0)
    expiring = driver.enqueue_one(timing=Timing(ttl_ms=1000))

    driver.remove(retried)
    driver.remove(expiring)

    assert driver.due_ns() is None
    assert not driver.stored_sequences()


def test_a_dead_letter_is_removed_from_its_queue_and_no_other(driver: Driver) -> None:
    (sequence,) = driver.bury()
    with pytest.raises(MessageNotFoundError):
        driver.remove(sequence, QUEUE)

    driver.remove(sequence, DLQ)

    assert driver.depth(DLQ) == 0


def test_a_leased_message_cannot_be_removed_or_moved(driver: Driver) -> None:
    sequence = driver.enqueue_one()
    driver.take_one()

    with pytest.raises(PreconditionError, match="with a consumer"):
        driver.remove(sequence)
    with pytest.raises(PreconditionError, match="with a consumer"):
        driver.reschedule(sequence, 0)


def test_a_message_that_is_gone_cannot_be_removed_or_moved(driver: Driver) -> None:
    sequence = driver.enqueue_one()
    driver.remove(sequence)

    with pytest.raises(MessageNotFoundError):
        driver.remove(sequence)
    with pytest.raises(MessageNotFoundError):
        driver.reschedule(sequence, 0)


def test_a_delayed_message_can_be_moved_to_an_earlier_or_later_time(driver: Driver) -> None:
    early = driver.enqueue_one(timing=Timing(delay_ms=60_000))
    late = driver.enqueue_one(timing=Timing(delay_ms=1000))
    driver.reschedule(early, after_ms(driver, 2000))
    driver.reschedule(late, after_ms(driver, 5000))
    driver.consume()

    driver.pass_time(1.999)
    assert not driver.delivered
    driver.pass_time(0.001)
    assert [taken.sequence for taken in driver.delivered] == [early]
    driver.restart(down_s=2.999)
    assert driver.take() == []
    driver.pass_time(0.001)
    assert driver.take_one().sequence == late


def test_a_message_moved_into_the_past_is_ready_now(driver: Driver) -> None:
    sequence = driver.enqueue_one(timing=Timing(delay_ms=60_000))

    driver.reschedule(sequence, 1)
    driver.run()

    assert driver.take_one().sequence == sequence


def test_the_time_to_live_moves_along(driver: Driver) -> None:
    sequence = driver.enqueue_one(timing=Timing(delay_ms=1000, ttl_ms=1000))
    driver.reschedule(sequence, after_ms(driver, 10_000))
    driver.restart()

    driver.pass_time(10)
    driver.pass_time(0.999)
    assert driver.depth() == 1
    driver.pass_time(0.001)
    assert driver.depth(DLQ) == 1


def test_only_a_delayed_message_can_be_moved(driver: Driver) -> None:
    sequence = driver.enqueue_one()

    with pytest.raises(PreconditionError, match="not delayed"):
        driver.reschedule(sequence, after_ms(driver, 1000))


def test_a_pause_survives_a_restart(driver: Driver) -> None:
    driver.pause()

    driver.restart()

    assert driver.scheduler.is_paused(QUEUE)


def test_a_setting_is_stored_until_it_is_deleted(driver: Driver) -> None:
    assert driver.do(c.SetConfig(tag=0, key="throttle:a:rate", value="5")) is False
    assert driver.do(c.SetConfig(tag=0, key="throttle:a:rate", value="6")) is True
    driver.restart()
    assert driver.scheduler.config == {"throttle:a:rate": "6"}

    assert driver.do(c.SetConfig(tag=0, key="throttle:a:rate", value="")) is True
    assert driver.do(c.SetConfig(tag=0, key="throttle:a:rate", value="")) is False

    driver.restart()
    assert driver.scheduler.config == {}


def test_a_dead_letter_queue_gives_its_consumers_the_same_time_and_pauses() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(visibility_timeout_ms=5000, retry_delay_ms=7, max_depth=9))

    settings = driver.scheduler.settings(DLQ)

    assert settings.visibility_timeout_ms == 5000
    assert settings.retry_delay_ms == 7
    assert settings.max_depth == 0
    assert settings.max_attempts == 0
