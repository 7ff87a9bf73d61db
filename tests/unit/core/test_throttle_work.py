"""What limits cost, in calls counted: the same for ten keys and for ten thousand."""

from collections.abc import Callable

import pytest

from tests.unit.core.lanes import count_calls
from tests.unit.core.throttled import Throttled


def deliver_one_by_one(driver: Throttled, count: int) -> Callable[[], object]:
    """Each message delivered is settled, and the next one follows."""

    def work() -> None:
        for _ in range(count):
            assert driver.drain()

    return work


def in_time(driver: Throttled, tokens: int, interval_s: float) -> Callable[[], object]:
    """Time passes from token to token; each brings one delivery."""

    def work() -> None:
        for _ in range(tokens):
            driver.pass_time(interval_s)
            assert len(driver.drain()) == 1

    return work


def make(*, stored: bool = False) -> Throttled:
    driver = Throttled(stored=stored)
    driver.create()
    return driver


def test_a_free_key_among_9999_throttled_ones_costs_what_it_costs_alone() -> None:
    steps = []
    for throttled in (0, 9_999):
        driver = make()
        driver.limit("exhausted", 0)
        for number in range(throttled):
            driver.enqueue_throttled(f"key-{number}", "exhausted", count=10)
        driver.enqueue_throttled("free", "other", count=200)
        driver.consume(credit=1)
        driver.drain()
        steps.append(count_calls(deliver_one_by_one(driver, 100)))

    alone, among_many = steps
    assert among_many <= alone * 1.01


@pytest.mark.parametrize(("few", "many"), [(1_000, 10_000)])
def test_a_token_costs_the_same_whether_a_thousand_lanes_wait_for_it_or_ten_thousand(
    few: int, many: int
) -> None:
    steps = []
    for keys in (few, many):
        driver = make()
        driver.limit("provider", 10, burst=1)
        for number in range(keys):
            driver.enqueue_throttled(f"key-{number}", "provider", count=2)
        driver.consume(credit=1000)
        driver.drain()
        steps.append(count_calls(in_time(driver, 100, 0.1)))

    assert steps[1] <= steps[0] * 1.02
    assert steps[1] / 100 < 500


def test_a_token_costs_the_same_for_a_key_of_ten_thousand_lanes_and_of_a_hundred_thousand() -> None:
    steps = []
    for lanes in (10_000, 100_000):
        driver = make()
        driver.limit("provider", 10, burst=1)
        for number in range(lanes):
            driver.enqueue_throttled("key", "provider", f"unlimited-{number}")
        driver.consume(credit=1000)
        driver.drain()
        steps.append(count_calls(in_time(driver, 100, 0.1)))

    assert steps[1] <= steps[0] * 1.02
    assert steps[1] / 100 < 500


def test_a_token_costs_the_same_where_many_lanes_need_two_buckets() -> None:
    steps = []
    for keys in (300, 3_000):
        driver = make()
        driver.limit("p", 10, burst=1)
        driver.limit("q", 10, burst=1)
        for number in range(keys):
            driver.enqueue_throttled(f"both-{number}", "p", "q", count=2)
            driver.enqueue_throttled(f"p-{number}", "p", count=2)
            driver.enqueue_throttled(f"q-{number}", "q", count=2)
        driver.consume(credit=1000)
        driver.drain()
        list(driver.flow(20))
        before = driver.now_ns
        served: list[object] = []
        steps.append(
            count_calls(lambda driver=driver, s=served: s.extend(driver.flow(20)))  # type: ignore[misc]
            / max(1, len(served))
        )
        assert driver.now_ns > before
        assert len(served) > 200

    assert steps[1] <= steps[0] * 1.1


def test_a_bucket_check_is_a_few_steps_for_each_bucket_and_message() -> None:
    steps = {}
    for buckets in (0, 1, 2, 16):
        driver = make()
        names = tuple(f"p{number}" for number in range(16))
        for name in names[:buckets]:
            driver.limit(name, 1e6)
        driver.enqueue_throttled("key", *names, count=1100)
        driver.consume(credit=1)
        steps[buckets] = count_calls(deliver_one_by_one(driver, 1000)) / 1000

    # A call to take the token, and one for the level, once in a pass.
    assert steps[1] - steps[0] <= 10
    assert (steps[16] - steps[1]) / 15 <= 3


def test_a_wave_of_waiting_lanes_is_put_aside_a_part_at_a_time() -> None:
    driver = make()
    driver.limit("exhausted", 0)
    for number in range(10_000):
        driver.enqueue_throttled(f"key-{number}", "exhausted")
    driver.consume(credit=0)
    driver.scheduler.handle([], now_ns=0, wall_ns=driver.wall_ns)
    passes: list[int] = []
    consumer = driver.consume(credit=0)

    driver.scheduler._state.consumers[consumer].credit = 1
    driver.scheduler._state.freed[driver.scheduler._state.consumers[consumer]] = None
    while driver.due_ns() == 0:
        passes.append(count_calls(driver.step))

    assert len(passes) >= 5
    assert max(passes) < 4 * 10_000 * 10
