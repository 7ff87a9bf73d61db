"""How long is waited before another try."""

from hypothesis import given
from hypothesis import strategies as st

from fila.client.backoff import Backoff, wait_before


def test_waits_double_up_to_the_most() -> None:
    backoff = Backoff(lambda: 0.0, first=0.1, most=1.0)

    assert [backoff.next() for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_success_starts_it_anew() -> None:
    backoff = Backoff(lambda: 0.0, first=0.1)
    backoff.next()
    backoff.next()
    backoff.reset()

    assert backoff.next() == 0.1


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_chance_shortens_a_wait_by_half_at_most(tries: int, chance: float) -> None:
    full = wait_before(tries, 0.0)

    assert full / 2 <= wait_before(tries, chance) <= full <= 1.0
