"""What `on_failure` decided comes before what the nack says, then comes the queue's backoff."""

import pytest

from fila.core import commands as c
from fila.core.effects import PutSpecs
from fila.model import (
    FailureAction,
    FailureDecision,
    QueueSettings,
    Reason,
    Spec,
    Timing,
)
from fila.wire._pb import messages_pb2 as pb
from tests.unit.core.driver import DLQ, QUEUE, Delivery, Driver, after_ms

DEAD = FailureDecision(action=FailureAction.DEAD_LETTER)


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def _due_ms(driver: Driver) -> int:
    due_ns = driver.due_ns()
    assert due_ns is not None
    return due_ns // 1_000_000


def _fail(driver: Driver, decision: FailureDecision, *, delay_ms: int | None = None) -> Delivery:
    taken = driver.take_one()
    driver.nack(taken, decisions=[decision], delay_ms=delay_ms)
    return taken


def _metadata(driver: Driver, sequence: int, queue: str = QUEUE) -> pb.MessageMetadata:
    assert driver.storage is not None
    (stored,) = driver.storage.read_messages(driver.scheduler.partition_of(queue), [sequence])
    assert stored is not None
    return pb.Message.FromString(stored).metadata


@pytest.mark.parametrize(
    ("decision", "delay_ms", "waits_ms"),
    [
        (FailureDecision(delay_ms=1500), 700, 1500),
        (FailureDecision(delay_ms=1500), None, 1500),
        (FailureDecision(action=FailureAction.RETRY), 700, 700),
        (FailureDecision(action=FailureAction.RETRY), None, 1000),
        (FailureDecision(fairness_key="other"), None, 1000),
        (None, 700, 700),
        (None, None, 1000),
    ],
)
def test_the_delay_is_the_hooks_else_the_nacks_else_the_queues(
    driver: Driver, decision: FailureDecision | None, delay_ms: int | None, waits_ms: int
) -> None:
    driver.enqueue()

    driver.nack(driver.take_one(), delay_ms=delay_ms, decisions=[decision])

    assert _due_ms(driver) == waits_ms


def test_a_decided_delay_of_nothing_retries_at_once_behind_the_others(driver: Driver) -> None:
    first, second = driver.enqueue(2)

    _fail(driver, FailureDecision(delay_ms=0), delay_ms=700)

    assert [taken.sequence for taken in driver.take(2)] == [second, first]


def test_a_hook_may_give_a_message_up(driver: Driver) -> None:
    driver.enqueue()

    _fail(driver, DEAD)

    dead = driver.take_one(queue=DLQ).message.dead
    assert dead is not None
    assert dead.reason is Reason.REJECTED


def test_a_nack_that_gives_a_message_up_is_not_overruled(driver: Driver) -> None:
    driver.enqueue()

    driver.nack(
        driver.take_one(),
        dead_letter=True,
        decisions=[FailureDecision(action=FailureAction.RETRY, delay_ms=0)],
    )

    assert driver.depth(DLQ) == 1


def test_a_limit_of_n_means_at_most_n_deliveries_whatever_the_hook_says() -> None:
    driver = Driver()
    driver.create(settings=QueueSettings(max_attempts=2))
    driver.enqueue()
    again = FailureDecision(action=FailureAction.RETRY, delay_ms=0, fairness_key="other")

    _fail(driver, again)
    _fail(driver, again)

    dead = driver.take_one(queue=DLQ)
    assert dead.attempts == 2
    assert dead.message.dead is not None
    assert dead.message.dead.reason is Reason.MAX_ATTEMPTS


def test_in_a_dead_letter_queue_giving_up_is_a_retry_by_the_queues_backoff(driver: Driver) -> None:
    driver.bury()
    taken = driver.take_one(queue=DLQ)

    driver.nack(taken, decisions=[FailureDecision(action=FailureAction.DEAD_LETTER, delay_ms=1)])

    assert driver.depth(DLQ) == 1
    assert _due_ms(driver) == 2000


def test_each_message_of_a_batch_has_its_own_decision(driver: Driver) -> None:
    driver.enqueue(4)
    first, late, third, fourth = driver.take(4)
    driver.ack(late)

    result = driver.nack(
        first,
        late,
        third,
        fourth,
        decisions=[FailureDecision(delay_ms=100), DEAD, FailureDecision(delay_ms=300), DEAD],
    )

    assert [error.index for error in result.errors] == [1]
    assert driver.depth(DLQ) == 1
    assert driver.take_one(queue=DLQ).sequence == fourth.sequence
    driver.pass_time(0.1)
    assert driver.take_one().sequence == first.sequence
    driver.pass_time(0.2)
    assert driver.take_one().sequence == third.sequence


def test_of_a_message_named_twice_the_decision_for_the_live_one_counts(driver: Driver) -> None:
    driver.enqueue()
    taken = driver.take_one()
    stale = taken._replace(token=taken.token + 1)

    driver.nack(stale, taken, decisions=[DEAD, FailureDecision(delay_ms=5)])

    assert driver.depth(DLQ) == 0
    assert _due_ms(driver) == 5


def test_a_retry_may_go_to_another_key_with_another_weight(driver: Driver) -> None:
    driver.enqueue(spec=Spec("a", 2, ("mail",), 3, 4))

    _fail(driver, FailureDecision(delay_ms=0, fairness_key="b", weight=7))

    assert driver.key("b").weight == 7
    taken = driver.take_one()
    assert taken.spec == Spec("b", 7, ("mail",), 3, 4)
    assert [key.key for key in driver.scheduler.stats(QUEUE, now_ns=0).keys] == ["b"]


def test_a_changed_priority_orders_within_the_key(driver: Driver) -> None:
    first, second, third = driver.enqueue(3)
    taken = driver.take(2)

    driver.nack(
        *taken, decisions=[FailureDecision(delay_ms=0), FailureDecision(delay_ms=0, priority=9)]
    )

    assert [again.sequence for again in driver.take(3)] == [second, third, first]


def test_a_changed_spec_waits_out_its_delay_under_the_new_key(driver: Driver) -> None:
    driver.enqueue(spec=Spec("a"))

    _fail(driver, FailureDecision(delay_ms=1000, fairness_key="b"))

    assert driver.key("b").pending == 1
    assert driver.take() == []
    driver.pass_time(1)
    assert driver.take_one().key == "b"


def test_a_lease_that_ends_gives_the_message_back_under_its_new_key(driver: Driver) -> None:
    driver.enqueue(spec=Spec("a"))
    _fail(driver, FailureDecision(delay_ms=0, fairness_key="b"))
    driver.take_one()

    driver.pass_time(30)

    assert driver.take_one().key == "b"


@pytest.mark.parametrize("delay_ms", [0, 1000])
def test_a_changed_spec_survives_a_restart(driver: Driver, delay_ms: int) -> None:
    driver.enqueue(spec=Spec("a", 2, ("mail", "sms"), 3, 4))
    decision = FailureDecision(
        delay_ms=delay_ms, fairness_key="b", weight=7, throttle_keys=("sms",), priority=9
    )
    taken = _fail(driver, decision)

    driver.restart()

    driver.pass_time(delay_ms / 1000)
    again = driver.take_one()
    assert again.spec == Spec("b", 7, ("sms",), 9, 4)
    assert again.attempts == 1
    metadata = _metadata(driver, taken.sequence)
    assert (metadata.fairness_key, metadata.weight, metadata.priority) == ("b", 7, 9)
    assert list(metadata.throttle_keys) == ["sms"]
    assert (metadata.cost, metadata.queue_id) == (4, QUEUE)


def test_throttle_keys_can_be_taken_away(driver: Driver) -> None:
    driver.enqueue(spec=Spec(throttle_keys=("mail",)))
    driver.do(c.SetConfig(tag=0, key="throttle:mail:rate", value="1"))
    taken = driver.take_one()
    driver.do(c.SetConfig(tag=0, key="throttle:mail:rate", value="0"))

    driver.nack(taken, decisions=[FailureDecision(delay_ms=0, throttle_keys=())])

    assert driver.take_one().spec == Spec()
    assert not _metadata(driver, taken.sequence).throttle_keys


def test_throttle_keys_given_by_a_retry_hold_it_back(driver: Driver) -> None:
    driver.do(c.SetConfig(tag=0, key="throttle:mail:rate", value="0.001"))
    driver.enqueue(spec=Spec(throttle_keys=("mail",)))
    # The bucket was full.
    driver.ack(driver.take_one())
    driver.enqueue(2)

    _fail(driver, FailureDecision(delay_ms=0, throttle_keys=("mail",)))

    assert [taken.attempts for taken in driver.take(2)] == [0]


def test_only_what_changed_is_written_anew(driver: Driver) -> None:
    driver.enqueue(2, spec=Spec("a"))
    same, other = driver.take(2)

    driver.step(
        c.Settle(
            tag=0,
            queue=QUEUE,
            action=c.Action.NACK,
            sequences=[same.sequence, other.sequence],
            tokens=[same.token, other.token],
            decisions=[FailureDecision(fairness_key="a"), FailureDecision(fairness_key="b")],
        )
    )

    (written,) = (change for change in driver.mutations if isinstance(change, PutSpecs))
    assert [message.sequence for message in written.messages] == [other.sequence]


def test_equal_changes_share_one_spec(driver: Driver) -> None:
    driver.enqueue(2)
    decision = FailureDecision(delay_ms=0, fairness_key="b")

    driver.nack(*driver.take(2), decisions=[decision, decision])

    first, second = driver.take(2)
    assert first.spec is second.spec


def test_a_delayed_message_that_was_changed_and_moved_at_once_keeps_both(driver: Driver) -> None:
    driver.enqueue(spec=Spec("a"), timing=Timing(ttl_ms=60_000))
    taken = driver.take_one()
    driver.nack(taken, decisions=[FailureDecision(delay_ms=1000, fairness_key="b")])

    driver.reschedule(taken.sequence, after_ms(driver, 5000))
    driver.restart()

    driver.pass_time(5)
    assert driver.take_one().key == "b"


def test_a_changed_message_can_be_removed(driver: Driver) -> None:
    driver.enqueue(spec=Spec("a"))
    taken = _fail(driver, FailureDecision(delay_ms=0, fairness_key="b"))

    driver.remove(taken.sequence)

    assert not driver.stored_sequences()
    assert not driver.scheduler.stats(QUEUE, now_ns=0).keys


def test_a_changed_message_that_dies_keeps_its_key_in_the_dead_letter_queue(driver: Driver) -> None:
    driver.enqueue(spec=Spec("a"))
    _fail(driver, FailureDecision(delay_ms=0, fairness_key="b"))

    driver.nack(driver.take_one(), dead_letter=True)
    driver.restart()

    assert driver.take_one(queue=DLQ).key == "b"


def test_the_weight_of_a_changed_message_outlives_it_as_any_newest_ones(driver: Driver) -> None:
    driver.enqueue(2, spec=Spec("a", 1))
    _fail(driver, FailureDecision(delay_ms=0, weight=7))
    driver.set_credit(driver.consume(credit=2), 0)
    driver.enqueue(spec=Spec("a", 7, priority=1))
    before = driver.key("a").weight

    driver.restart()

    assert before == driver.key("a").weight == 7
