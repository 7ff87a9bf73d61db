"""Token buckets: what they hold and when, to the last unit; what a restart may know of it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.bucket import ONE, Bucket
from fila.model import NS_PER_MS, NS_PER_S

MINUTE_NS = 60 * NS_PER_S


def bucket(rate: float = 10, burst: float = 10) -> Bucket:
    return Bucket("p", rate=rate, burst=burst, now_ns=0)


def emptied(rate: float, burst: float) -> Bucket:
    made = bucket(rate, burst)
    take(made, made.tokens(0))
    return made


def take(made: Bucket, count: int, now_ns: int = 0) -> None:
    for _ in range(count):
        made.take(now_ns)


def test_it_is_full_when_it_is_defined() -> None:
    assert bucket(burst=7).tokens(0) == 7


def test_it_fills_by_elapsed_time_and_no_higher_than_its_burst() -> None:
    made = emptied(10, 10)

    assert made.level(250 * NS_PER_MS) == ONE * 5 // 2
    assert made.tokens(MINUTE_NS) == 10


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    made = emptied(10, 10)
    take(made, 10, NS_PER_S)

    assert made.level(NS_PER_S) == 0
    assert made.level(0) <= 0


@pytest.mark.parametrize("rate", [3, 0.3, 7, 1e9, 0.123456789, 49.99])
def test_a_token_is_there_when_it_was_said_to_be_and_not_a_nanosecond_before(rate: float) -> None:
    made = emptied(rate, 1)
    wait_ns = made.ready_in_ns(0)

    assert wait_ns is not None
    assert wait_ns == -(-NS_PER_S // Fraction(str(rate)))
    assert made.level(wait_ns - 1) < ONE <= made.level(wait_ns)


@given(
    rate=st.decimals("0.000000001", "1000", places=9),
    waits=st.lists(st.integers(1, 10 * NS_PER_S), max_size=20),
)
def test_in_no_window_it_gives_more_than_burst_and_rate_allow(
    rate: Fraction, waits: list[int]
) -> None:
    made = bucket(float(rate), 3)
    now_ns = 0
    taken_at: list[int] = []

    for wait_ns in [0, *waits]:
        now_ns += wait_ns
        while made.level(now_ns) >= ONE:
            made.take(now_ns)
            taken_at.append(now_ns)
        assert len(taken_at) < 100_000

    for first, begin_ns in enumerate(taken_at[:200]):
        for last, end_ns in enumerate(taken_at[first : first + 200], 1):
            assert last <= 3 + Fraction(str(float(rate))) * (end_ns - begin_ns) / NS_PER_S


def test_at_rate_0_it_has_nothing_to_give_and_keeps_what_it_holds() -> None:
    made = bucket(10, 10)
    take(made, 4)
    made.configure(rate=0, burst=10, now_ns=0)

    assert made.level(MINUTE_NS) == 0
    assert made.ready_in_ns(MINUTE_NS) is None
    assert made.exact_level(MINUTE_NS) == 6 * 10**9

    made.configure(rate=10, burst=10, now_ns=MINUTE_NS)

    assert made.tokens(MINUTE_NS) == 6


def test_one_that_begins_with_rate_0_gives_nothing() -> None:
    made = bucket(0, 5)

    assert made.tokens(MINUTE_NS) == 0


def test_a_smaller_burst_cuts_off_what_is_held_and_a_greater_one_adds_nothing() -> None:
    made = bucket(10, 10)

    made.configure(rate=10, burst=4, now_ns=0)
    assert made.tokens(0) == 4

    made.configure(rate=10, burst=100, now_ns=0)
    assert made.tokens(0) == 4


def test_a_change_of_rate_counts_from_the_change_on() -> None:
    made = emptied(1, 10)

    made.configure(rate=5, burst=10, now_ns=2 * NS_PER_S)

    assert made.level(3 * NS_PER_S) == 7 * ONE


def test_a_token_that_does_not_fit_into_the_burst_never_comes() -> None:
    assert bucket(10, 2).ready_in_ns(0, tokens=3) is None


def test_a_lifted_one_has_tokens_for_all() -> None:
    made = emptied(1, 1)

    made.lift()

    assert made.tokens(0) > 10**30


def test_what_was_not_used_is_given_back_once() -> None:
    made = bucket(1, 5)
    take(made, 2)

    made.give_back()

    assert made.tokens(0) == 4


@given(
    rate=st.sampled_from([0.3, 1, 7, 50, 1000.5, 100_000]),
    burst=st.sampled_from([1, 2.5, 10, 400]),
    steps=st.lists(
        st.tuples(st.sampled_from([0, 1, 10**6, 10**8, 3 * 10**9]), st.integers(0, 50)),
        max_size=40,
    ),
)
def test_what_a_restart_reads_back_is_never_more_than_was_held(
    rate: float, burst: float, steps: list[tuple[int, int]]
) -> None:
    made = bucket(rate, burst)
    now_ns, written, written_ns = 0, made.note_level(0), 0

    for passed_ns, wanted in steps:
        now_ns += passed_ns
        must_write = False
        for _ in range(min(wanted, made.tokens(now_ns))):
            must_write |= made.take(now_ns)
        if must_write:
            written, written_ns = made.note_level(now_ns), now_ns
        later_ns = now_ns + 12_345_678
        assert made.refilled(written, later_ns - written_ns) <= made.exact_level(later_ns)


def test_a_busy_bucket_is_written_down_once_for_many_tokens() -> None:
    made = bucket(1000, 1000)
    made.note_level(0)
    writes = 0

    for _ in range(900):
        if made.take(0):
            made.note_level(0)
            writes += 1

    assert writes == 1
