"""Shares by weight, measured inside a backlog that is never drained: all keys could get more.

What is asserted, with `share` for a key's weight among the weights of all active keys:

- Messages of cost 1: what a key was served differs from its share of the total by at most
  `weight × quantum + 1`, over every stretch in which the same keys have messages.
- Any costs, since the keys became active: by at most `weight × quantum` and its own largest cost,
  or its share of the largest costs of all others where that is more. Others may have saved up as
  much for a message that they can't afford yet; nothing of it is lost to them, but until then the
  rest is served in their place, and a scheduler that delivers whole messages cannot serve a part
  of one. For a key of average weight that share is one largest cost.
- Any costs, over every stretch: both of these together, as they may be due at its two ends; and
  where a key sleeps for several laps, one turn more, since it wakes at the front of the line.
- Between two keys, whatever others do: served over weight differs by at most one quantum (two
  where one of them sleeps) and the largest cost over weight of each.
"""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.model import Spec
from tests.unit.core.driver import Driver
from tests.unit.core.lanes import Lanes, count_calls

_QUANTA = st.sampled_from([1, 1000])
_WEIGHTS = st.one_of(st.integers(1, 5), st.integers(1, 100), st.integers(1, 10_000))
_COSTS = st.one_of(st.just(1), st.integers(1, 20), st.integers(1, 10_000))


class _Shares:
    """Watches deliveries over a stretch in which the keys and their weights stay the same."""

    def __init__(self, weights: dict[str, int], costs: dict[str, int], quantum: int) -> None:
        self.weights = weights
        self.costs = costs
        self.quantum = quantum
        self.served = dict.fromkeys(weights, 0)
        self.total = 0
        self._weight = sum(weights.values())
        self._cost = sum(costs.values())
        self._plain = max(costs.values()) == 1
        self._turns = _turns_apart(weights, costs, quantum)
        # By how much each was ahead of its share, at most and at least, times the sum of weights.
        self._most = dict.fromkeys(weights, 0)
        self._least = dict.fromkeys(weights, 0)

    def note(self, name: str, cost: int) -> None:
        self.served[name] += cost
        self.total += cost

    def check(self) -> None:
        """Everything since the beginning, and every stretch that ends here, is within bounds."""
        for name, weight in self.weights.items():
            turn, own = weight * self.quantum, self.costs[name]
            others = Fraction(weight * (self._cost - own), self._weight)
            ahead = self.served[name] * self._weight - weight * self.total
            self._most[name] = max(self._most[name], ahead)
            self._least[name] = min(self._least[name], ahead)
            stretch = Fraction(self._most[name] - self._least[name], self._weight)
            if self._plain:
                assert stretch <= turn + 1, (name, self.served)
                continue
            assert abs(Fraction(ahead, self._weight)) <= turn + max(Fraction(own), others), name
            assert stretch <= turn * self._turns + own + others, (name, self.served)


class _Pairs:
    """Watches two keys that stay while others come and go."""

    def __init__(self, weights: dict[str, int], costs: dict[str, int], quantum: int) -> None:
        self.names = sorted(weights)
        self.weights = weights
        self.served = {name: Fraction(0) for name in weights}
        self.slack = {name: Fraction(costs[name], weights[name]) for name in weights}
        self.apart = quantum * _turns_apart(weights, costs, quantum)
        self._gaps: dict[tuple[str, str], tuple[Fraction, Fraction]] = {}

    def note(self, name: str, cost: int) -> None:
        if name not in self.served:
            return
        self.served[name] += Fraction(cost, self.weights[name])
        for other in self.names:
            pair = (min(name, other), max(name, other))
            gap = self.served[pair[0]] - self.served[pair[1]]
            least, most = self._gaps.get(pair, (Fraction(0), Fraction(0)))
            self._gaps[pair] = least, most = min(least, gap), max(most, gap)
            assert most - least <= self.apart + self.slack[pair[0]] + self.slack[pair[1]], pair


def _turns_apart(weights: dict[str, int], costs: dict[str, int], quantum: int) -> int:
    sleeps = any(costs[name] > weight * quantum for name, weight in weights.items())
    return 2 if sleeps else 1


def _fill(lanes: Lanes, name: str, weight: int, costs: Iterator[int], enough: int) -> None:
    """Never let a key run out."""
    while len(lanes.waiting.get(name, ())) < enough:
        lanes.add(Spec(fairness_key=name, weight=weight, cost=next(costs)))


def _deliver(lanes: Lanes) -> Spec:
    return lanes.deliver()[1]


def test_weights_1_to_5_keep_their_shares_inside_a_backlog_of_10_000() -> None:
    driver = Driver()
    driver.create()
    weights = {f"tenant {weight}": weight for weight in range(1, 6)}
    for name, weight in weights.items():
        driver.enqueue_key(name, 2000, weight=weight)
    shares = _Shares(weights, dict.fromkeys(weights, 1), quantum=1)

    driver.consume(credit=4000)

    for count, delivery in enumerate(driver.delivered, start=1):
        shares.note(delivery.key, delivery.spec.cost)
        shares.check()
        if count == 1500:
            for name, weight in weights.items():
                assert abs(shares.served[name] / 1500 - weight / 15) <= 0.01
    assert shares.total == 4000
    assert all(driver.key(name).pending for name in weights)


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_the_shares_do_not_depend_on_how_many_are_asked_for_at_once(batch: int) -> None:
    driver = Driver(stored=False)
    driver.create()
    for weight in range(1, 6):
        driver.enqueue_key(f"tenant {weight}", 400, weight=weight)

    order: list[str] = []
    while len(order) < 600:
        order += [delivery.key for delivery in driver.take(batch)]

    one_lap = [f"tenant {weight}" for weight in range(1, 6) for _ in range(weight)]
    assert order[:600] == one_lap * 40


def test_a_quiet_key_is_served_within_one_turn_of_each_active_key() -> None:
    driver = Driver(stored=False)
    driver.create()
    driver.enqueue_key("noisy", 100_000, weight=3)
    driver.enqueue_key("other", 1000, weight=2)
    driver.take(1)

    driver.enqueue_key("quiet")

    assert "quiet" in [delivery.key for delivery in driver.take(3 + 2 + 1)]


@given(weights=st.lists(_WEIGHTS, min_size=2, max_size=8), quantum=_QUANTA)
@settings(max_examples=40, deadline=None)
def test_equal_costs_keep_every_stretch_of_a_backlog_within_the_bound(
    weights: list[int], quantum: int
) -> None:
    lanes = Lanes(quantum=quantum)
    by_name = {f"key {index}": weight for index, weight in enumerate(weights)}
    shares = _Shares(by_name, dict.fromkeys(by_name, 1), quantum)
    # Seven steps a lap, so that laps are cut at other points each; few of them where laps are long.
    step = 1 + sum(weights) * quantum // 7
    steps = min(300, 1 + 50_000 // step)
    for name, weight in by_name.items():
        spec = Spec(fairness_key=name, weight=weight)
        lanes.add_backlog(spec, min(120_000, 2 * steps * step))

    for _ in range(steps):
        picked = lanes.queue.pick(min(step, 50_000), now_ns=0, records=[])
        for name, count in Counter(spec.fairness_key for _, spec in picked).items():
            shares.note(name, count)
        shares.check()
    assert all(lanes.key(name).ready for name in by_name)


@given(data=st.data(), quantum=_QUANTA)
@settings(max_examples=50, deadline=None)
def test_mixed_costs_keep_every_stretch_of_a_backlog_within_the_bound(
    data: st.DataObject, quantum: int
) -> None:
    weights = {
        f"key {index}": weight
        for index, weight in enumerate(data.draw(st.lists(_WEIGHTS, min_size=2, max_size=6)))
    }
    patterns = {
        name: data.draw(st.lists(_COSTS, min_size=1, max_size=5), label=name) for name in weights
    }
    lanes = Lanes(quantum=quantum)
    costs = {name: _cycle(pattern) for name, pattern in patterns.items()}
    largest = {name: max(pattern) for name, pattern in patterns.items()}
    shares = _Shares(weights, largest, quantum)

    for _ in range(400):
        for name, weight in weights.items():
            _fill(lanes, name, weight, costs[name], enough=2)
        spec = _deliver(lanes)
        shares.note(spec.fairness_key, spec.cost)
        shares.check()


@given(data=st.data(), quantum=_QUANTA)
@settings(max_examples=50, deadline=None)
def test_keys_that_stay_keep_their_shares_while_others_come_and_go(
    data: st.DataObject, quantum: int
) -> None:
    weights = {"a": data.draw(_WEIGHTS), "b": data.draw(_WEIGHTS), "c": data.draw(_WEIGHTS)}
    largest = {name: data.draw(_COSTS) for name in weights}
    lanes = Lanes(quantum=quantum)
    pairs = _Pairs(weights, largest, quantum)
    visits = data.draw(
        st.lists(st.tuples(st.integers(0, 3), _WEIGHTS, _COSTS, st.integers(1, 3)), min_size=1)
    )
    pause = data.draw(st.integers(1, 5))

    for index in range(400):
        for name, weight in weights.items():
            _fill(lanes, name, weight, _cycle([largest[name], 1]), enough=2)
        if not index % pause:
            number, weight, cost, count = visits[index // pause % len(visits)]
            # Some come again and again, others once.
            name = f"visitor {number or index}"
            lanes.add(Spec(fairness_key=name, weight=weight, cost=cost), count)
        if index % 17 == 16:
            lanes.remove_key("visitor 1")
        spec = _deliver(lanes)
        pairs.note(spec.fairness_key, spec.cost)


@given(data=st.data(), quantum=_QUANTA)
@settings(max_examples=50, deadline=None)
def test_shares_follow_weights_and_costs_that_change(data: st.DataObject, quantum: int) -> None:
    names = ("a", "b", "c")
    lanes = Lanes(quantum=quantum)
    weights: dict[str, int] = {}
    largest = dict.fromkeys(names, 1)

    for _ in range(data.draw(st.integers(1, 4))):
        weights |= data.draw(st.dictionaries(st.sampled_from(names), _WEIGHTS))
        weights = {name: weights.get(name, 1) for name in names}
        costs = {name: data.draw(_COSTS) for name in names}
        largest = {name: max(largest[name], costs[name]) for name in names}
        for name in names:
            # In front, so that the new cost is met at once; behind, so that the weight is new.
            lanes.add(Spec(fairness_key=name, cost=costs[name], priority=9, weight=1), 2)
            lanes.add(Spec(fairness_key=name, cost=costs[name], weight=weights[name]), 300)
        # What a key had in its turn was credited at its old weight.
        settled = lanes.queue.ring.lap + 2
        while lanes.queue.ring.lap < settled and min(map(len, lanes.waiting.values())) > 150:
            _deliver(lanes)
        pairs = _Pairs(weights, largest, quantum)
        while lanes.queue.ring.lap >= settled and min(map(len, lanes.waiting.values())) > 1:
            spec = _deliver(lanes)
            pairs.note(spec.fairness_key, spec.cost)


@given(data=st.data(), quantum=_QUANTA)
@settings(max_examples=50, deadline=None)
def test_a_key_that_arrives_waits_at_most_one_turn_of_each_other_key(
    data: st.DataObject, quantum: int
) -> None:
    lanes = Lanes(quantum=quantum)
    keys = data.draw(st.lists(st.tuples(_WEIGHTS, _COSTS), min_size=1, max_size=6))
    for index, (weight, cost) in enumerate(keys):
        lanes.add(Spec(fairness_key=f"key {index}", weight=weight, cost=cost), 500)
    for _ in range(data.draw(st.integers(0, 300))):
        _deliver(lanes)
    visitor = data.draw(st.integers(1, 10_000))
    others = dict.fromkeys(lanes.waiting, 0)

    lanes.add(Spec(fairness_key="new", weight=visitor))

    for _ in range(500):
        spec = _deliver(lanes)
        if spec.fairness_key == "new":
            break
        # More that come do not make it wait longer.
        lanes.add(Spec(fairness_key=f"later {lanes.next_place}", weight=10_000))
        others[spec.fairness_key] += spec.cost
    turns = {f"key {index}": weight * quantum + cost for index, (weight, cost) in enumerate(keys)}
    assert all(cost <= turns[name] for name, cost in others.items())


def _cycle(values: list[int]) -> Iterator[int]:
    while True:
        yield from values


def _calls_to_deliver(lanes: Lanes, count: int) -> int:
    pick = lanes.queue.pick

    def deliver() -> None:
        for _ in range(count):
            assert len(pick(1, now_ns=0, records=[])) == 1

    return count_calls(deliver)


@pytest.mark.parametrize("costs", [(1,), (10_000,), (1, 10_000), (1, 7, 100, 10_000)])
def test_choosing_a_key_takes_no_more_steps_among_10_000_than_among_10(
    costs: tuple[int, ...],
) -> None:
    calls = {}
    for count in (10, 10_000):
        lanes = Lanes()
        for index in range(count):
            spec = Spec(
                fairness_key=f"key {index}", weight=1 + index % 3, cost=costs[index % len(costs)]
            )
            lanes.add(spec, 20)
        # Not the first lap, in which each key is credited for the first time.
        lanes.queue.pick(count, now_ns=0, records=[])
        calls[count] = _calls_to_deliver(lanes, 3000 if count > 10 else 100) / (
            3000 if count > 10 else 100
        )

    assert calls[10_000] <= 1.5 * calls[10] + 5


def test_one_cheap_key_among_10_000_dear_ones_is_not_slowed_down() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="cheap"), 5000)
    for index in range(10_000):
        lanes.add(Spec(fairness_key=f"dear {index}", cost=10_000))
    # The first lap asks every key once.
    lanes.queue.pick(2, now_ns=0, records=[])

    assert _calls_to_deliver(lanes, 1000) < 1000 * 40


@pytest.mark.parametrize("backlog", [10, 100_000])
def test_choosing_a_key_does_not_depend_on_the_backlog(backlog: int) -> None:
    lanes = Lanes()
    for name in ("a", "b"):
        lanes.add_backlog(Spec(fairness_key=name), backlog)

    assert _calls_to_deliver(lanes, 10) < 10 * 40


def test_within_a_key_the_work_grows_with_the_logarithm_of_its_lanes() -> None:
    def work(lane_count: int) -> float:
        lanes = Lanes()
        for index in range(lane_count):
            lanes.add(Spec(fairness_key="k", throttle_keys=(f"provider {index}",)), 1)
        for index in range(lane_count):
            lanes.add(Spec(fairness_key="k", throttle_keys=(f"provider {index}",)), 1)
        return _calls_to_deliver(lanes, min(lane_count, 1000)) / min(lane_count, 1000)

    assert work(100_000) <= 2 * work(10)
