"""How much went by lately."""

import pytest

from fila.core.rate import WINDOW_NS, Rate, window_at
from fila.model import NS_PER_S


def _add(rate: Rate, amount: int, now_ns: int) -> None:
    rate.add(amount, window_at(now_ns))


def test_a_steady_flow_is_measured_as_it_is() -> None:
    rate = Rate()
    for second in range(60):
        _add(rate, 10, second * NS_PER_S)

    assert rate.total == 600
    assert rate.per_second(60 * NS_PER_S) == pytest.approx(10, rel=0.25)


def test_what_is_long_ago_does_not_count() -> None:
    rate = Rate()
    _add(rate, 1000, 0)

    assert rate.per_second(WINDOW_NS - 1) > 0
    assert rate.per_second(2 * WINDOW_NS) == 0
    assert rate.total == 1000


def test_a_pause_between_two_bursts_is_not_bridged() -> None:
    rate = Rate()
    _add(rate, 1000, 0)
    _add(rate, 1, 10 * WINDOW_NS)

    assert rate.per_second(10 * WINDOW_NS) <= 1


def test_a_single_delivery_is_no_great_rate() -> None:
    rate = Rate()
    _add(rate, 1, 7 * WINDOW_NS)

    assert rate.per_second(7 * WINDOW_NS) == 1
