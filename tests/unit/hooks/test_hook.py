"""A hook as the broker uses it: what scripts see, what becomes of their answers, what counts."""

import pytest

from fila.errors import ScriptError
from fila.hooks.calls import BreakerSettings, HookKind
from fila.hooks.decisions import Decision
from fila.model import NS_PER_MS, EnqueueDecision, FailureAction, FailureDecision, Limits
from fila.wire.outline import outline_of
from tests.unit.hooks.asking import PATIENT, ask, ask_one, decide, fail_once, make
from tests.unit.hooks.asking import on_enqueue as enqueue_script
from tests.unit.hooks.asking import on_failure as failure_script


def test_a_script_decides_about_a_message() -> None:
    decision = decide(
        """return {
            fairness_key = msg.headers.tenant, weight = 3, cost = 2, priority = 9, delay_ms = 50,
            throttle_keys = { "provider:" .. msg.headers.provider, msg.queue, msg.payload_size },
        }""",
        tenant="acme",
        provider="mail",
    )

    assert decision == EnqueueDecision(
        fairness_key="acme",
        weight=3,
        throttle_keys=("provider:mail", "orders", "10"),
        cost=2,
        priority=9,
        delay_ms=50,
    )


def test_a_script_decides_about_a_failure() -> None:
    hook = make(
        failure_script(
            """assert(error == msg.error and attempts == msg.attempts and msg.queue == "orders")
            if msg.attempts >= 3 then return { action = "dlq" } end
            return {
                action = "retry", delay_ms = 1000 * attempts, priority = 1, weight = 2,
                fairness_key = msg.headers.tenant .. ":" .. msg.error, throttle_keys = { msg.id },
            }"""
        ),
        HookKind.ON_FAILURE,
    )

    assert fail_once(hook, "slow", attempts=2) == FailureDecision(
        action=FailureAction.RETRY,
        delay_ms=2000,
        fairness_key="acme:slow",
        weight=2,
        throttle_keys=("id-1",),
        priority=1,
    )
    assert fail_once(hook, attempts=3) == FailureDecision(action=FailureAction.DEAD_LETTER)


def test_every_message_of_a_batch_is_asked_about_in_order() -> None:
    hook = make(
        enqueue_script("return { fairness_key = msg.headers.n, weight = msg.payload_size }")
    )

    decisions = ask(hook, [outline_of({"n": f"n{n}"}, n) for n in range(1, 1001)])

    assert decisions == [EnqueueDecision(fairness_key=f"n{n}", weight=n) for n in range(1, 1001)]
    assert hook.stats(0).calls == 1000


def test_a_run_that_is_out_of_time_goes_on_where_it_stopped() -> None:
    hook = make(enqueue_script("return { fairness_key = msg.headers.n }"))
    packed = hook.pack([outline_of({"n": str(n)}, 1) for n in range(200)])

    found: list[Decision | None] = []
    while len(found) < 200:
        run = hook.run(packed, start=len(found), budget_ns=0)
        decisions = hook.take(run, now_ns=0)
        # Small calls are timed a few together.
        assert 1 <= len(decisions) <= 8
        found += decisions

    assert found == [EnqueueDecision(fairness_key=str(n)) for n in range(200)]


def test_a_failed_call_ends_the_run_and_the_next_run_goes_on() -> None:
    hook = make(
        enqueue_script("assert(msg.headers.n ~= '2') return { weight = 5 }"), breaker=PATIENT
    )
    packed = hook.pack([outline_of({"n": str(n)}, 1) for n in range(5)])

    first = hook.take(hook.run(packed, start=0, budget_ns=10**9), now_ns=0)
    second = hook.take(hook.run(packed, start=3, budget_ns=10**9), now_ns=0)

    assert first == [EnqueueDecision(weight=5), EnqueueDecision(weight=5), None]
    assert second == [EnqueueDecision(weight=5), EnqueueDecision(weight=5)]
    assert hook.stats(0).errors == 1
    assert hook.stats(0).last_error == "on_enqueue:2: assertion failed!"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("function on_enqueue(", "on_enqueue:1: <name> or '...' expected near <eof>"),
        ("\n\nx = = 1", "on_enqueue:3: unexpected symbol near '='"),
        ("x = 1", "it defines no function on_enqueue"),
        ("error('no')", "on_enqueue:1: no"),
        ("while true do end", "time limit"),
        ("x = {} for i = 1, 1e9 do x[i] = {} end", "not enough memory"),
        ("\x1bLua", "attempt to load a binary chunk"),
        ("-- " + "x" * 70_000, "the limit is 65536 (limits.script_bytes_max)"),
    ],
)
def test_a_script_that_is_no_use_is_refused_with_the_reason(source: str, text: str) -> None:
    with pytest.raises(ScriptError) as caught:
        make(source)

    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_breaker_opens_on_the_third_failure_and_closes_after_its_cooldown() -> None:
    hook = make(enqueue_script("error('no')"), breaker=BreakerSettings(cooldown_ms=10))

    for _ in range(3):
        assert not hook.bypasses(0, 1)
        assert ask_one(hook) is None

    assert hook.bypasses(0, 7)
    assert hook.bypasses(10 * NS_PER_MS - 1, 1)
    assert not hook.bypasses(10 * NS_PER_MS, 1)
    assert len(hook.trips) == 1
    assert (hook.stats(0).bypassed, hook.stats(0).breaker_opened) == (8, 1)
    assert hook.stats(0).breaker_open
    assert not hook.stats(10 * NS_PER_MS).breaker_open


def test_a_change_of_the_config_is_seen_by_the_next_run() -> None:
    config = {"tier:acme": "gold"}
    hook = make(enqueue_script("return { fairness_key = fila.get('tier:acme') }"), config=config)

    assert ask_one(hook) == EnqueueDecision(fairness_key="gold")
    config["tier:acme"] = "silver"
    hook.config_changed("tier:other")
    assert ask_one(hook) == EnqueueDecision(fairness_key="gold")
    hook.config_changed("tier:acme")
    assert ask_one(hook) == EnqueueDecision(fairness_key="silver")


def test_a_key_has_the_limits_of_the_wire() -> None:
    hook = make(
        enqueue_script("return { fairness_key = 'abcdef', throttle_keys = { 'a', 'b', 'c' } }"),
        wire_limits=Limits(key_bytes_max=5, throttle_keys_max=2),
    )

    assert ask_one(hook) == EnqueueDecision(throttle_keys=("a", "b"))
    assert hook.stats(0).clamped == 2
