"""What falls due when, against a sorted list."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.core.timers import Timers
from tests.unit.core.lanes import count_calls

_MS = 1_000_000
# Far apart, close together, and in one bucket with each other.
_TIMES = st.one_of(
    st.integers(0, 60_000).map(lambda ms: ms * _MS),
    st.integers(0, 40 * _MS),
    st.integers(0, 100),
)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), _TIMES, st.just(0)),
        st.tuples(st.just("cancel"), st.integers(0, 100), st.just(0)),
        st.tuples(st.just("take"), _TIMES, st.integers(1, 10)),
        st.tuples(st.just("wait"), _TIMES, st.just(0)),
    ),
    max_size=80,
)


@given(_STEPS)
@settings(max_examples=300, deadline=None)
def test_they_agree_with_a_sorted_list(steps: list[tuple[str, int, int]]) -> None:
    timers: Timers[int] = Timers()
    model: dict[int, int] = {}
    now = 0

    for number, (action, value, limit) in enumerate(steps):
        if action == "set":
            timers.set(number, now + value)
            model[number] = now + value
        elif action == "cancel" and model:
            item = sorted(model)[value % len(model)]
            timers.cancel(item, model.pop(item))
        elif action == "wait":
            now += value
        elif action == "take":
            due = sorted((at, item) for item, at in model.items() if at <= now)[:limit]
            taken = timers.take_due(now, limit)
            assert [(model[item], item) for item in taken] == due
            for _, item in due:
                del model[item]
        assert len(timers) == len(model)
        assert timers.next_due_ns() == min(model.values(), default=None)


def test_nothing_is_handed_out_before_its_time() -> None:
    timers: Timers[str] = Timers()
    timers.set("soon", 1001)

    assert timers.take_due(1000, 10) == []
    assert timers.next_due_ns() == 1001
    assert timers.take_due(1001, 10) == ["soon"]
    assert timers.next_due_ns() is None


def test_what_is_cancelled_twice_or_after_its_time_is_no_error() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 5)
    timers.cancel("a", 5)
    timers.cancel("a", 5)
    timers.set("b", 5)
    timers.take_due(5, 10)
    timers.cancel("b", 5)

    assert len(timers) == 0


def test_at_the_same_time_the_first_that_was_set_comes_first() -> None:
    timers: Timers[str] = Timers()
    timers.set_all("abcdef", 7)

    assert timers.take_due(7, 4) == list("abcd")
    assert timers.take_due(7, 4) == list("ef")


def test_setting_and_cancelling_leaves_nothing_behind() -> None:
    timers: Timers[int] = Timers()

    for item in range(10_000):
        timers.set(item, item * 100)
        timers.cancel(item, item * 100)

    assert not timers._buckets
    assert len(timers._numbers) == len(timers._known) <= 1 + (10_000 * 100 >> 23)


def test_a_hundred_thousand_items_due_at_one_moment_are_handed_out_in_small_steps() -> None:
    timers: Timers[int] = Timers()
    timers.set_all(range(100_000), 7)
    timers.next_due_ns()

    calls = count_calls(lambda: timers.take_due(7, 100))

    assert calls < 100 * 30
    assert timers.take_due(7, 3) == [100, 101, 102]


def test_asking_when_the_next_is_due_does_not_look_through_all_of_them() -> None:
    timers: Timers[int] = Timers()
    timers.set_all(range(100_000), 7)
    timers.next_due_ns()
    before = timers._heaps[0]

    for item in range(100_000, 101_000):
        timers.set(item, 6)
        assert timers.next_due_ns() == 6
        timers.cancel(item, 6)
        assert timers.next_due_ns() == 7

    assert timers._heaps[0] is before


def test_what_was_cancelled_does_not_pile_up_in_a_bucket_that_was_looked_into() -> None:
    timers: Timers[int] = Timers()
    timers.set(-1, 7)

    for item in range(10_000):
        timers.set(item, 8)
        timers.next_due_ns()
        timers.cancel(item, 8)

    assert len(timers._heaps[0]) < 200
