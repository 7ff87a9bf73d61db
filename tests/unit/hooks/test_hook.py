"""A hook as the broker uses it: what scripts see, what becomes of their answers, what counts."""

import threading
import time

import pytest

from fila.errors import ScriptError
from fila.hooks.calls import BreakerSettings, HookKind, HookLimits
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
        assert 1 <= len(decisions) <= 16
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
    assert ask_one(hook) == EnqueueDecision(fairness_key="gold")
    hook.config_changed()
    assert ask_one(hook) == EnqueueDecision(fairness_key="silver")


def test_a_key_has_the_limits_of_the_wire() -> None:
    hook = make(
        enqueue_script("return { fairness_key = 'abcdef', throttle_keys = { 'a', 'b', 'c' } }"),
        wire_limits=Limits(key_bytes_max=5, throttle_keys_max=2),
    )

    assert ask_one(hook) == EnqueueDecision(throttle_keys=("a", "b"))
    assert hook.stats(0).clamped == 2


def test_an_error_text_cannot_pass_for_other_calls_answers() -> None:
    hook = make(
        enqueue_script("if msg.headers.n == '1' then error('a\\nb\\4errors\\1c', 0) end return {}"),
        breaker=PATIENT,
    )

    decisions = ask(hook, [outline_of({"n": str(n)}, 1) for n in range(3)])

    assert decisions == [EnqueueDecision(), None, EnqueueDecision()]
    assert hook.stats(0).last_error == "on_enqueue:2: a b errors c"


def test_a_call_that_needs_more_than_the_first_allowance_gets_it() -> None:
    hook = make(
        enqueue_script("local t = {} for i = 1, 10000 do t[i] = {} end return { weight = 2 }")
    )

    assert ask_one(hook) == EnqueueDecision(weight=2)
    assert hook.stats(0).out_of_memory == 0


def test_what_a_script_holds_on_to_goes_when_its_memory_is_used_up() -> None:
    hook = make(
        "kept = {}\n"
        + enqueue_script("kept[#kept + 1] = ('x'):rep(100000) return {weight = #kept}"),
        breaker=PATIENT,
    )

    decisions = [ask_one(hook) for _ in range(40)]

    assert decisions.count(None) >= 2
    assert decisions.count(EnqueueDecision(weight=1)) == decisions.count(None) + 1
    assert hook.stats(0).out_of_memory == decisions.count(None)


def test_scripts_of_two_queues_see_nothing_of_each_other() -> None:
    first = make("string.upper = nil shared = 1\n" + enqueue_script("shared = 2 return {}"))
    second = make(enqueue_script("return { fairness_key = ('a'):upper() .. tostring(shared) }"))

    ask_one(first)

    assert ask_one(second) == EnqueueDecision(fairness_key="Anil")


def test_each_call_of_a_batch_has_the_whole_time() -> None:
    script = enqueue_script("for i = 1, 100000 do end return { weight = 2 }")
    hook = make(script, limits=HookLimits(timeout_ms=15), breaker=PATIENT)

    decisions = ask(hook, [outline_of({}, 1)] * 100)

    # A hundred of them take several times as long as one may.
    assert decisions == [EnqueueDecision(weight=2)] * 100


def test_a_call_is_not_charged_for_what_other_threads_do() -> None:
    script = enqueue_script("for i = 1, 3000000 do end return { weight = 2 }")
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            sum(range(1000))

    other = threading.Thread(target=work)
    other.start()
    try:
        began = time.thread_time()
        ask_one(make(script, limits=HookLimits(timeout_ms=10_000)))
        alone_ms = (time.thread_time() - began) * 1000
        # Enough for the call, and not for the call and the other thread.
        limits = HookLimits(timeout_ms=int(1.5 * alone_ms))
        hook = make(script, limits=limits, breaker=PATIENT)
        decisions = [ask_one(hook) for _ in range(8)]
    finally:
        stop.set()
        other.join()

    assert EnqueueDecision(weight=2) in decisions


def test_a_look_at_the_config_does_not_lift_the_limit_on_memory() -> None:
    hook = make(
        enqueue_script("fila.get('x') return { weight = #('x'):rep(1 << 26) }"), config={"x": "y"}
    )

    assert ask_one(hook) is None
    assert hook.stats(0).out_of_memory == 1


def test_no_handler_puts_another_error_in_the_place_of_an_overflow() -> None:
    hook = make(
        enqueue_script(
            """local deep
            deep = setmetatable({}, { __index = function(_, key) return deep[key .. "x"] end })
            pcall(function()
                local guard <close> = setmetatable({}, { __close = function() error("other") end })
                return deep.x
            end)
            return {}"""
        )
    )

    assert ask_one(hook) is None
    assert "stack overflow" in hook.stats(0).last_error


@pytest.mark.parametrize("event", ["__gc", "__mode"])
def test_events_that_nobody_can_watch_are_refused_by_name(event: str) -> None:
    hook = make(enqueue_script(f"setmetatable({{}}, {{ {event} = 'k' }}) return {{}}"))

    assert ask_one(hook) is None
    assert hook.stats(0).last_error == f"on_enqueue:2: {event} is not available to scripts"


def test_a_script_that_fails_every_second_time_trips_the_breaker() -> None:
    hook = make(
        "n = 0\n" + enqueue_script("n = n + 1 assert(n % 2 == 0) return {}"),
        breaker=BreakerSettings(threshold=3),
    )

    asked = 0
    while not hook.bypasses(0, 1):
        ask_one(hook)
        asked += 1

    assert asked == 20


def test_durations_are_counted_one_for_each_call() -> None:
    hook = make(enqueue_script("for i = 1, msg.payload_size do end return {}"))

    ask(hook, [outline_of({}, 1)] * 900 + [outline_of({}, 50_000)] * 100)

    stats = hook.stats(0)
    assert 0 < stats.median_us < stats.p99_us / 10


def test_a_call_that_takes_too_long_for_now_is_left_and_has_its_whole_time_later() -> None:
    hook = make(
        enqueue_script("""
          if msg.headers.n == "2" then
            for i = 1, 150000 do end
          end
          return { fairness_key = "k" .. msg.headers.n }
        """),
        limits=HookLimits(timeout_ms=1000),
    )
    packed = hook.pack([outline_of({"n": str(n)}, 1) for n in range(5)])

    hurried = hook.run(packed, start=0, budget_ns=NS_PER_MS, call_ns=NS_PER_MS // 4)
    first = hook.take(hurried, now_ns=0)
    was_quick = hook.is_quick
    rest = hook.take(hook.run(packed, start=len(first), budget_ns=1000 * NS_PER_MS), now_ns=0)

    assert hurried.is_interrupted
    assert len(first) == 2
    assert not was_quick
    keys = [decision and decision.fairness_key for decision in first + rest]
    assert keys == ["k0", "k1", "k2", "k3", "k4"]
    assert (hook.stats(0).timeouts, hook.stats(0).calls) == (0, 5)


def test_a_script_is_quick_after_a_quick_run_and_not_after_a_failure() -> None:
    hook = make(enqueue_script("if msg.headers.n == '1' then error('no') end return {}"))

    was_quick = [hook.is_quick]
    for number in ("0", "1"):
        ask_one(hook, n=number)
        was_quick.append(hook.is_quick)

    assert was_quick == [False, True, False]


def test_a_call_that_needs_much_memory_is_left_for_later_too() -> None:
    hook = make(enqueue_script("local big = ('x'):rep(300000) return { weight = #big % 7 + 1 }"))
    packed = hook.pack([outline_of({}, 1)])

    hurried = hook.run(packed, start=0, budget_ns=NS_PER_MS, call_ns=1000 * NS_PER_MS)
    first = hook.take(hurried, now_ns=0)
    rest = hook.take(hook.run(packed, start=0, budget_ns=1000 * NS_PER_MS), now_ns=0)

    assert (hurried.is_interrupted, first) == (True, [])
    assert rest == [EnqueueDecision(weight=300000 % 7 + 1)]
    assert hook.stats(0).out_of_memory == 0
