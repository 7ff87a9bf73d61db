"""Which message of a key is next, and the weight that a key has."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.model import Spec, Timing
from tests.unit.core.driver import Driver
from tests.unit.core.lanes import Lanes

_SPECS = st.builds(
    Spec,
    fairness_key=st.just("k"),
    priority=st.integers(0, 3),
    throttle_keys=st.sampled_from([(), ("x",), ("y",), ("x", "y")]),
)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(_SPECS, st.integers(1, 5)),
            st.tuples(st.just("deliver"), st.integers(1, 5)),
            st.tuples(st.just("remove"), st.integers(0, 100)),
        ),
        max_size=60,
    )
)
@settings(max_examples=200, deadline=None)
def test_the_highest_priority_comes_first_and_then_the_lowest_place(
    steps: list[tuple[Spec | str, int]],
) -> None:
    lanes = Lanes()

    for what, number in steps:
        waiting = lanes.waiting.get("k", [])
        if isinstance(what, Spec):
            lanes.add(what, number)
        elif what == "remove" and waiting:
            lanes.remove(*waiting[number % len(waiting)])
        elif what == "deliver":
            for _ in range(min(number, len(waiting))):
                expected = min(waiting, key=lambda pair: (-pair[1].priority, pair[0]))
                assert lanes.deliver() == expected


def test_priority_never_lets_one_key_overtake_another() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="calm"), 10)
    lanes.add(Spec(fairness_key="loud", priority=255), 10)

    served = [lanes.deliver()[1].fairness_key for _ in range(6)]

    assert served == ["calm", "loud"] * 3


def test_a_key_has_the_weight_of_its_newest_message() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="k", weight=7))
    lanes.add(Spec(fairness_key="k", weight=3))

    assert lanes.key("k").weight == 3


def test_a_key_keeps_its_weight_while_older_messages_wait() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="k", weight=7), 2)
    lanes.add(Spec(fairness_key="k", weight=3, priority=1))

    assert lanes.deliver()[1].weight == 3
    assert lanes.key("k").weight == 3


def test_a_key_that_has_nothing_any_more_is_forgotten() -> None:
    lanes = Lanes()
    place = lanes.add(Spec(fairness_key="k", weight=7))[0]

    lanes.remove(place, Spec(fairness_key="k", weight=7))

    assert not lanes.queue.keys


def test_a_key_with_nothing_but_delayed_messages_keeps_its_weight_and_saves_nothing_up() -> None:
    driver = Driver()
    driver.create()
    spec = Spec(fairness_key="k", weight=50)
    driver.enqueue(spec=spec)
    driver.enqueue(spec=spec, timing=Timing(delay_ms=1000))

    driver.take_one()

    assert (driver.key("k").pending, driver.key("k").weight) == (1, 50)
    assert driver.key("k").deficit == 0
