"""What a runtime holds is given back at once, not when cycles are looked for."""

import gc
from collections.abc import Iterator

import lupa.lua54
import pytest

from fila.errors import ScriptError
from fila.hooks.calls import HookLimits
from tests.unit.hooks.asking import PATIENT, ask_one, make, on_enqueue


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def runtimes() -> int:
    return sum(type(each) is lupa.lua54.LuaRuntime for each in gc.get_objects())


def test_a_closed_hook_gives_its_runtime_back() -> None:
    before = runtimes()
    hook = make(on_enqueue("return { fairness_key = fila.get('who') }"), config={"who": "acme"})
    ask_one(hook)
    assert runtimes() == before + 1

    hook.close()

    assert runtimes() == before


def test_a_script_that_is_refused_leaves_no_runtime() -> None:
    before = runtimes()

    for source in ("function on_enqueue(", "error('no')", "kept = 1"):
        with pytest.raises(ScriptError):
            make(source)

    assert runtimes() == before


def test_a_script_out_of_memory_leaves_no_runtime() -> None:
    before = runtimes()
    hook = make(
        "kept = {}\n" + on_enqueue("while true do kept[#kept + 1] = ('x'):rep(1000) end"),
        limits=HookLimits(timeout_ms=1000),
        breaker=PATIENT,
    )

    for _ in range(3):
        ask_one(hook)

    assert hook.stats(0).out_of_memory == 3
    assert runtimes() == before
