"""Limits at work: what leaves, what waits, who is called, and what is left when all is over."""

from collections import Counter
from itertools import pairwise

import pytest

from fila.core import commands as c
from fila.core.effects import PutLevels
from fila.core.records import BucketLevel
from fila.model import NS_PER_S, QueueSettings, Spec, Timing
from tests.unit.core.driver import DLQ, QUEUE
from tests.unit.core.throttled import Throttled, check_books

HOUR_S = 3600.0


@pytest.fixture
def driver() -> Throttled:
    driver = Throttled()
    driver.create()
    return driver


# Tokens


def test_a_delivery_takes_a_token_from_each_of_its_buckets(driver: Throttled) -> None:
    driver.limit("p", 1, burst=5)
    driver.limit("q", 1, burst=3)
    driver.enqueue_throttled("a", "p", "q", count=2)

    driver.consume()

    assert (driver.tokens("p"), driver.tokens("q")) == (3, 1)


def test_where_one_bucket_is_empty_no_token_is_taken_from_any(driver: Throttled) -> None:
    driver.limit("p", 1, burst=5)
    driver.limit("q", 0)
    driver.enqueue_throttled("a", "p", "q")

    driver.consume()

    assert driver.delivered == []
    assert driver.tokens("p") == 5


def test_a_delivery_without_a_consumer_takes_no_token(driver: Throttled) -> None:
    driver.limit("p", 1, burst=5)
    driver.enqueue_throttled("a", "p", count=3)
    driver.consume(credit=0)

    assert driver.tokens("p") == 5


def test_a_redelivery_takes_a_token_too(driver: Throttled) -> None:
    driver.limit("p", 0.01, burst=3)
    driver.enqueue_throttled("a", "p")

    driver.release(driver.take_one())
    driver.release(driver.take_one())

    assert driver.tokens("p") == 1


def test_a_message_that_ran_out_before_it_could_be_sent_takes_none(driver: Throttled) -> None:
    driver.limit("p", 1, burst=5000)
    spec = Spec(throttle_keys=("p",))
    # More than fall due in one pass: the rest is met by the delivery.
    driver.enqueue(2500, spec=spec, timing=Timing(ttl_ms=1000))
    driver.now_ns += NS_PER_S
    driver.wall_ns += NS_PER_S

    driver.consume(credit=5000)

    assert driver.delivered == []
    assert driver.depth(DLQ) == 2500
    assert driver.tokens("p") == 5000


def test_several_are_taken_in_one_step_and_no_more_than_there_are_tokens(
    driver: Throttled,
) -> None:
    driver.limit("p", 1, burst=7)
    driver.enqueue_throttled("a", "p", count=50, weight=40)

    driver.consume()

    assert len(driver.delivered) == 7
    assert driver.tokens("p") == 0


def test_throttle_keys_without_a_limit_hold_nothing_back(driver: Throttled) -> None:
    driver.configure("throttle:p:burst", "1")
    driver.enqueue_throttled("a", "p", "nobody", count=20)

    driver.consume()

    assert len(driver.delivered) == 20


def test_buckets_are_shared_by_all_queues(driver: Throttled) -> None:
    driver.create("other")
    driver.limit("p", 10, burst=10)
    driver.enqueue_throttled("a", "p", count=50)
    driver.enqueue_throttled("a", "p", count=50, queue="other")
    driver.consume(QUEUE, "other", credit=1000)

    served = Counter(each.queue for _, each in driver.flow(3))

    assert sum(served.values()) == 40
    assert served[QUEUE] == served["other"] == 20


def test_dead_letters_need_tokens_like_all_messages(driver: Throttled) -> None:
    driver.limit("p", 0.001, burst=1)
    driver.enqueue_throttled("a", "p")
    driver.settle(c.Action.NACK, driver.take_one(), dead_letter=True)

    driver.consume(DLQ)

    assert driver.delivered[1:] == []
    assert driver.depth(DLQ) == 1


# Who goes on, and who waits


def test_a_throttled_message_is_passed_over_by_others_of_its_key(driver: Throttled) -> None:
    driver.limit("exhausted", 0)
    driver.enqueue_throttled("a", "exhausted", count=3)
    free = driver.enqueue_throttled("a", "free", count=3)
    driver.enqueue_throttled("a", "exhausted", count=3, priority=9)
    free += driver.enqueue_throttled("a", "free", count=3)

    driver.consume()

    assert [each.sequence for each in driver.delivered] == free


def test_a_tenant_with_one_exhausted_provider_uses_the_other_at_its_full_rate(
    driver: Throttled,
) -> None:
    driver.limit("exhausted", 0.1, burst=1)
    driver.limit("good", 200, burst=1)
    sent = []
    for _ in range(500):
        driver.enqueue_throttled("tenant", "exhausted")
        sent += driver.enqueue_throttled("tenant", "good")
    driver.consume(credit=1000)

    served = [(at_s, each) for at_s, each in driver.flow(2) if "good" in each.spec.throttle_keys]

    assert [each.sequence for _, each in served] == sent[:401]
    assert {round(after - before, 9) for (before, _), (after, _) in pairwise(served)} == {0.005}


def test_tokens_of_a_scarce_bucket_go_by_weight(driver: Throttled) -> None:
    driver.limit("provider", 50)
    driver.enqueue_throttled("big", "provider", count=2000, weight=3)
    driver.enqueue_throttled("small", "provider", count=2000)
    driver.consume(credit=1000)

    served = Counter(each.key for _, each in driver.flow(20))

    assert sum(served.values()) == 50 + 20 * 50
    assert abs(served["big"] - 3 * served["small"]) <= 4


def test_tokens_of_a_scarce_bucket_go_by_weight_while_others_come_and_go(
    driver: Throttled,
) -> None:
    driver.limit("provider", 50, burst=1)
    driver.enqueue_throttled("big", "provider", count=2000, weight=3)
    driver.enqueue_throttled("small", "provider", count=2000)
    driver.consume(credit=1000)
    served: Counter[str] = Counter()

    for number in range(100):
        driver.enqueue_throttled(f"passing-{number % 7}", "provider", count=2)
        served.update(each.key for _, each in driver.flow(0.2))

    assert served["small"] > 150
    assert abs(served["big"] - 3 * served["small"]) <= 4


def test_a_weight_that_changes_while_messages_wait_counts_from_the_next_turn(
    driver: Throttled,
) -> None:
    driver.limit("provider", 10, burst=1)
    driver.enqueue_throttled("a", "provider", count=500)
    driver.enqueue_throttled("b", "provider", count=500)
    driver.consume(credit=1000)
    list(driver.flow(5))

    driver.enqueue_throttled("b", "provider", weight=4)
    served = Counter(each.key for _, each in driver.flow(20))

    assert abs(served["b"] - 4 * served["a"]) <= 5


def test_a_full_consumer_leaves_tokens_and_places_as_they_are(driver: Throttled) -> None:
    driver.limit("p", 10, burst=2)
    first, second, *_ = driver.enqueue_throttled("a", "p", count=10)
    consumer = driver.consume(credit=1)
    driver.pass_time(1)

    assert driver.tokens("p") == 2

    driver.set_credit(consumer, 2)

    assert [each.sequence for each in driver.delivered] == [first, second]
    assert driver.tokens("p") == 1


# Changes


def test_a_change_holds_for_what_waits_already(driver: Throttled) -> None:
    driver.limit("p", 0)
    driver.enqueue_throttled("a", "p", count=10)
    driver.consume()
    driver.pass_time(HOUR_S)
    assert driver.delivered == []

    driver.configure("throttle:p:rate", "2")

    assert len(driver.delivered) == 1
    assert len(list(driver.flow(2))) == 1 + 4


def test_rate_0_stops_what_has_tokens_left(driver: Throttled) -> None:
    driver.limit("p", 1, burst=100)
    driver.enqueue_throttled("a", "p", count=10)
    driver.configure("throttle:p:rate", "0")

    driver.consume()

    assert driver.delivered == []


def test_a_limit_that_is_taken_away_lets_all_go(driver: Throttled) -> None:
    driver.limit("p", 0)
    driver.enqueue_throttled("a", "p", count=4000)
    driver.consume(credit=5000)

    driver.lift("p")

    assert len(driver.delivered) == 4000
    assert not driver.queue_state().lines


def test_what_comes_with_the_end_of_a_limit_overtakes_nothing(driver: Throttled) -> None:
    driver.limit("p", 0)
    (first,) = driver.enqueue_throttled("a", "p", priority=9)
    consumer = driver.consume(credit=1)
    (second,) = driver.enqueue_throttled("a", "p", priority=1)
    driver.set_credit(consumer, 0)
    (third,) = driver.enqueue_throttled("a", "p")

    driver.run(
        c.SetConfig(tag=0, key="throttle:p:rate", value=""),
        c.SetCredit(consumer=consumer, credit=9),
    )

    assert [each.sequence for each in driver.delivered] == [first, second, third]


def test_a_limit_that_comes_while_messages_wait_holds_them(driver: Throttled) -> None:
    driver.limit("q", 1, burst=1)
    driver.enqueue_throttled("a", "p", "q", count=5)
    driver.consume()
    assert len(driver.delivered) == 1

    driver.limit("p", 0)

    assert len(list(driver.flow(5))) == 1


@pytest.mark.parametrize(("pause_s", "tokens"), [(HOUR_S - 1, 2), (HOUR_S + 1, 10)])
def test_a_limit_that_comes_back_within_the_hour_finds_its_old_level(
    driver: Throttled, pause_s: float, tokens: int
) -> None:
    driver.limit("p", 1, burst=10)
    driver.enqueue_throttled("a", "p", count=8)
    driver.take(8)
    driver.lift("p")
    driver.pass_time(pause_s)

    driver.limit("p", 1, burst=10)

    assert driver.tokens("p") == tokens


@pytest.mark.parametrize("down_s", [HOUR_S - 1800, HOUR_S])
def test_an_old_level_survives_a_restart_for_the_rest_of_the_hour(
    driver: Throttled, down_s: float
) -> None:
    driver.limit("p", 1, burst=10)
    driver.enqueue_throttled("a", "p", count=8)
    driver.take(8)
    driver.lift("p")
    driver.pass_time(60)
    driver.restart(down_s=down_s)

    driver.limit("p", 1, burst=10)

    assert driver.tokens("p") == (10 if down_s == HOUR_S else 2)


def test_a_jump_of_the_wall_clock_does_not_shorten_the_hour(driver: Throttled) -> None:
    driver.limit("p", 1, burst=10)
    driver.enqueue_throttled("a", "p", count=8)
    driver.take(8)
    driver.lift("p")
    driver.jump(2 * HOUR_S)

    driver.limit("p", 1, burst=10)

    assert driver.tokens("p") == 2


def test_what_is_kept_of_a_limit_is_forgotten_in_the_end(driver: Throttled) -> None:
    driver.limit("p", 1)
    driver.lift("p")
    driver.pass_time(HOUR_S + 120)

    assert driver.storage is not None
    assert not driver.storage.recover().bucket_levels
    assert driver.due_ns() is None


# Restarts


def test_a_restart_gives_no_tokens_back(driver: Throttled) -> None:
    driver.limit("p", 0.001, burst=10)
    driver.enqueue_throttled("a", "p", count=50)
    driver.consume()
    assert len(driver.delivered) == 10

    for _ in range(20):
        driver.restart()
        driver.consume()

    assert driver.delivered == []


def test_a_restart_counts_the_time_that_passed(driver: Throttled) -> None:
    driver.limit("p", 1, burst=10)
    driver.enqueue_throttled("a", "p", count=50)
    driver.consume()

    driver.restart(down_s=4.5)

    assert 4 <= driver.tokens("p") <= 4.5


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_a_wall_clock_that_was_set_before_the_restart_fills_no_bucket(
    driver: Throttled, jump_s: float
) -> None:
    driver.limit("p", 1, burst=10)
    driver.enqueue_throttled("a", "p", count=50)
    driver.consume()
    driver.pass_time(2)

    driver.jump(jump_s)
    driver.restart(down_s=3)

    assert driver.tokens("p") <= 3


def test_levels_are_written_with_the_pass_that_uses_them(driver: Throttled) -> None:
    driver.limit("p", 1, burst=2)
    driver.enqueue_throttled("a", "p")

    driver.consume()

    levels = [each for each in driver.mutations if isinstance(each, PutLevels)]
    assert [list(each.levels) for each in levels] == [
        [BucketLevel(name="p", nano_tokens=500_000_000, at_wall_ns=driver.wall_ns)]
    ]


# Nothing polls


def test_nothing_is_due_where_no_token_will_come(driver: Throttled) -> None:
    driver.limit("p", 0)
    for number in range(100):
        driver.enqueue_throttled(f"key-{number}", "p")
    driver.consume()

    assert driver.due_ns() is None


def test_an_idle_queue_is_looked_at_once_for_each_token(driver: Throttled) -> None:
    driver.limit("p", 2, burst=1)
    for number in range(500):
        driver.enqueue_throttled(f"key-{number}", "p")
    driver.consume(credit=1000)
    driver.drain()
    passes = 0

    for _ in range(20):
        due_ns = driver.due_ns()
        assert due_ns == 500_000_000
        driver.now_ns += due_ns
        driver.wall_ns += due_ns
        while driver.due_ns() == 0:
            driver.step()
            passes += 1
        assert len(driver.drain()) == 1

    assert passes == 20


def test_a_queue_that_takes_nothing_is_not_called_for_ever(driver: Throttled) -> None:
    driver.limit("p", 1000, burst=5)
    driver.enqueue_throttled("a", "p", count=100)
    driver.consume(credit=5)
    passes = 0

    while driver.due_ns() is not None and driver.now_ns < 25 * NS_PER_S:
        driver.pass_time((driver.due_ns() or 0) / NS_PER_S)
        passes += 1

    assert passes <= 6


# What is left behind


@pytest.mark.parametrize("how", ["purge", "remove", "delete", "deliver", "lift"])
def test_nothing_is_left_of_lanes_that_are_gone(driver: Throttled, how: str) -> None:
    driver.limit("p", 1, burst=1)
    driver.limit("q", 1, burst=1)
    sequences = []
    for number in range(20):
        keys = [("p",), ("q",), ("p", "q"), ("q", "p")][number % 4]
        sequences += driver.enqueue_throttled(f"key-{number % 3}", *keys)
    driver.consume(credit=3)
    list(driver.flow(2))
    check_books(driver.queue_state())
    state = driver.scheduler._state

    match how:
        case "purge":
            driver.purge()
        case "remove":
            for sequence in list(driver.queue_state().pending_sequences()):
                driver.remove(sequence)
        case "delete":
            driver.do(c.DeleteQueue(tag=0, queue=QUEUE))
        case "deliver":
            list(driver.flow(60))
        case "lift":
            driver.lift("p")
            driver.lift("q")
            list(driver.flow(1))

    buckets = state.throttle.buckets.values()
    assert not any(bucket.claims for bucket in buckets)
    assert not any(line.waiters or line.granted for b in buckets for line in b.lines.values())
    assert not state.throttle._heard
    if how != "delete":
        check_books(driver.queue_state())
        assert driver.queue_state().throttled_count == 0
        assert not driver.queue_state()._lanes


def test_a_delayed_message_waits_for_its_time_and_then_for_its_token(driver: Throttled) -> None:
    driver.limit("p", 0.1, burst=1)
    driver.enqueue_throttled("a", "p")
    spec = driver.take_one().spec
    driver.enqueue(spec=spec, timing=Timing(delay_ms=3000))
    driver.consume()

    assert [at_s for at_s, _ in driver.flow(20)][1:] == [10.0]


def test_another_quantum_holds_in_the_lines_too(driver: Throttled) -> None:
    driver.limit("p", 100, burst=1)
    driver.enqueue_throttled("a", "p", count=300)
    driver.enqueue_throttled("b", "p", count=300)
    driver.consume(credit=1000)
    list(driver.flow(0.1))

    driver.do(c.UpdateQueue(tag=0, queue=QUEUE, settings=QueueSettings(quantum=5)))
    keys = [each.key for _, each in driver.flow(1)]

    runs = [key for key, _ in zip(keys[10:], keys[9:], strict=False)]
    changes = sum(before != after for before, after in pairwise(runs))
    assert changes == pytest.approx(len(runs) / 5, abs=2)
