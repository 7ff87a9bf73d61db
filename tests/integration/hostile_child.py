"""Runs hostile scripts in a process of its own, and says in JSON what each came to.

An abort or a fault ends this process and not the tests; the line that was written last names the
script.
"""

import gc
import json
import sys
import time

import psutil

from fila.errors import ScriptError
from fila.hooks.calls import BreakerSettings, HookKind, HookLimits
from fila.hooks.hook import Hook
from fila.model import NS_PER_S, Limits
from fila.wire.outline import outline_of
from tests.integration.hostile_scripts import BEYOND, CUNNING, ENDLESS, GREEDY, SOURCES

TIMEOUT_MS = 10
_ATTEMPTS = 3
_CONFIG = {"auth:root": "hidden value", "AUTH:root": "hidden value"}
_CALL = outline_of({"tenant": "acme", "path": "/a/b?c=d"}, 1024)
_GOOD = "function on_enqueue(msg) return {fairness_key = msg.headers.tenant} end"


def make(source: str, timeout_ms: int = TIMEOUT_MS) -> Hook:
    return Hook(
        HookKind.ON_ENQUEUE,
        source,
        queue="orders",
        limits=HookLimits(timeout_ms=timeout_ms),
        breaker=BreakerSettings(threshold=1_000_000_000),
        wire_limits=Limits(),
        config=_CONFIG.get,
        cpu_ns=time.thread_time_ns,
    )


def wrapped(body: str) -> str:
    """A script that is hostile while the message `acme` is asked about, and good otherwise."""
    return (
        "function on_enqueue(msg)\n"
        "if msg.headers.path == nil then return {fairness_key = 'good'} end\n"
        f"do {body}\n end end"
    )


def call_once(hook: Hook, call: bytes = _CALL) -> tuple[float, object]:
    """CPU milliseconds of one call, and the decision."""
    packed = hook.pack([call])
    began = time.thread_time()
    run = hook.run(packed, start=0, budget_ns=NS_PER_S)
    took_ms = (time.thread_time() - began) * 1000
    [decision] = hook.take(run, now_ns=0)
    return took_ms, decision


def try_body(body: str) -> dict[str, object]:
    hook = make(wrapped(body))
    took: list[float] = []
    for _ in range(_ATTEMPTS):
        took_ms, decision = call_once(hook)
        took.append(took_ms)
        _, after = call_once(hook, outline_of({"tenant": "x"}, 1))
    stats = hook.stats(0)
    failed = {
        name: getattr(stats, name)
        for name in ("timeouts", "out_of_memory", "errors", "bad_results")
    }
    return {
        # The machine is shared: what others do to the caches is no script's doing.
        "cpu_ms": min(took),
        "decision": repr(decision),
        "after": repr(after),
        "failed": {name: count for name, count in failed.items() if count},
        "error": stats.last_error,
    }


def try_source(source: str) -> dict[str, object]:
    took: list[float] = []
    for _ in range(_ATTEMPTS):
        began = time.thread_time()
        try:
            make(source + "\nfunction on_enqueue(msg) return {} end")
            outcome = "compiled"
        except ScriptError as error:
            outcome = str(error)[:300]
        took.append((time.thread_time() - began) * 1000)
    return {"cpu_ms": min(took), "error": outcome}


def try_all() -> dict[str, dict[str, object]]:
    results: dict[str, dict[str, object]] = {}
    groups = {"endless": ENDLESS, "greedy": GREEDY, "cunning": CUNNING, "beyond": BEYOND}
    for group, scripts in groups.items():
        for name, body in scripts.items():
            print(f"{group}: {name}", file=sys.stderr, flush=True)
            results[f"{group}: {name}"] = try_body(body)
    for name, source in SOURCES.items():
        print(f"source: {name}", file=sys.stderr, flush=True)
        results[f"source: {name}"] = try_source(source)
    return results


def good_cost_us(hook: Hook) -> float:
    """CPU microseconds of a good call, in the best of some batches."""
    packed = hook.pack([outline_of({"tenant": "acme"}, 1)] * 500)
    best = float("inf")
    for _ in range(20):
        began = time.thread_time()
        decided = len(hook.take(hook.run(packed, start=0, budget_ns=NS_PER_S), now_ns=0))
        best = min(best, (time.thread_time() - began) / decided)
    return best * 1_000_000


def resident_bytes() -> int:
    gc.collect()
    resident: int = psutil.Process().memory_info().rss
    return resident


def one_row(bodies: list[str], good: Hook) -> set[str]:
    """Each of the bodies once, in a hook of its own; what the good hook says meanwhile."""
    said: set[str] = set()
    for body in bodies:
        hook = make(wrapped(body))
        call_once(hook)
        _, decision = call_once(good, outline_of({"tenant": "good"}, 1))
        said.add(getattr(decision, "fairness_key", ""))
    return said


def try_rows() -> dict[str, object]:
    """A hundred hostile calls in a row, twice; memory and the cost of a good call after each."""
    bodies = [*ENDLESS.values(), *GREEDY.values(), *CUNNING.values()]
    good = make(_GOOD)
    said = one_row(bodies[:100], good)
    before = good_cost_us(good), resident_bytes()
    said |= one_row(bodies[:100], good)
    after = good_cost_us(good), resident_bytes()
    return {
        "good_us_before": before[0],
        "good_us_after": after[0],
        "resident_before": before[1],
        "resident_after": after[1],
        "decisions": sorted(said),
    }


if __name__ == "__main__":
    json.dump(try_rows() if sys.argv[1:] == ["rows"] else try_all(), sys.stdout)
