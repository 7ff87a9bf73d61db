"""The places of one lane, against a sorted list."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.core.fifo import Fifo

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), st.integers(1, 40)),
        st.tuples(st.just("skip"), st.integers(1, 3)),
        st.tuples(st.just("take"), st.integers(1, 30)),
        st.tuples(st.just("give back"), st.integers(0, 1000)),
        st.tuples(st.just("remove"), st.integers(0, 1000)),
        st.tuples(st.just("remove unknown"), st.integers(0, 1000)),
    ),
    max_size=60,
)


class _Model:
    """A sorted list beside the real thing, and what was taken out of both."""

    def __init__(self) -> None:
        self.fifo = Fifo()
        self.places: list[int] = []
        self.out: list[int] = []
        self.next_place = 1

    def step(self, action: str, number: int) -> None:
        if action == "extend":
            added = range(self.next_place, self.next_place + number)
            self.fifo.extend(added)
            self.places.extend(added)
            self.next_place = added.stop
        elif action == "skip":
            self.next_place += number
        elif action == "take" and self.places:
            count = min(number, len(self.places))
            assert self.fifo.take(count) == self.places[:count]
            self.out += self.places[:count]
            del self.places[:count]
        elif action == "give back" and self.out:
            place = self.out.pop(number % len(self.out))
            self.fifo.add(place)
            self.places = sorted([*self.places, place])
        elif action == "remove" and self.places:
            place = self.places.pop(number % len(self.places))
            assert self.fifo.remove(place)
            self.out.append(place)
        elif action == "remove unknown":
            unknown = [*self.out, self.next_place, 0]
            assert not self.fifo.remove(unknown[number % len(unknown)])

    def check(self) -> None:
        assert len(self.fifo) == len(self.places)
        assert list(self.fifo) == self.places
        for index, place in enumerate(self.places):
            assert place in self.fifo
            assert self.fifo.count_before(place) == index
            assert self.fifo.count_before(place, loosely=True) <= index
        assert self.next_place not in self.fifo
        if self.places:
            assert self.fifo.peek() == self.places[0]


@given(_STEPS)
@settings(max_examples=300, deadline=None)
def test_it_agrees_with_a_sorted_list(steps: list[tuple[str, int]]) -> None:
    model = _Model()

    for action, number in steps:
        model.step(action, number)
        model.check()

    count = len(model.places)
    assert model.fifo.take(count) == model.places


def test_what_was_removed_and_added_back_is_there_once() -> None:
    fifo = Fifo()
    fifo.extend(range(1, 4))

    assert fifo.remove(2)
    fifo.add(2)

    assert list(fifo) == [1, 2, 3]
    assert fifo.take(3) == [1, 2, 3]
    assert len(fifo) == 0


def test_what_was_taken_and_given_back_is_in_front_again() -> None:
    fifo = Fifo()
    fifo.extend(range(1, 6))

    assert fifo.take(3) == [1, 2, 3]
    fifo.add(2)
    fifo.add(1)

    assert fifo.take(4) == [1, 2, 4, 5]


def test_a_long_backlog_does_not_keep_what_was_taken() -> None:
    fifo = Fifo()
    fifo.extend(range(100_000))

    for _ in range(99):
        fifo.take(1000)

    kept: Any = fifo._places
    assert len(kept) <= 2000
    assert fifo.take(1000) == list(range(99_000, 100_000))
