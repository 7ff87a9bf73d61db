"""Why a key's or a queue's messages are not delivered, and what it costs to find out."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from fila.core import commands as c
from fila.core.explanation import (
    Code,
    Count,
    Credit,
    Explanation,
    KeyState,
    QueueState,
    Throttling,
    Turn,
)
from fila.core.looks import LOOKS_MAX
from fila.model import Spec, Timing
from tests.unit.core.driver import QUEUE, Delivery
from tests.unit.core.explained import Explained, codes, facts, fill, story_name
from tests.unit.core.lanes import count_calls

Story: TypeAlias = Callable[[Explained], Explanation]


@pytest.fixture
def driver() -> Explained:
    found = Explained()
    found.create()
    return found


def key_never_seen(driver: Explained) -> Explanation:
    return driver.why_key("a")


def key_all_done(driver: Explained) -> Explanation:
    driver.enqueue_key("a")
    driver.ack(driver.take_one())
    return driver.why_key("a")


def key_in_flight(driver: Explained) -> Explanation:
    driver.enqueue_key("a")
    driver.take()
    return driver.why_key("a")


def key_delayed(driver: Explained) -> Explanation:
    driver.consume()
    driver.enqueue(2, spec=Spec(fairness_key="a"), timing=Timing(delay_ms=9000))
    return driver.why_key("a")


def key_in_a_paused_queue(driver: Explained) -> Explanation:
    driver.pause()
    driver.consume()
    driver.enqueue_key("a")
    return driver.why_key("a")


def key_without_a_consumer(driver: Explained) -> Explanation:
    driver.enqueue_key("a")
    return driver.why_key("a")


def key_throttled(driver: Explained) -> Explanation:
    driver.limit("p", 1, 1)
    driver.consume()
    driver.enqueue_throttled("a", "p", count=4)
    return driver.why_key("a")


def key_throttled_and_never_tried(driver: Explained) -> Explanation:
    driver.limit("p", 1, 1)
    driver.consume(credit=1)
    driver.enqueue_throttled("b", "p")
    driver.enqueue_throttled("a", "p", count=4)
    return driver.why_key("a")


def key_throttled_in_part(driver: Explained) -> Explanation:
    driver.limit("p", 1, 1)
    driver.consume(credit=2)
    driver.enqueue_throttled("a", "p", count=4)
    driver.enqueue_key("b")
    driver.enqueue_key("a", 2)
    return driver.why_key("a")


def key_among_others(driver: Explained) -> Explanation:
    fill(driver, 4)
    driver.enqueue_key("heavy", 9, weight=9)
    driver.enqueue_key("a", 3)
    return driver.why_key("a")


def key_alone_with_a_full_consumer(driver: Explained) -> Explanation:
    fill(driver)
    driver.enqueue_key("a", 3)
    return driver.why_key("a")


def key_whose_own_messages_are_with_all_consumers(driver: Explained) -> Explanation:
    driver.consume(credit=4)
    driver.enqueue_key("a", 6)
    driver.pass_time(20)
    return driver.why_key("a")


KEYS: list[tuple[Story, list[str]]] = [
    (key_never_seen, ["NOTHING_PENDING"]),
    (key_all_done, ["NOTHING_PENDING"]),
    (key_in_flight, ["IN_FLIGHT"]),
    (key_delayed, ["DELAYED"]),
    (key_in_a_paused_queue, ["PAUSED"]),
    (key_without_a_consumer, ["NO_CONSUMER"]),
    (key_throttled, ["THROTTLED"]),
    (key_throttled_and_never_tried, ["THROTTLED", "NO_CREDIT"]),
    (key_throttled_in_part, ["NO_CREDIT", "THROTTLED"]),
    (key_among_others, ["WAITING_TURN", "NO_CREDIT"]),
    (key_alone_with_a_full_consumer, ["NO_CREDIT"]),
    (key_whose_own_messages_are_with_all_consumers, ["NO_CREDIT", "IN_FLIGHT"]),
]


@pytest.mark.parametrize(("story", "expected"), KEYS, ids=story_name)
def test_a_key_is_explained_by_its_true_reason(
    driver: Explained, story: Story, expected: list[str]
) -> None:
    assert codes(story(driver)) == expected


def test_a_key_tells_its_counts_and_its_share(driver: Explained) -> None:
    driver.limit("p", 1, 1)
    consumer = driver.consume(credit=4)
    driver.enqueue_throttled("a", "p", count=3)
    driver.enqueue_key("b", 20, weight=3)
    oldest = driver.enqueue_key("a", 5)
    driver.enqueue(2, spec=Spec(fairness_key="a"), timing=Timing(delay_ms=9000))
    driver.set_credit(consumer, 8)

    explanation = driver.why_key("a")

    key = explanation.subject
    assert isinstance(key, KeyState)
    assert (key.ready, key.delayed, key.throttled) == (6, 2, 2)
    assert (key.in_flight, key.weight, key.weight_share) == (2, 1, 0.25)
    assert key.share == 0.25
    assert key.oldest_sequence < oldest[0]
    assert facts(explanation, Code.THROTTLED, Throttling).messages == 2
    assert facts(explanation, Code.DELAYED, Count).messages == 2


def test_what_no_consumer_has_tried_yet_is_counted_as_held_back(driver: Explained) -> None:
    explanation = key_throttled_and_never_tried(driver)

    throttling = facts(explanation, Code.THROTTLED, Throttling)
    assert throttling.messages == throttling.buckets[0].waiting == 4
    assert isinstance(explanation.subject, KeyState)
    assert explanation.subject.throttled == 4


def test_a_key_tells_its_place_in_the_ring(driver: Explained) -> None:
    turn = facts(key_among_others(driver), Code.WAITING_TURN, Turn)

    assert (turn.keys_before, turn.active_keys) == (1, 2)
    assert not turn.is_next


def test_a_key_with_messages_of_many_kinds_is_explained_exactly(driver: Explained) -> None:
    (oldest,) = driver.enqueue(1, spec=Spec(fairness_key="a"))
    for priority in range(1, 41):
        driver.enqueue(1, spec=Spec(fairness_key="a", priority=priority))

    explanation = driver.why_key("a")

    assert explanation.is_exact
    assert isinstance(explanation.subject, KeyState)
    assert explanation.subject.oldest_sequence == oldest


# Queues


def queue_empty(driver: Explained) -> Explanation:
    return driver.why_queue()


def queue_empty_with_a_consumer(driver: Explained) -> Explanation:
    driver.consume()
    return driver.why_queue()


def queue_paused(driver: Explained) -> Explanation:
    driver.consume()
    driver.pause()
    driver.enqueue_one()
    return driver.why_queue()


def queue_without_a_consumer(driver: Explained) -> Explanation:
    driver.enqueue_one()
    return driver.why_queue()


def queue_delayed(driver: Explained) -> Explanation:
    driver.consume()
    driver.enqueue(timing=Timing(delay_ms=1000))
    return driver.why_queue()


def queue_in_flight(driver: Explained) -> Explanation:
    driver.enqueue(2)
    driver.consume()
    return driver.why_queue()


def queue_throttled(driver: Explained) -> Explanation:
    driver.limit("p", 1, 1)
    driver.consume()
    driver.enqueue_throttled("a", "p", count=3)
    driver.enqueue_throttled("b", "p", count=3)
    return driver.why_queue()


def queue_busy(driver: Explained) -> Explanation:
    fill(driver, 2)
    driver.enqueue_key("a", 3)
    return driver.why_queue()


def queue_standing_still_and_partly_delayed(driver: Explained) -> Explanation:
    queue_busy(driver)
    driver.enqueue(timing=Timing(delay_ms=60_000))
    driver.pass_time(15)
    return driver.why_queue()


QUEUES: list[tuple[Story, list[str]]] = [
    (queue_empty, ["NOTHING_PENDING", "NO_CONSUMER"]),
    (queue_empty_with_a_consumer, ["NOTHING_PENDING"]),
    (queue_paused, ["PAUSED"]),
    (queue_without_a_consumer, ["NO_CONSUMER"]),
    (queue_delayed, ["DELAYED"]),
    (queue_in_flight, ["IN_FLIGHT"]),
    (queue_throttled, ["THROTTLED"]),
    (queue_busy, ["NO_CREDIT"]),
    (queue_standing_still_and_partly_delayed, ["NO_CREDIT", "DELAYED"]),
]


@pytest.mark.parametrize(("story", "expected"), QUEUES, ids=story_name)
def test_a_queue_is_explained_by_its_true_reason(
    driver: Explained, story: Story, expected: list[str]
) -> None:
    assert codes(story(driver)) == expected


def test_a_queue_that_moves_is_told_from_one_that_stands_still(driver: Explained) -> None:
    busy = facts(queue_busy(driver), Code.NO_CREDIT, Credit)
    driver.pass_time(12)
    still = facts(driver.why_queue(), Code.NO_CREDIT, Credit)

    assert (busy.is_moving, still.is_moving) == (True, False)


def test_a_queue_names_the_keys_that_wait_longest(driver: Explained) -> None:
    driver.limit("p", 1, 1)
    driver.consume(credit=1)
    driver.enqueue_throttled("held", "p", count=3)
    for key in "abcdefg":
        driver.enqueue_key(key)

    queue = driver.why_queue().subject

    assert isinstance(queue, QueueState)
    assert [each.key for each in queue.longest_waiting] == ["held", "a", "b", "c", "d"]
    assert (queue.ready, queue.in_flight, queue.key_count) == (9, 1, 8)


# What it costs


def _backlog(shape: str) -> tuple[Explained, Callable[[], Explanation]]:
    driver = Explained(stored=shape != "long")
    driver.create()
    driver.limit("p", 1, 1)
    driver.consume(credit=1)
    if shape == "long":
        last = driver.enqueue(500_000)[-1]
        queue = driver.queue_state()
        message = queue.find(Spec(), last, last)
        return driver, lambda: driver.scheduler.explain(
            QUEUE, message=message, now_ns=driver.now_ns, wall_ns=driver.wall_ns
        )
    if shape == "keys":
        driver.accept([Spec(fairness_key=str(number)) for number in range(30_000)])
        return driver, lambda: driver.why(30_000)
    if shape == "lanes":
        driver.accept(
            [Spec(cost=1 + number % 9000, priority=number % 5) for number in range(30_000)]
        )
        return driver, lambda: driver.why(30_000)
    driver.accept([Spec(fairness_key=str(n), throttle_keys=("p",)) for n in range(30_000)])
    driver.run(c.SetCredit(consumer=1, credit=2))
    return driver, lambda: driver.why(30_000)


@pytest.mark.parametrize("shape", ["long", "keys", "lanes", "throttled"])
def test_an_answer_costs_no_more_however_much_waits(shape: str) -> None:
    driver, ask = _backlog(shape)

    explanation = ask()

    assert count_calls(ask) < 24 * LOOKS_MAX
    assert count_calls(driver.why_queue) < 24 * LOOKS_MAX
    assert count_calls(lambda: driver.why_key("default")) < 24 * LOOKS_MAX
    # In one lane a place is found without a look at each.
    assert explanation.is_exact == (shape == "long")


def test_a_place_in_a_long_lane_is_exact() -> None:
    _, ask = _backlog("long")

    turn = facts(ask(), Code.WAITING_TURN, Turn)

    assert turn.ahead_in_lane == 500_000 - 2


def test_asking_changes_nothing(driver: Explained) -> None:
    key_throttled_in_part(driver)
    other = Explained()
    other.create()
    key_throttled_in_part(other)
    for sequence in other.stored_sequences():
        other.why(sequence)
    other.why_key("a")
    other.why_queue()

    for each in (driver, other):
        each.set_credit(1, 100)
        each.pass_time(10)

    def seen(deliveries: list[Delivery]) -> list[tuple[int, int]]:
        return [(each.sequence, each.token) for each in deliveries]

    assert seen(driver.delivered) == seen(other.delivered)


@pytest.mark.parametrize("consumers", [1, 2])
def test_a_key_for_which_there_was_no_time_is_not_said_to_wait_longest(
    driver: Explained, consumers: int
) -> None:
    driver.pause()
    for _ in range(consumers):
        driver.consume()
    for number in range(LOOKS_MAX):
        driver.enqueue_key(f"key-{number}")

    explanation = driver.why_queue()

    assert not explanation.is_exact
    assert isinstance(explanation.subject, QueueState)
    assert all(key.oldest_sequence for key in explanation.subject.longest_waiting)
