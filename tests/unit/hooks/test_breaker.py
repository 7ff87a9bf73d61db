"""When a breaker opens and closes: time is a number here."""

from fila.hooks.breaker import Breaker
from fila.hooks.calls import BreakerSettings
from fila.model import NS_PER_MS

COOLDOWN_NS = 10 * NS_PER_MS


def breaker(threshold: int = 3) -> Breaker:
    return Breaker(BreakerSettings(threshold=threshold, cooldown_ms=10))


def test_it_opens_on_the_last_failure_in_a_row() -> None:
    tried = breaker()

    assert [tried.failed(0) for _ in range(3)] == [False, False, True]
    assert tried.is_open(0)


def test_a_success_in_between_starts_the_row_anew() -> None:
    tried = breaker()

    for _ in range(6):
        assert not tried.failed(0)
        assert not tried.failed(0)
        assert not tried.succeeded(3, 0)

    assert not tried.is_open(0)


def test_it_opens_when_half_of_the_last_twenty_failed_and_not_before() -> None:
    tried = breaker()

    opened = [tried.failed(0) or tried.succeeded(1, 0) for _ in range(10)]

    assert opened == [False] * 9 + [True]


def test_calls_longer_ago_do_not_count() -> None:
    tried = breaker(threshold=100)
    for _ in range(9):
        tried.failed(0)
    tried.succeeded(20, 0)

    assert not any(tried.failed(0) for _ in range(9))
    assert tried.failed(0)


def test_after_its_cooldown_it_is_closed_with_a_clean_count() -> None:
    tried = breaker()
    for _ in range(3):
        tried.failed(5)

    assert tried.is_open(5 + COOLDOWN_NS - 1)
    assert not tried.is_open(5 + COOLDOWN_NS)
    assert [tried.failed(5 + COOLDOWN_NS) for _ in range(3)] == [False, False, True]
    assert tried.opened == 2


def test_what_was_on_its_way_does_not_open_it_again() -> None:
    tried = breaker()

    opened = [tried.failed(0) for _ in range(9)]

    assert opened.count(True) == 1
    assert tried.opened == 1
