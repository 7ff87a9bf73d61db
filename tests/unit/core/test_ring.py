"""The ring, against deficit round robin as one would write it down first."""

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.model import Spec
from tests.unit.core.lanes import Lanes, count_calls


class _Naive:
    """Walks every lap and every key, one after another."""

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum
        self.weights: dict[str, int] = {}
        self.costs: dict[str, deque[int]] = {}
        self.deficits: dict[str, int] = {}
        # The line: who has no turn yet in this lap, who had one or is new, who can't afford one.
        self.now: list[str] = []
        self.next: list[str] = []
        self.asleep: list[str] = []
        self.credited = False

    def add(self, name: str, weight: int, costs: list[int]) -> None:
        if name not in self.costs:
            self.costs[name] = deque()
            self.deficits[name] = 0
            self.next.append(name)
        self.weights[name] = weight
        self.costs[name].extend(costs)

    def leave(self, name: str) -> None:
        if self.now and self.now[0] == name:
            self.credited = False
        for line in (self.now, self.next, self.asleep):
            if name in line:
                line.remove(name)
        del self.costs[name], self.deficits[name]

    def deliver(self) -> tuple[str, int]:
        while True:
            if not self.now:
                self._start_lap()
                continue
            name = self.now[0]
            if not self.credited:
                self._credit(name)
                self.credited = True
            if self._can_afford(name):
                return self._take(name)
            self.now.pop(0)
            self.credited = False
            # Whoever could not afford it with one credit more need not stand in line.
            self.deficits[name] += self.weights[name] * self.quantum
            line = self.next if self._can_afford(name) else self.asleep
            self.deficits[name] -= self.weights[name] * self.quantum
            line.append(name)

    def _start_lap(self) -> None:
        awake = []
        for name in self.asleep:
            self._credit(name)
            if self._can_afford(name):
                awake.append(name)
                # It is credited again when its turn comes.
                self.deficits[name] -= self.weights[name] * self.quantum
        self.asleep = [name for name in self.asleep if name not in awake]
        self.now, self.next = awake + self.next, []

    def _credit(self, name: str) -> None:
        self.deficits[name] += self.weights[name] * self.quantum

    def _can_afford(self, name: str) -> bool:
        return self.deficits[name] >= self.costs[name][0]

    def _take(self, name: str) -> tuple[str, int]:
        cost = self.costs[name].popleft()
        self.deficits[name] -= cost
        if not self.costs[name]:
            self.leave(name)
        return name, cost


_WEIGHTS = {"a": 1, "b": 2, "c": 3, "d": 7, "e": 20, "f": 100}
_NAMES = st.sampled_from(sorted(_WEIGHTS))
_COSTS = st.one_of(st.just(1), st.integers(1, 10), st.integers(1, 300))
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), _NAMES, st.lists(_COSTS, min_size=1, max_size=30)),
        st.tuples(st.just("leave"), _NAMES, st.just([0])),
        st.tuples(st.just("deliver"), st.just(""), st.lists(st.just(0), min_size=1, max_size=30)),
    ),
    max_size=50,
)


@given(steps=_STEPS, quantum=st.sampled_from([1, 5, 1000]))
@settings(max_examples=300, deadline=None)
def test_it_serves_in_the_order_of_the_textbook(
    steps: list[tuple[str, str, list[int]]], quantum: int
) -> None:
    lanes, naive = Lanes(quantum=quantum), _Naive(quantum)

    for action, name, numbers in steps:
        if action == "add":
            for cost in numbers:
                lanes.add(Spec(fairness_key=name, weight=_WEIGHTS[name], cost=cost))
            naive.add(name, _WEIGHTS[name], numbers)
        elif action == "leave" and name in naive.costs:
            lanes.remove_key(name)
            naive.leave(name)
        elif action == "deliver":
            for _ in numbers[: sum(map(len, naive.costs.values()))]:
                _, spec = lanes.deliver()
                assert (spec.fairness_key, spec.cost) == naive.deliver()
        assert len(lanes.queue.ring) == len(naive.costs)

    while naive.costs:
        _, spec = lanes.deliver()
        assert (spec.fairness_key, spec.cost) == naive.deliver()


def _served(lanes: Lanes, count: int) -> str:
    return "".join(lanes.deliver()[1].fairness_key for _ in range(count))


def test_a_turn_is_as_long_as_the_weight() -> None:
    lanes = Lanes()
    for name, weight in (("a", 1), ("b", 2), ("c", 3)):
        lanes.add(Spec(fairness_key=name, weight=weight), 100)

    assert _served(lanes, 12) == "abbccc" * 2


def test_a_new_key_waits_for_one_turn_of_each_other_key() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="a", weight=3), 100)
    lanes.add(Spec(fairness_key="b", weight=2), 100)
    assert _served(lanes, 2) == "aa"

    lanes.add(Spec(fairness_key="n"), 100)

    assert _served(lanes, 4) == "abbn"


def test_a_key_that_comes_and_goes_all_the_time_starves_nobody() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="a"), 100)
    served = ""

    for _ in range(20):
        if "b" not in lanes.waiting:
            lanes.add(Spec(fairness_key="b"))
        served += _served(lanes, 1)

    assert served == "ab" * 10


def test_ever_new_keys_starve_nobody() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="old"), 100)
    for number in range(5):
        lanes.add(Spec(fairness_key=f"new {number}"))
    served = []

    for number in range(5, 65):
        served.append(lanes.deliver()[1].fairness_key)
        lanes.add(Spec(fairness_key=f"new {number}"))

    # Only those that were in line before it come between two of its turns; while its turn lasts,
    # one more joins.
    assert [index for index, name in enumerate(served) if name == "old"] == [
        0,
        7,
        15,
        24,
        34,
        45,
        57,
    ]


def test_a_message_needs_as_many_turns_as_its_cost_fits_in() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="d", weight=2, cost=7), 10)
    lanes.add(Spec(fairness_key="c"), 100)

    served = _served(lanes, 40)
    # `c` has one turn in each lap, and the lap in which a sleeper wakes begins with it.
    laps = [served[:index].count("c") + 1 for index in range(40) if served[index] == "d"]

    assert laps == [-(-7 * number // 2) for number in range(1, len(laps) + 1)]
    assert laps[:4] == [4, 7, 11, 14]


def test_laps_that_nobody_can_afford_are_not_walked() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="a", cost=10_000), 5)
    lanes.add(Spec(fairness_key="b", weight=2, cost=10_000), 5)

    calls = count_calls(lambda: _served(lanes, 6))

    assert calls < 1000
    assert lanes.queue.ring.lap >= 20_000


def test_a_key_without_messages_forgets_what_it_saved() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="a", weight=100), 1)
    lanes.deliver()

    lanes.add(Spec(fairness_key="a", weight=1), 10)
    lanes.add(Spec(fairness_key="b", weight=1), 10)

    assert _served(lanes, 6) == "ababab"


def test_a_new_weight_counts_from_the_next_turn_on() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="a", weight=3), 20)
    lanes.add(Spec(fairness_key="b", weight=1), 20)
    assert _served(lanes, 1) == "a"

    lanes.add(Spec(fairness_key="a", weight=1))

    assert _served(lanes, 7) == "aabab" + "ab"


def test_a_heavier_weight_shortens_a_sleep() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="dear", weight=1, cost=100), 3)
    lanes.add(Spec(fairness_key="c"), 1000)
    for _ in range(10):
        assert lanes.deliver()[1].fairness_key == "c"

    # Ten laps at 1 leave 90, which 9 laps at 10 cover.
    lanes.add(Spec(fairness_key="dear", weight=10, cost=100))
    served = [lanes.deliver()[1].fairness_key for _ in range(12)]

    assert 8 <= served.index("dear") <= 9


def test_a_quantum_of_a_thousand_makes_turns_of_about_a_thousand() -> None:
    lanes = Lanes(quantum=1000)
    lanes.add(Spec(fairness_key="a"), 3000)
    lanes.add(Spec(fairness_key="b"), 3000)

    assert _served(lanes, 4000) == ("a" * 1000 + "b" * 1000) * 2


def test_seats_of_keys_that_left_do_not_pile_up() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="stays"), 10)

    for _ in range(10_000):
        lanes.add(Spec(fairness_key="goes"))
        lanes.remove_key("goes")

    assert len(lanes.queue.ring._next) < 200


def test_seats_of_a_sleep_that_changes_all_the_time_do_not_pile_up() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="dear", cost=10_000), 1)
    lanes.add(Spec(fairness_key="cheap"), 10)
    lanes.deliver()

    for number in range(10_000):
        lanes.add(Spec(fairness_key="dear", cost=10_000, weight=1 + number % 2))

    ring = lanes.queue.ring
    assert sum(map(len, ring._later.values())) == ring._asleep < 200


@given(
    quantum=st.sampled_from([1, 3]),
    backlogs=st.dictionaries(
        st.sampled_from("abcd"),
        st.tuples(st.integers(1, 5), st.lists(st.integers(1, 12), min_size=1, max_size=12)),
        min_size=1,
    ),
    before=st.integers(0, 12),
    chosen=st.integers(0, 100),
)
@settings(max_examples=300, deadline=None)
def test_it_can_be_told_in_which_turn_of_its_key_a_message_goes(
    quantum: int, backlogs: dict[str, tuple[int, list[int]]], before: int, chosen: int
) -> None:
    lanes = Lanes(quantum=quantum)
    for name, (weight, costs) in backlogs.items():
        for cost in costs:
            # One lane, so that costs come in the order of places.
            lanes.add(Spec(name, weight, (), 0, cost))
    for _ in range(min(before, sum(len(costs) for _, costs in backlogs.values()) - 1)):
        lanes.deliver()
    waiting = [(name, index) for name in lanes.waiting for index in range(len(lanes.waiting[name]))]
    name, index = waiting[chosen % len(waiting)]
    ring, key = lanes.queue.ring, lanes.key(name)
    place, spec = lanes.waiting[name][index]
    cost = sum(each.cost for _, each in lanes.waiting[name][:index])
    is_over = key.in_turn and key.deficit < key.head().spec.cost
    is_still_to_come = key.due_lap <= ring.lap and not is_over
    first_lap = ring.lap

    turns = ring.turns_needed(key, cost + spec.cost)

    while lanes.deliver()[0] != place:
        pass
    assert turns == ring.lap - first_lap + is_still_to_come


def test_the_line_is_the_order_of_the_turns_to_come() -> None:
    lanes = Lanes()
    for name in "abcde":
        lanes.add(Spec(name), 5)
    for _ in range(7):
        lanes.deliver()
    lanes.remove_key("d")

    line = [key.name for key in lanes.queue.ring.line()]

    assert line == ["c", "e", "a", "b"]
    assert line == [lanes.deliver()[1].fairness_key for _ in range(4)]


def test_who_wakes_in_the_next_lap_is_first_in_it() -> None:
    lanes = Lanes()
    lanes.add(Spec("dear", cost=3))
    for name in "ab":
        lanes.add(Spec(name), 5)
    for _ in range(3):
        lanes.deliver()

    line = [key.name for key in lanes.queue.ring.line()]

    assert line == ["b", "dear", "a"]
    assert line == [lanes.deliver()[1].fairness_key for _ in range(3)]
