"""How the credit of a consumer follows the pace of its handler."""

import pytest

from fila.client.credit import CREDIT_MAX, CreditPolicy


def work(policy: CreditPolicy, seconds: float, times: int, *, now: float = 0.0) -> float:
    """A loop that handles one message after another and settles each before it asks again."""
    for _ in range(times):
        policy.asked(now, 0)
        policy.handed(now)
        now += seconds
    policy.asked(now, 0)
    return now


def test_it_starts_with_one_message() -> None:
    assert CreditPolicy().credit == 1


@pytest.mark.parametrize("handler_seconds", [0.005, 0.010, 0.1, 10.0])
def test_a_slow_handler_never_has_a_second_message_waiting(handler_seconds: float) -> None:
    policy = CreditPolicy()
    work(policy, handler_seconds, 50)

    assert policy.credit == 1


@pytest.mark.parametrize(
    ("handler_seconds", "credit"), [(0.001, 4), (0.0001, 32), (0.00001, 256), (1e-9, CREDIT_MAX)]
)
def test_a_fast_handler_gets_five_milliseconds_of_work(handler_seconds: float, credit: int) -> None:
    policy = CreditPolicy()
    work(policy, handler_seconds, 50_000)

    assert policy.credit == credit


def test_it_grows_step_by_step_and_not_on_one_lucky_message() -> None:
    policy = CreditPolicy()
    work(policy, 0.00001, 1)

    assert policy.credit == 2


def test_it_falls_to_one_as_soon_as_the_handler_turns_slow() -> None:
    policy = CreditPolicy()
    now = work(policy, 0.00001, 10_000)
    work(policy, 0.020, 1, now=now)

    assert policy.credit == 1


def test_nothing_waits_behind_a_handler_that_is_stuck_until_it_asks_again() -> None:
    policy = CreditPolicy()
    now = work(policy, 0.00001, 10_000)
    policy.handed(now)

    assert not policy.stalled(now + 0.010)
    assert policy.stalled(now + 0.020)
    assert policy.credit == 0

    policy.asked(now + 5, 0)

    assert policy.credit == 1


def test_waiting_for_a_message_is_not_handling() -> None:
    policy = CreditPolicy()
    now = work(policy, 0.00001, 10_000)
    credit = policy.credit
    policy.handed(now + 3600)
    policy.asked(now + 3600.00001, 0)

    assert policy.credit == credit


def test_a_program_that_handles_many_at_once_gets_another_while_it_holds_some() -> None:
    policy = CreditPolicy()
    for in_hand in range(20):
        policy.asked(0.0, in_hand)
        policy.handed(0.0)

    assert policy.credit >= 20


def test_a_fixed_credit_stays() -> None:
    policy = CreditPolicy(7)
    work(policy, 0.00001, 1000)
    work(policy, 1.0, 3)
    policy.handed(0.0)

    assert not policy.stalled(100.0)
    assert policy.credit == 7
