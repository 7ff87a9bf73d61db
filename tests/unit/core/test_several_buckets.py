"""A lane that needs several buckets, beside lanes that need one each: the bound that is promised.

Let a turn of a key be `weight × quantum` messages, and let i be the time in which the slowest of
the buckets concerned gains a token. The lane comes to its turn at the bucket where it waits after
at most one turn of each other key there. If another of its buckets has no token for it then, it
stakes a claim, and is delivered within (n + 1) × i, n being the number of older claims.
"""

from itertools import pairwise
from random import Random

import pytest

from fila.core.claim import Claim
from fila.model import NS_PER_S
from tests.unit.core.throttled import Throttled


@pytest.mark.parametrize(("rate_p", "rate_q"), [(10, 10), (10, 7), (3, 50), (50, 3)])
@pytest.mark.parametrize("rivals", [1, 5, 20])
def test_a_lane_with_two_contended_buckets_waits_for_one_turn_of_each_and_one_token(
    rate_p: float, rate_q: float, rivals: int
) -> None:
    driver = Throttled()
    driver.create()
    driver.limit("p", rate_p, burst=1)
    driver.limit("q", rate_q, burst=1)
    for number in range(rivals):
        driver.enqueue_throttled(f"p-{number}", "p", count=2000)
        driver.enqueue_throttled(f"q-{number}", "q", count=2000)
    driver.enqueue_throttled("both", "p", "q", count=100)
    driver.consume(credit=10_000)
    slowest_s = 1 / min(rate_p, rate_q)
    # It waits at either bucket: one turn of each rival there, one of its own, and then the claim.
    bound_s = (rivals + 1) * slowest_s + slowest_s

    served = [at_s for at_s, each in driver.flow(20 * bound_s) if each.key == "both"]

    assert len(served) >= 19
    assert served[0] <= bound_s
    assert max(after - before for before, after in pairwise(served)) <= bound_s + 1e-6


def test_rivals_are_not_made_to_wait_for_more_than_their_share() -> None:
    driver = Throttled()
    driver.create()
    driver.limit("p", 10, burst=1)
    driver.limit("q", 10, burst=1)
    driver.enqueue_throttled("p", "p", count=2000)
    driver.enqueue_throttled("q", "q", count=2000)
    driver.enqueue_throttled("both", "p", "q", count=2000)
    driver.consume(credit=10_000)

    served = [each.key for _, each in driver.flow(60)]

    # Two keys at each bucket: a half of its tokens for each, and none is lost.
    assert [served.count(key) for key in ("both", "p", "q")] == pytest.approx([300] * 3, abs=2)


class Watch:
    """Every claim, since when, and how many were older."""

    def __init__(self, driver: Throttled) -> None:
        self.driver = driver
        self.since: dict[Claim, tuple[int, int]] = {}
        self.waits: list[tuple[int, int]] = []

    def look(self) -> None:
        now_ns = self.driver.now_ns
        lanes = self.driver.queue_state()._lanes.values()
        alive = {lane.claim for lane in lanes if lane.claim is not None}
        for claim in [claim for claim in self.since if claim not in alive]:
            since_ns, older = self.since.pop(claim)
            self.waits.append((now_ns - since_ns, older))
        for claim in alive:
            if claim not in self.since:
                self.since[claim] = now_ns, len(alive) - 1


@pytest.mark.parametrize("seed", range(8))
def test_a_claim_is_served_within_one_token_of_the_slowest_bucket_for_each_older_one(
    seed: int,
) -> None:
    rng = Random(seed)
    driver = Throttled()
    driver.create()
    rates = {name: rng.choice((2, 5, 10, 33.3, 100)) for name in "pqrst"}
    for name, rate in rates.items():
        driver.limit(name, rate, burst=rng.choice((1, 1, 4)))
    for number in range(60):
        names = rng.sample(sorted(rates), rng.choice((1, 1, 1, 2, 3, 5)))
        driver.enqueue_throttled(f"key-{number % 12}", *names, count=400)
    driver.consume(credit=10_000)
    watch = Watch(driver)

    for _ in driver.flow(60):
        watch.look()

    slowest_ns = -(-NS_PER_S // min(rates.values()))
    assert len(watch.waits) > 50
    for waited_ns, older in watch.waits:
        assert waited_ns <= (older + 1) * (slowest_ns + 1)


def test_a_claim_of_a_queue_that_takes_nothing_lets_others_pass() -> None:
    driver = Throttled()
    for queue in ("stuck", "moving"):
        driver.create(queue)
    driver.limit("p", 10, burst=1)
    driver.limit("q", 10, burst=1)
    stuck = driver.consume("stuck", credit=10_000)
    driver.consume("moving", credit=10_000)
    for queue in ("stuck", "moving"):
        for name in ("p", "q"):
            driver.enqueue_throttled(name, name, count=2000, queue=queue)
        driver.enqueue_throttled("both", "p", "q", count=2000, queue=queue)
    list(driver.flow(3))

    driver.set_credit(stuck, 0)
    served = [each for _, each in driver.flow(20)]

    assert {each.queue for each in served} == {"moving"}
    both = [each.key for each in served].count("both")
    # But for the second in which the other queue's claim was waited for.
    assert both == pytest.approx(95, abs=3)
    assert len(served) + both == pytest.approx(2 * 200, abs=4)


def test_a_claim_waits_while_its_consumer_is_busy_for_a_moment() -> None:
    driver = Throttled()
    driver.create()
    driver.limit("p", 10, burst=1)
    driver.limit("q", 10, burst=1)
    driver.enqueue_throttled("p", "p", count=2000)
    driver.enqueue_throttled("q", "q", count=2000)
    driver.enqueue_throttled("both", "p", "q", count=2000)
    consumer = driver.consume(credit=1)
    keys = []

    # It is busy whenever a token comes, and has room soon after.
    for _ in range(300):
        driver.set_credit(consumer, 0)
        driver.pass_time(0.1)
        driver.set_credit(consumer, 1)
        keys += driver.drain()

    assert keys.count("both") >= 20


def test_a_lane_that_is_emptied_after_it_was_called_leaves_no_claim() -> None:
    driver = Throttled()
    driver.create()
    driver.limit("p", 10, burst=1)
    driver.limit("q", 10, burst=1)
    driver.enqueue_throttled("p", "p", count=2000)
    driver.enqueue_throttled("q", "q", count=2000)
    consumer = driver.consume(credit=10_000)
    (message,) = driver.enqueue_throttled("both", "p", "q")
    buckets = driver.scheduler._state.throttle.buckets
    while not buckets["p"].claims:
        driver.pass_time(0.1)
    driver.set_credit(consumer, 0)
    driver.pass_time(0.1)
    claim = buckets["p"].first_claim
    assert claim is not None
    assert claim.called_ns is not None

    driver.remove(message)

    assert not buckets["p"].claims
    assert not buckets["q"].claims
    assert not driver.scheduler._state.throttle._heard
