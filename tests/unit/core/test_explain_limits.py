"""What a limit holds back is told with its buckets, and what it does not hold back is not."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from fila.core.explanation import Code, Explanation, Throttling, Turn
from fila.model import NS_PER_S
from tests.unit.core.explained import Explained, codes, facts, fill, story_name

Story: TypeAlias = Callable[[Explained], Explanation]


@pytest.fixture
def driver() -> Explained:
    found = Explained()
    found.create()
    return found


def out_of_tokens(driver: Explained) -> Explanation:
    driver.limit("p", 0.5, 1)
    driver.consume()
    return driver.why(driver.enqueue_throttled("a", "p", count=2)[-1])


def held_back_for_good(driver: Explained) -> Explanation:
    driver.limit("p", 0, 1)
    driver.consume()
    return driver.why(driver.enqueue_throttled("a", "p", count=2)[-1])


def out_of_tokens_with_a_full_consumer(driver: Explained) -> Explanation:
    driver.limit("p", 0.5, 1)
    driver.consume(credit=1)
    return driver.why(driver.enqueue_throttled("a", "p", count=2)[-1])


def out_of_tokens_that_another_queue_took(driver: Explained) -> Explanation:
    driver.limit("p", 0.5, 1)
    driver.create("other")
    driver.consume("other")
    driver.enqueue_throttled("a", "p", queue="other")
    fill(driver)
    return driver.why(driver.enqueue_throttled("a", "p")[0])


def behind_who_was_called_for_the_token(driver: Explained) -> Explanation:
    consumer = _called(driver, "first")
    driver.set_credit(consumer, 1)
    return driver.why(driver.enqueue_throttled("second", "p")[0])


def in_line_behind_who_was_called_for_the_token(driver: Explained) -> Explanation:
    _called(driver, "first", "second")
    return driver.why(driver.stored_sequences()[-1])


def _called(driver: Explained, *keys: str) -> int:
    """Keys in line for a token, the first of which was called when nobody had room any more."""
    driver.limit("p", 0.5, 1)
    consumer = driver.consume(credit=2)
    driver.enqueue_throttled("zero", "p")
    for key in keys:
        driver.enqueue_throttled(key, "p")
    driver.set_credit(consumer, 1)
    driver.pass_time(3)
    assert driver.tokens("p") == 1
    return consumer


def beside_a_token_that_is_kept(driver: Explained) -> Explanation:
    driver.create("other")
    driver.consume("other", credit=0)
    driver.limit("p", 1, 1)
    driver.limit("q", 0.5, 1)
    driver.consume()
    # Whenever one of its tokens comes, the other has just gone: at last it has a claim.
    for key, *throttle_keys in (("i", "p"), ("j", "q"), ("both", "p", "q"), ("k", "p"), ("l", "q")):
        driver.enqueue_throttled(key, *throttle_keys, count=6 if key in "kl" else 1)
    for _ in range(5):
        driver.pass_time(0.5)
    assert driver.tokens("q") == 1
    return driver.why(driver.enqueue_throttled("a", "q", queue="other")[0], "other")


def out_of_tokens_and_paused(driver: Explained) -> Explanation:
    driver.limit("p", 0.5, 1)
    driver.consume()
    sequence = driver.enqueue_throttled("a", "p", count=2)[-1]
    driver.pause()
    return driver.why(sequence)


def deep_in_a_lane_with_tokens_for_the_first(driver: Explained) -> Explanation:
    driver.limit("p", 1, 2)
    return driver.why(driver.enqueue_throttled("a", "p", count=5)[-1])


def with_tokens_for_all(driver: Explained) -> Explanation:
    driver.limit("p", 1, 2)
    return driver.why(driver.enqueue_throttled("a", "p")[0])


def with_an_unknown_throttle_key(driver: Explained) -> Explanation:
    return driver.why(driver.enqueue_throttled("a", "nobody-limits-this")[0])


LIMITS: list[tuple[Story, list[str]]] = [
    (out_of_tokens, ["THROTTLED"]),
    (held_back_for_good, ["THROTTLED"]),
    (out_of_tokens_with_a_full_consumer, ["THROTTLED", "NO_CREDIT"]),
    (out_of_tokens_and_paused, ["PAUSED", "THROTTLED"]),
    (out_of_tokens_that_another_queue_took, ["THROTTLED", "NO_CREDIT"]),
    (behind_who_was_called_for_the_token, ["THROTTLED", "NO_CREDIT"]),
    (in_line_behind_who_was_called_for_the_token, ["THROTTLED", "NO_CREDIT"]),
    (beside_a_token_that_is_kept, ["THROTTLED", "NO_CREDIT"]),
    (deep_in_a_lane_with_tokens_for_the_first, ["NO_CONSUMER", "WAITING_TURN", "THROTTLED"]),
    (with_tokens_for_all, ["NO_CONSUMER"]),
    (with_an_unknown_throttle_key, ["NO_CONSUMER"]),
]


@pytest.mark.parametrize(("story", "expected"), LIMITS, ids=story_name)
def test_a_limit_is_told_where_it_binds(
    driver: Explained, story: Story, expected: list[str]
) -> None:
    assert codes(story(driver)) == expected


def test_a_limit_tells_its_tokens_and_when_the_next_one_comes(driver: Explained) -> None:
    driver.limit("p", 0.5, 2)
    driver.limit("generous", 100, 100)
    driver.consume()
    sequences = driver.enqueue_throttled("a", "p", "generous", count=5)
    driver.pass_time(0.5)

    throttling = facts(driver.why(sequences[4]), Code.THROTTLED, Throttling)

    p, generous = throttling.buckets
    assert (p.key, p.tokens, p.rate, p.burst, p.holds_back) == ("p", 0.25, 0.5, 2, True)
    assert (generous.key, generous.holds_back) == ("generous", False)
    assert (p.waiting, p.waiting_before) == (3, 2)
    assert p.next_token_ns == 1.5 * NS_PER_S
    # Two before it.
    assert throttling.earliest_ns == throttling.likely_ns == 5.5 * NS_PER_S


def test_a_bucket_holds_no_more_than_its_burst(driver: Explained) -> None:
    driver.limit("p", 1, 2)
    sequences = driver.enqueue_throttled("a", "p", count=5)
    driver.pass_time(60)

    throttling = facts(driver.why(sequences[-1]), Code.THROTTLED, Throttling)

    assert throttling.buckets[0].tokens == 2
    assert throttling.earliest_ns == 3 * NS_PER_S


def test_a_limit_of_nothing_never_ends_by_itself(driver: Explained) -> None:
    throttling = facts(held_back_for_good(driver), Code.THROTTLED, Throttling)

    assert throttling.earliest_ns is None
    assert throttling.buckets[0].next_token_ns is None


def test_who_shares_a_limit_makes_a_likely_time_later_than_the_earliest(driver: Explained) -> None:
    driver.limit("p", 1, 1)
    driver.consume()
    driver.enqueue_throttled("heavy", "p", count=10, weight=3)
    (sequence,) = driver.enqueue_throttled("light", "p")

    throttling = facts(driver.why(sequence), Code.THROTTLED, Throttling)

    assert throttling.buckets[0].waiting_before == 3
    assert (throttling.earliest_ns, throttling.likely_ns) == (NS_PER_S, 4 * NS_PER_S)


def test_what_was_called_for_tokens_may_be_before_only_in_part(driver: Explained) -> None:
    driver.limit("p", 1, 2)
    consumer = driver.consume(credit=3)
    driver.enqueue_throttled("a", "p", count=3)
    driver.set_credit(consumer, 2)
    between = driver.enqueue_key("a")[0]
    driver.enqueue_throttled("a", "p")
    driver.pass_time(2)

    explanation = driver.why(between)

    assert facts(explanation, Code.WAITING_TURN, Turn).ahead_in_key == 2
    assert not explanation.is_exact


def test_what_a_limit_holds_back_is_not_before_anyone(driver: Explained) -> None:
    driver.limit("p", 0.001, 1)
    driver.consume(credit=2)
    driver.enqueue_throttled("a", "p", count=5)
    driver.enqueue_key("a")
    sequence = driver.enqueue_key("a")[0]

    assert codes(driver.why(sequence)) == ["NO_CREDIT"]
