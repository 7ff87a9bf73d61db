"""Every reason for which something is not delivered is told, the true one first."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from fila.core import commands as c
from fila.core.explanation import (
    Code,
    Credit,
    Delay,
    DelayKind,
    Expiry,
    Explanation,
    Lease,
    MessageState,
    Turn,
)
from fila.core.looks import LOOKS_MAX
from fila.errors import MessageNotFoundError
from fila.model import NS_PER_S, DeadLetter, Reason, Spec, Timing
from tests.unit.core.driver import DLQ, QUEUE
from tests.unit.core.explained import Explained, codes, facts, fill, story_name

Story: TypeAlias = Callable[[Explained], Explanation]


@pytest.fixture
def driver() -> Explained:
    found = Explained()
    found.create()
    return found


# Messages: what happened, and what is told of it in order.


def leased(driver: Explained) -> Explanation:
    sequence = driver.enqueue_one()
    driver.consume()
    return driver.why(sequence)


def leased_in_a_paused_queue(driver: Explained) -> Explanation:
    sequence = driver.enqueue_one()
    driver.take()
    driver.pause()
    return driver.why(sequence)


def delayed_until_a_time(driver: Explained) -> Explanation:
    driver.consume()
    later = driver.wall_ns + 60 * NS_PER_S
    return driver.why(driver.enqueue_one(timing=Timing(deliver_at_ns=later)))


def delayed_by_a_span(driver: Explained) -> Explanation:
    driver.consume()
    return driver.why(driver.enqueue_one(timing=Timing(delay_ms=5000)))


def waiting_to_be_tried_again(driver: Explained) -> Explanation:
    sequence = driver.enqueue_one()
    driver.nack(driver.take_one(), error="boom", delay_ms=7000)
    driver.consume()
    return driver.why(sequence)


def delayed_in_a_paused_queue_without_consumers(driver: Explained) -> Explanation:
    driver.pause()
    return driver.why(driver.enqueue_one(timing=Timing(delay_ms=5000)))


def delayed_with_a_limit_that_ends_first(driver: Explained) -> Explanation:
    driver.consume()
    driver.limit("p", 1, 1)
    driver.enqueue_throttled("a", "p")
    spec = Spec(throttle_keys=("p",))
    return driver.why(driver.enqueue_one(spec=spec, timing=Timing(delay_ms=5000)))


def delayed_with_a_limit_that_ends_later(driver: Explained) -> Explanation:
    driver.consume()
    driver.limit("p", 0.01, 1)
    driver.enqueue_throttled("a", "p")
    spec = Spec(throttle_keys=("p",))
    return driver.why(driver.enqueue_one(spec=spec, timing=Timing(delay_ms=5000)))


def paused(driver: Explained) -> Explanation:
    driver.consume()
    driver.pause()
    return driver.why(driver.enqueue_one())


def without_a_consumer(driver: Explained) -> Explanation:
    return driver.why(driver.enqueue_one())


def paused_without_a_consumer(driver: Explained) -> Explanation:
    driver.pause()
    return driver.why(driver.enqueue_one())


def consumers_of_another_queue_do_not_count(driver: Explained) -> Explanation:
    driver.create("other")
    driver.consume("other")
    return driver.why(driver.enqueue_one())


def next_with_a_full_consumer(driver: Explained) -> Explanation:
    fill(driver)
    return driver.why(driver.enqueue_one())


def next_with_a_consumer_that_wants_nothing(driver: Explained) -> Explanation:
    driver.consume(credit=0)
    return driver.why(driver.enqueue_one())


def behind_others_with_a_busy_consumer(driver: Explained) -> Explanation:
    fill(driver)
    return driver.why(driver.enqueue(3)[-1])


def behind_others_with_a_consumer_that_stands_still(driver: Explained) -> Explanation:
    fill(driver)
    sequences = driver.enqueue(3)
    driver.pass_time(12)
    return driver.why(sequences[-1])


def about_to_expire(driver: Explained) -> Explanation:
    return driver.why(driver.enqueue_one(timing=Timing(ttl_ms=1000)))


def expired_a_moment_ago(driver: Explained) -> Explanation:
    fill(driver)
    sequence = driver.enqueue_one(timing=Timing(ttl_ms=1000))
    # No pass in between: this one is due.
    driver.wall_ns += NS_PER_S
    return driver.why(sequence)


def dead_asked_for_where_it_came_from(driver: Explained) -> Explanation:
    (sequence,) = driver.bury()
    return driver.why(sequence)


def dead_asked_for_where_it_is(driver: Explained) -> Explanation:
    (sequence,) = driver.bury()
    return driver.why(sequence, DLQ)


def dead_and_being_looked_at(driver: Explained) -> Explanation:
    (sequence,) = driver.bury()
    driver.take_one(queue=DLQ)
    return driver.why(sequence, DLQ)


MESSAGES: list[tuple[Story, list[str]]] = [
    (leased, ["LEASED"]),
    (leased_in_a_paused_queue, ["LEASED"]),
    (delayed_until_a_time, ["DELAYED"]),
    (delayed_by_a_span, ["DELAYED"]),
    (waiting_to_be_tried_again, ["DELAYED"]),
    (delayed_in_a_paused_queue_without_consumers, ["DELAYED", "PAUSED", "NO_CONSUMER"]),
    (delayed_with_a_limit_that_ends_first, ["DELAYED"]),
    (delayed_with_a_limit_that_ends_later, ["DELAYED", "THROTTLED"]),
    (paused, ["PAUSED"]),
    (without_a_consumer, ["NO_CONSUMER"]),
    (paused_without_a_consumer, ["PAUSED", "NO_CONSUMER"]),
    (consumers_of_another_queue_do_not_count, ["NO_CONSUMER"]),
    (next_with_a_full_consumer, ["NO_CREDIT"]),
    (next_with_a_consumer_that_wants_nothing, ["NO_CREDIT"]),
    (behind_others_with_a_busy_consumer, ["WAITING_TURN", "NO_CREDIT"]),
    (behind_others_with_a_consumer_that_stands_still, ["NO_CREDIT", "WAITING_TURN"]),
    (about_to_expire, ["NO_CONSUMER", "EXPIRING"]),
    (expired_a_moment_ago, ["EXPIRING", "NO_CREDIT"]),
    (dead_asked_for_where_it_came_from, ["DEAD_LETTER"]),
    (dead_asked_for_where_it_is, ["DEAD_LETTER", "NO_CONSUMER"]),
    (dead_and_being_looked_at, ["DEAD_LETTER", "LEASED"]),
]


@pytest.mark.parametrize(("story", "expected"), MESSAGES, ids=story_name)
def test_a_message_is_explained_by_its_true_reason(
    driver: Explained, story: Story, expected: list[str]
) -> None:
    assert codes(story(driver)) == expected


def test_what_would_go_now_is_said_to_go(driver: Explained) -> None:
    driver.consume(credit=5000)
    # More than one pass delivers: the next one is owed.
    specs = [Spec()] * 2001
    driver.step(c.Enqueue(tag=0, queue=QUEUE, bodies=[b""] * 2001, specs=specs, timings={}))

    explanation = driver.why(2001)

    assert codes(explanation) == ["DELIVERABLE"]
    assert explanation.is_deliverable
    driver.step()
    assert driver.delivered[-1].sequence == 2001


# What is known of a reason.


def test_a_lease_names_who_has_it_and_until_when(driver: Explained) -> None:
    sequence = driver.enqueue_one()
    consumer = driver.consume(name="worker-7")
    driver.pass_time(10)

    explanation = driver.why(sequence)

    lease = facts(explanation, Code.LEASED, Lease)
    assert (lease.consumer, lease.name) == (consumer, "worker-7")
    assert lease.leased_at_ns == driver.wall_ns - 10 * NS_PER_S
    assert lease.until_ns == driver.wall_ns + 20 * NS_PER_S
    assert lease.left_ns == 20 * NS_PER_S


def test_a_lease_whose_consumer_has_gone_is_nobodys(driver: Explained) -> None:
    sequence = driver.enqueue_one()
    driver.take()

    assert facts(driver.why(sequence), Code.LEASED, Lease).consumer == 0


@pytest.mark.parametrize(
    ("story", "kind", "left_s"),
    [
        (delayed_until_a_time, DelayKind.DELIVER_AT, 60),
        (delayed_by_a_span, DelayKind.DELAY, 5),
        (waiting_to_be_tried_again, DelayKind.RETRY, 7),
    ],
    ids=story_name,
)
def test_a_delay_says_what_it_is_for_and_how_long(
    driver: Explained, story: Story, kind: DelayKind, left_s: int
) -> None:
    delay = facts(story(driver), Code.DELAYED, Delay)

    assert delay.kind is kind
    assert delay.left_ns == left_s * NS_PER_S
    assert delay.until_ns == driver.wall_ns + left_s * NS_PER_S


def test_a_retry_tells_the_last_error(driver: Explained) -> None:
    message = waiting_to_be_tried_again(driver).subject

    assert isinstance(message, MessageState)
    assert (message.attempts, message.last_error) == (1, "boom")


def test_a_dead_letter_tells_why_and_where_it_is(driver: Explained) -> None:
    explanation = dead_asked_for_where_it_came_from(driver)

    assert isinstance(explanation.subject, MessageState)
    assert (explanation.queue, explanation.subject.queue) == (QUEUE, DLQ)
    assert facts(explanation, Code.DEAD_LETTER, DeadLetter) == DeadLetter(
        reason=Reason.REJECTED,
        last_error="broken",
        source_queue=QUEUE,
        dead_at_ns=driver.wall_ns,
    )


def test_a_turn_counts_who_is_before(driver: Explained) -> None:
    driver.enqueue_key("other", 9)
    urgent = Spec(fairness_key="mine", priority=9, cost=2)
    driver.enqueue(4, spec=urgent)
    older = driver.enqueue(2, spec=Spec(fairness_key="mine", cost=3))
    last = driver.enqueue(3, spec=Spec(fairness_key="mine"))[-1]
    driver.enqueue(5, spec=Spec(fairness_key="mine", cost=7))

    turn = facts(driver.why(last), Code.WAITING_TURN, Turn)

    assert (turn.ahead_in_lane, turn.ahead_in_key, turn.ahead_by_priority) == (2, 6, 4)
    assert (turn.keys_before, turn.active_keys) == (1, 2)
    assert (turn.weight, turn.cost, turn.quantum) == (1, 1, 1)
    # 4 × 2, 2 × 3, 2 × 1 and its own: a turn each.
    assert turn.turns == 17
    assert len(older) == 2


def test_what_was_taken_out_or_given_back_is_counted_where_it_is(driver: Explained) -> None:
    sequences = driver.enqueue(8)
    taken = driver.take(3)
    driver.release(taken[0], taken[2])
    driver.remove(sequences[5])

    turn = facts(driver.why(sequences[-1]), Code.WAITING_TURN, Turn)

    # Of the first three two came back; one of the others was removed.
    assert turn.ahead_in_lane == 5


def test_what_is_too_much_to_look_at_each_is_at_least_so_many(driver: Explained) -> None:
    sequences = driver.enqueue(LOOKS_MAX + 20)
    taken = driver.take(LOOKS_MAX + 10)
    driver.release(*taken)

    explanation = driver.why(sequences[-1])

    assert not explanation.is_exact
    assert facts(explanation, Code.WAITING_TURN, Turn).ahead_in_lane == 9


def test_credit_lists_the_consumers_longest_idle_first(driver: Explained) -> None:
    slow = driver.consume(credit=1, name="slow")
    driver.enqueue_one()
    driver.pass_time(5)
    driver.consume(credit=2, name="quick")
    driver.enqueue(2)
    sequence = driver.enqueue_one()

    credit = facts(driver.why(sequence), Code.NO_CREDIT, Credit)

    assert [each.name for each in credit.consumers] == ["slow", "quick"]
    assert credit.consumers[0].number == slow
    assert (credit.count, credit.credit, credit.held) == (2, 3, 3)
    assert credit.consumers[0].idle_ns == 5 * NS_PER_S
    assert credit.is_moving


def test_a_time_to_live_says_what_is_left(driver: Explained) -> None:
    expiry = facts(about_to_expire(driver), Code.EXPIRING, Expiry)

    assert (expiry.left_ns, expiry.at_ns) == (NS_PER_S, driver.wall_ns + NS_PER_S)


def test_a_message_of_the_queue_is_no_dead_letter(driver: Explained) -> None:
    sequence = driver.enqueue_one()

    with pytest.raises(MessageNotFoundError, match="ask for it in queue 'jobs'"):
        driver.why(sequence, DLQ)


def test_what_was_enqueued_among_dead_letters_is_no_message_of_the_queue(
    driver: Explained,
) -> None:
    sequence = driver.enqueue_one(queue=DLQ)

    with pytest.raises(MessageNotFoundError, match=r"ask for it in queue 'jobs\.dlq'"):
        driver.why(sequence)
    assert codes(driver.why(sequence, DLQ)) == ["NO_CONSUMER"]


def test_what_a_queue_does_not_have_is_not_found_in_it(driver: Explained) -> None:
    sequence = driver.enqueue_one()
    queue = driver.queue_state()

    assert queue.find(Spec(), sequence, sequence) is not None
    assert queue.find(Spec(), sequence + 1, sequence + 1) is None
    assert queue.find(Spec(), sequence + 1, sequence) is None
    assert queue.find(Spec("other"), sequence, sequence) is None


def test_a_message_is_found_wherever_it_has_been(driver: Explained) -> None:
    sequence = driver.enqueue_one()
    driver.release(driver.take_one())
    assert codes(driver.why(sequence)) == ["NO_CONSUMER"]
    driver.nack(driver.take_one(), delay_ms=0)
    assert codes(driver.why(sequence)) == ["NO_CONSUMER"]
    driver.restart()
    assert codes(driver.why(sequence)) == ["NO_CONSUMER"]
