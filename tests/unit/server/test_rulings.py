"""What a message asks for and what its queue's script decides: the script comes first."""

import pytest

from fila.model import EnqueueDecision, Spec, Timing
from fila.server.rulings import Rulings
from fila.wire.intake import Columns

OWN = Spec(fairness_key="own", weight=7, throttle_keys=("t",), priority=9, cost=3)


def decided(
    decision: EnqueueDecision | None, *, own: Spec = OWN, timing: Timing | None = None
) -> tuple[Spec, Timing | None]:
    columns = Columns(specs=[own], timings={0: timing} if timing else {})
    Rulings().apply(columns, [decision])
    return columns.specs[0], columns.timings.get(0)


def test_what_the_script_says_nothing_of_stays_as_the_message_asked() -> None:
    timing = Timing(deliver_at_ns=5, ttl_ms=8)

    assert decided(EnqueueDecision(), timing=timing) == (OWN, timing)


@pytest.mark.parametrize(
    ("decision", "spec"),
    [
        (EnqueueDecision(fairness_key="k"), Spec("k", 7, ("t",), 9, 3)),
        (EnqueueDecision(weight=1), Spec("own", 1, ("t",), 9, 3)),
        (EnqueueDecision(throttle_keys=()), Spec("own", 7, (), 9, 3)),
        (EnqueueDecision(throttle_keys=("a", "b")), Spec("own", 7, ("a", "b"), 9, 3)),
        (EnqueueDecision(priority=0), Spec("own", 7, ("t",), 0, 3)),
        (EnqueueDecision(cost=1), Spec("own", 7, ("t",), 9, 1)),
    ],
)
def test_each_field_that_the_script_sets_replaces_the_messages_own(
    decision: EnqueueDecision, spec: Spec
) -> None:
    assert decided(decision) == (spec, None)


def test_a_failed_call_leaves_the_messages_options_in_force() -> None:
    timing = Timing(delay_ms=4)

    assert decided(None, timing=timing) == (OWN, timing)


def test_a_delay_of_the_script_replaces_a_moment_and_keeps_the_time_to_live() -> None:
    timing = Timing(deliver_at_ns=5, ttl_ms=8)

    assert decided(EnqueueDecision(delay_ms=20), timing=timing)[1] == Timing(delay_ms=20, ttl_ms=8)
    assert decided(EnqueueDecision(delay_ms=0), timing=timing)[1] == Timing(ttl_ms=8)
    assert decided(EnqueueDecision(delay_ms=0), timing=Timing(delay_ms=9))[1] is None


def test_equal_wishes_become_one_object_however_they_came_about() -> None:
    rulings = Rulings()
    columns = Columns(specs=[OWN, Spec("own", 7, ("t",), 9), Spec("k")])

    rulings.apply(
        columns,
        [
            EnqueueDecision(fairness_key="k"),
            EnqueueDecision(fairness_key="k", cost=3),
            EnqueueDecision(weight=7, throttle_keys=("t",), priority=9, cost=3),
        ],
    )

    assert columns.specs[0] is columns.specs[1] is columns.specs[2]


def test_a_decision_is_not_taken_for_another_that_has_its_place_in_memory() -> None:
    rulings = Rulings()
    columns = Columns(specs=[OWN] * 1000)

    rulings.apply(columns, [EnqueueDecision(fairness_key=f"k{index}") for index in range(1000)])

    assert [spec.fairness_key for spec in columns.specs] == [f"k{i}" for i in range(1000)]
