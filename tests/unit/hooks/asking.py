"""A hook made of a few lines of Lua, and asked the way the broker asks it."""

import time
from collections.abc import Mapping, Sequence

from fila.hooks.batch import Call
from fila.hooks.calls import BreakerSettings, FailureCall, HookKind, HookLimits
from fila.hooks.decisions import Decision
from fila.hooks.hook import Hook
from fila.model import NS_PER_S, EnqueueDecision, FailureDecision, Limits
from fila.wire.outline import outline_of

# A breaker that never opens.
PATIENT = BreakerSettings(threshold=1_000_000_000)


def make(
    source: str,
    kind: HookKind = HookKind.ON_ENQUEUE,
    *,
    limits: HookLimits | None = None,
    breaker: BreakerSettings | None = None,
    wire_limits: Limits | None = None,
    config: Mapping[str, str] | None = None,
) -> Hook:
    return Hook(
        kind,
        source,
        queue="orders",
        limits=limits or HookLimits(),
        breaker=breaker or BreakerSettings(),
        wire_limits=wire_limits or Limits(),
        config=({} if config is None else config).get,
        cpu_ns=time.thread_time_ns,
    )


def on_enqueue(body: str) -> str:
    return f"function on_enqueue(msg)\n{body}\nend"


def on_failure(body: str) -> str:
    return f"function on_failure(msg, error, attempts)\n{body}\nend"


def ask(hook: Hook, calls: Sequence[Call], *, now_ns: int = 0) -> list[Decision | None]:
    """The decisions of a whole batch, whatever the breaker says."""
    packed = hook.pack(calls)
    decisions: list[Decision | None] = []
    while len(decisions) < len(calls):
        run = hook.run(packed, start=len(decisions), budget_ns=NS_PER_S)
        decisions += hook.take(run, now_ns=now_ns)
    return decisions


def ask_one(hook: Hook, **headers: str) -> EnqueueDecision | None:
    [decision] = ask(hook, [outline_of(headers, 10)])
    assert decision is None or isinstance(decision, EnqueueDecision)
    return decision


def decide(body: str, **headers: str) -> EnqueueDecision | None:
    return ask_one(make(on_enqueue(body)), **headers)


def fail_once(hook: Hook, error: str = "boom", attempts: int = 1) -> FailureDecision | None:
    [decision] = ask(
        hook, [FailureCall(outline_of({"tenant": "acme"}, 0), "id-1", attempts, error)]
    )
    assert decision is None or isinstance(decision, FailureDecision)
    return decision


def said(expression: str, **headers: str) -> str | None:
    """What a Lua expression comes to, as the script sees it."""
    script = on_enqueue(f"return {{fairness_key = tostring({expression})}}")
    hook = make(script, wire_limits=Limits(key_bytes_max=100_000))
    decision = ask_one(hook, **headers)
    return decision.fairness_key if decision else f"! {hook.stats(0).last_error}"
