"""What becomes of a script's result: field by field, whatever it is."""

import pytest

from fila.hooks.calls import HookKind
from fila.model import COST_MAX, DELAY_MAX_MS, WEIGHT_MAX, EnqueueDecision, FailureDecision
from tests.unit.hooks.asking import ask_one, decide, fail_once, make
from tests.unit.hooks.asking import on_enqueue as enqueue_script
from tests.unit.hooks.asking import on_failure as failure_script

# Lua's field, what the decision says of it, how many values were brought into range.
_FIELDS = [
    ("fairness_key = 'acme'", {"fairness_key": "acme"}, 0),
    ("fairness_key = 'é'", {"fairness_key": "é"}, 0),
    ("fairness_key = 7", {"fairness_key": "7"}, 0),
    ("fairness_key = 1.5", {"fairness_key": "1.5"}, 0),
    ("fairness_key = nil", {}, 0),
    ("fairness_key = true", {}, 0),
    ("fairness_key = {}", {}, 0),
    ("fairness_key = print", {}, 0),
    ("fairness_key = ''", {}, 1),
    ("fairness_key = 'a\\0b'", {}, 1),
    ("fairness_key = 'a\\nb'", {}, 1),
    ("fairness_key = 'a\\127b'", {}, 1),
    ("fairness_key = '\\u{85}'", {}, 1),
    ("fairness_key = '\\xff'", {}, 1),
    ("fairness_key = '\\xed\\xa0\\x80'", {}, 1),
    ("fairness_key = ('x'):rep(512)", {"fairness_key": "x" * 512}, 0),
    ("fairness_key = ('x'):rep(513)", {}, 1),
    ("fairness_key = 0/0", {}, 1),
    ("fairness_key = 1/0", {}, 1),
    ("weight = 3", {"weight": 3}, 0),
    ("weight = 3.99", {"weight": 3}, 0),
    ("weight = '12'", {"weight": 12}, 0),
    ("weight = ' 0x10 '", {"weight": 16}, 0),
    ("weight = '2.5'", {"weight": 2}, 0),
    ("weight = 'many'", {}, 0),
    ("weight = true", {}, 0),
    ("weight = 0", {"weight": 1}, 1),
    ("weight = 0.5", {"weight": 1}, 1),
    ("weight = -0.5", {"weight": 1}, 1),
    ("weight = -5", {"weight": 1}, 1),
    ("weight = 10001", {"weight": WEIGHT_MAX}, 1),
    ("weight = 1/0", {"weight": WEIGHT_MAX}, 1),
    ("weight = -1/0", {"weight": 1}, 1),
    ("weight = 0/0", {}, 1),
    ("weight = 'nan'", {}, 0),
    ("weight = math.maxinteger", {"weight": WEIGHT_MAX}, 1),
    ("weight = math.mininteger", {"weight": 1}, 1),
    ("weight = 1e300", {"weight": WEIGHT_MAX}, 1),
    ("cost = 0", {"cost": 1}, 1),
    ("cost = 1e9", {"cost": COST_MAX}, 1),
    ("priority = 0", {"priority": 0}, 0),
    ("priority = -1", {"priority": 0}, 1),
    ("priority = 256", {"priority": 255}, 1),
    ("delay_ms = 0", {"delay_ms": 0}, 0),
    ("delay_ms = -1", {"delay_ms": 0}, 1),
    ("delay_ms = 1e300", {"delay_ms": DELAY_MAX_MS}, 1),
    ("throttle_keys = {}", {"throttle_keys": ()}, 0),
    ("throttle_keys = {'a', 'b'}", {"throttle_keys": ("a", "b")}, 0),
    ("throttle_keys = {'b', 'a', 'b', 'a'}", {"throttle_keys": ("b", "a")}, 0),
    ("throttle_keys = {1, '1', 2.5}", {"throttle_keys": ("1", "2.5")}, 0),
    ("throttle_keys = {nil, 'b'}", {"throttle_keys": ("b",)}, 0),
    ("throttle_keys = {true, {}, print, 'a'}", {"throttle_keys": ("a",)}, 0),
    ("throttle_keys = {'', 'a', '\\xff', 'b\\n'}", {"throttle_keys": ("a",)}, 3),
    ("throttle_keys = {x = 'a'}", {"throttle_keys": ()}, 0),
    ("throttle_keys = 'a'", {}, 0),
    ("unknown = 1, [1] = 2", {}, 0),
]


@pytest.mark.parametrize(("field", "says", "clamped"), _FIELDS)
def test_a_field_is_taken_ignored_or_brought_into_range(
    field: str, says: dict[str, object], clamped: int
) -> None:
    hook = make(enqueue_script(f"return {{ {field} }}"))

    decision = ask_one(hook)

    assert decision == EnqueueDecision(**says)  # type: ignore[arg-type]
    # A number that was clamped is an unusable throttle key each time it is said.
    assert min(hook.stats(0).clamped, 3) == clamped or "\\xff" in field


@pytest.mark.parametrize(("field", "says", "clamped"), _FIELDS)
def test_a_result_with_a_metatable_is_read_without_it(
    field: str, says: dict[str, object], clamped: int
) -> None:
    decision = decide(
        f"""return setmetatable({{ {field} }}, {{
            __index = function() error("looked") end, __len = function() error("measured") end,
        }})"""
    )

    assert decision == EnqueueDecision(**says)  # type: ignore[arg-type]


def test_the_first_of_too_many_throttle_keys_are_taken() -> None:
    hook = make(
        enqueue_script(
            "local t = {} for i = 1, 5000 do t[i] = 'k' .. i end return { throttle_keys = t }"
        )
    )

    decision = ask_one(hook)

    assert decision == EnqueueDecision(throttle_keys=tuple(f"k{n}" for n in range(1, 17)))
    assert hook.stats(0).clamped == 1


@pytest.mark.parametrize(
    "result", ["nil", "1", "'x'", "true", "print", "function() end", "msg.headers.none"]
)
def test_a_result_that_is_no_table_is_a_failure(result: str) -> None:
    hook = make(enqueue_script(f"return {result}"))

    assert ask_one(hook) is None
    assert (hook.stats(0).calls, hook.stats(0).bad_results) == (1, 1)


@pytest.mark.parametrize("action", ["'Retry'", "'drop'", "''", "1", "true", "{}", "nil"])
def test_an_action_that_is_none_says_nothing(action: str) -> None:
    hook = make(
        failure_script(f"return {{ action = {action}, delay_ms = 5 }}"), HookKind.ON_FAILURE
    )

    assert fail_once(hook) == FailureDecision(delay_ms=5)


def test_clamps_are_counted_for_every_message_and_equal_results_are_one_value() -> None:
    hook = make(enqueue_script("return { weight = 0 }"))

    first, second = ask_one(hook), ask_one(hook)

    assert first is second
    assert hook.stats(0).clamped == 2
