"""Taking messages in: limits, delays, times to live, and repeats."""

from typing import NoReturn

import pytest

from fila import ids
from fila.core import commands as c
from fila.core.effects import PutMessages
from fila.core.partition import Partition
from fila.errors import InvalidArgumentError, QueueNotFoundError
from fila.model import (
    NS_PER_S,
    ItemError,
    Outcome,
    ProducerSequence,
    QueueSettings,
    Spec,
    Timing,
)
from tests.unit.core.driver import DLQ, QUEUE, Driver, after_ms


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def test_an_unknown_queue_is_refused(driver: Driver) -> None:
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        driver.enqueue(queue="nowhere")


def test_the_first_delivery_has_no_attempts_behind_it(driver: Driver) -> None:
    driver.enqueue()

    assert driver.take_one().attempts == 0


def test_ids_are_ordered_by_time_and_acceptance(driver: Driver) -> None:
    outcomes = []
    for seconds in (1, 0, -3600, 5):
        driver.jump(seconds)
        outcomes.append(driver.accept([Spec()] * 3))

    found = [
        ids.id_bytes(outcome.id_high, ids.id_low(outcome.first_seq + i, 1))
        for outcome in outcomes
        for i in range(3)
    ]
    assert found == sorted(set(found))


def test_a_clock_that_jumps_back_repeats_no_id_after_a_restart(driver: Driver) -> None:
    before = driver.accept([Spec()])
    driver.restart(down_s=-3600)

    after = driver.accept([Spec()])

    assert after.id_high >= before.id_high
    assert after.first_seq > before.first_seq


def test_a_delayed_message_is_invisible_until_its_time(driver: Driver) -> None:
    driver.enqueue(timing=Timing(delay_ms=1500))
    driver.consume()

    assert driver.depth() == 1
    driver.pass_time(1.499)
    assert not driver.delivered
    driver.pass_time(0.001)
    assert len(driver.delivered) == 1


def test_a_delivery_time_in_the_past_is_now(driver: Driver) -> None:
    driver.enqueue(timing=Timing(deliver_at_ns=after_ms(driver, -1000)))

    assert driver.take_one().attempts == 0


def test_a_delivery_time_follows_the_wall_clock_and_a_delay_does_not(driver: Driver) -> None:
    at = driver.enqueue_one(timing=Timing(deliver_at_ns=after_ms(driver, 3_600_000)))
    delayed = driver.enqueue_one(timing=Timing(delay_ms=60_000))
    driver.consume()

    driver.jump(3600)
    assert [delivery.sequence for delivery in driver.delivered] == [at]
    driver.ack(*driver.delivered)
    driver.jump(-7200)
    driver.pass_time(60)
    assert [delivery.sequence for delivery in driver.delivered] == [at, delayed]


def test_what_was_delayed_comes_behind_what_was_ready_before_it(driver: Driver) -> None:
    late = driver.enqueue_one(timing=Timing(delay_ms=1000))
    early = driver.enqueue_one()
    driver.pass_time(1)
    later = driver.enqueue_one()

    assert [delivery.sequence for delivery in driver.take(3)] == [early, late, later]


def test_a_time_to_live_counts_from_when_a_message_is_ready(driver: Driver) -> None:
    driver.enqueue(timing=Timing(delay_ms=10_000, ttl_ms=5000))

    driver.pass_time(10)
    driver.pass_time(4.999)
    assert driver.depth(DLQ) == 0
    driver.pass_time(0.001)
    assert driver.depth(DLQ) == 1


def test_nothing_in_a_dead_letter_queue_expires(driver: Driver) -> None:
    driver.enqueue(queue=DLQ, timing=Timing(ttl_ms=1000))

    driver.pass_time(3600)

    assert driver.take_one(queue=DLQ).queue == DLQ


def test_a_full_queue_takes_what_there_is_room_for_and_refuses_the_rest_one_by_one() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_depth=3))

    outcome = driver.accept([Spec()] * 5)

    assert [(error.index, error.code) for error in outcome.errors] == [
        (3, "RESOURCE_EXHAUSTED"),
        (4, "RESOURCE_EXHAUSTED"),
    ]
    assert "max_depth is 3" in outcome.errors[0].message
    assert driver.depth() == len(driver.stored_sequences()) == 3


def test_leased_and_delayed_messages_count_for_the_depth() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_depth=2))
    driver.enqueue()
    driver.enqueue(timing=Timing(delay_ms=1000))
    taken = driver.take_one()

    assert len(driver.accept([Spec()]).errors) == 1
    driver.ack(taken)
    assert not driver.accept([Spec()]).errors


def test_items_refused_before_keep_their_index_beside_those_without_room() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_depth=1))
    refused = ItemError(1, "INVALID_ARGUMENT", "too large")

    outcome = driver.do(
        c.Enqueue(
            tag=0, queue=QUEUE, bodies=[b"a", b"c", b"d"], specs=[Spec()] * 3, refused=(refused,)
        )
    )

    assert isinstance(outcome, Outcome)
    assert outcome.count == 4
    assert [error.index for error in outcome.errors] == [1, 2, 3]
    assert outcome.errors[0] == refused


def test_a_repeat_is_answered_with_the_first_outcome(driver: Driver) -> None:
    producer = ProducerSequence(b"p", 7)
    first = driver.accept([Spec()] * 2, producer=producer)
    driver.pass_time(1)

    assert driver.accept([Spec()] * 2, producer=producer) == first
    assert driver.depth() == 2


def test_a_repeat_in_the_same_pass_is_answered_with_the_first_outcome(driver: Driver) -> None:
    command = c.Enqueue(
        tag=0, queue=QUEUE, bodies=[b""], specs=[Spec()], producer=ProducerSequence(b"p", 1)
    )

    first, second = driver.run(command, command)

    assert first == second
    assert driver.depth() == 1


def test_a_repeat_after_a_restart_is_answered_with_the_first_outcome(driver: Driver) -> None:
    producer = ProducerSequence(b"p", 7)
    first = driver.accept([Spec()], producer=producer)
    driver.restart()

    assert driver.accept([Spec()], producer=producer) == first
    assert driver.depth() == 1


def test_a_repeat_of_what_was_refused_for_depth_is_refused_again() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_depth=1))
    producer = ProducerSequence(b"p", 1)
    first = driver.accept([Spec()] * 2, producer=producer)
    driver.ack(driver.take_one())

    assert driver.accept([Spec()] * 2, producer=producer) == first
    assert driver.depth() == 0


def test_a_sequence_that_was_overtaken_is_accepted(driver: Driver) -> None:
    driver.accept([Spec()], producer=ProducerSequence(b"p", 9))
    driver.accept([Spec()], producer=ProducerSequence(b"p", 8))

    assert driver.depth() == 2


def test_a_sequence_used_for_another_number_of_messages_is_refused(driver: Driver) -> None:
    driver.accept([Spec()], producer=ProducerSequence(b"p", 1))

    with pytest.raises(InvalidArgumentError, match="used before for 1 messages"):
        driver.accept([Spec()] * 2, producer=ProducerSequence(b"p", 1))


def test_an_outcome_is_kept_for_ten_minutes_and_then_forgotten(driver: Driver) -> None:
    producer = ProducerSequence(b"p", 1)
    first = driver.accept([Spec()], producer=producer)

    driver.pass_time(600)
    assert driver.accept([Spec()], producer=producer) == first
    for _ in range(12):
        driver.pass_time(60)
    assert driver.storage is not None
    assert driver.storage.read_outcome(1, producer) is None
    assert not driver.scheduler.needs_lookup(QUEUE, producer)


def test_an_outcome_is_forgotten_after_a_restart_too(driver: Driver) -> None:
    producer = ProducerSequence(b"p", 1)
    driver.accept([], producer=producer)
    driver.restart()

    assert driver.due_ns() is not None
    for _ in range(12):
        driver.pass_time(60)

    assert driver.storage is not None
    assert driver.storage.read_outcome(1, producer) is None
    assert driver.due_ns() is None


def test_a_deleted_queue_remembers_nobody(driver: Driver) -> None:
    driver.accept([], producer=ProducerSequence(b"p", 1))

    driver.do(c.DeleteQueue(tag=0, queue=QUEUE))

    assert driver.due_ns() is None


def test_when_work_is_due_is_known_without_a_look_at_each_queue(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unseen(dict[int, Partition]):
        def values(self) -> NoReturn:
            raise AssertionError("each queue was looked at")

    state = driver.scheduler._state
    monkeypatch.setattr(state, "partitions", Unseen(state.partitions))

    assert driver.due_ns() is None
    driver.accept([Spec()], producer=ProducerSequence(b"p", 1))
    assert driver.due_ns() is not None


def test_a_batch_is_one_change_with_its_sequences_in_order(driver: Driver) -> None:
    specs = [Spec(fairness_key=key) for key in "abab"]
    outcome = driver.do(c.Enqueue(tag=0, queue=QUEUE, bodies=[b""] * 4, specs=specs))

    assert isinstance(outcome, Outcome)
    (put,) = (change for change in driver.mutations if isinstance(change, PutMessages))
    assert put.first_sequence == outcome.first_seq
    assert put.accepted_at_ns == driver.wall_ns
    assert [delivery.sequence for delivery in driver.take(4)] == [1, 2, 3, 4]


def test_a_hundred_years_of_delay_do_no_harm(driver: Driver) -> None:
    driver.enqueue(timing=Timing(delay_ms=100 * 365 * 24 * 3600 * 1000))
    due_ns = driver.due_ns()

    assert due_ns is not None
    assert due_ns > 99 * 365 * 24 * 3600 * NS_PER_S
    driver.restart()
    assert driver.depth() == 1
