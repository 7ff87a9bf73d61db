"""What scripts may use: it is there, it does what Lua's does, and nothing else is there."""

import lupa.lua54
import pytest

from fila.hooks.calls import HookKind
from tests.unit.hooks.asking import ask_one, decide, fail_once, make, said
from tests.unit.hooks.asking import on_enqueue as enqueue_script
from tests.unit.hooks.asking import on_failure as failure_script

# Everything that a script finds in its globals.
_GLOBALS = {
    "_G",
    "_VERSION",
    "assert",
    "error",
    "fila",
    "getmetatable",
    "ipairs",
    "math",
    "msg",
    "next",
    "on_enqueue",
    "pairs",
    "pcall",
    "rawequal",
    "rawget",
    "rawlen",
    "rawset",
    "select",
    "setmetatable",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "utf8",
} - {"msg"}

# Each is worth the same here and in a Lua without a sandbox.
_SAME = (
    "select('#', 1, nil, 3)",
    "select(2, 'a', 'b', 'c')",
    "select(-1, 1, 2)",
    "tonumber('0x1p4')",
    "tonumber('z', 36)",
    "tostring(nil)",
    "tostring(-0.0)",
    "rawlen({1, 2})",
    "rawequal('a', 'a')",
    "next({})",
    "next({5})",
    "type(next)",
    "pcall(error, 'x')",
    "select(2, pcall(error, 'x', 0))",
    "select(2, pcall(error))",
    "math.type(1)",
    "math.ult(1, -1)",
    "math.tointeger(3.0)",
    "1 << 63",
    "'10' + 5",
    "'0x10' * 2",
    "10 .. 20",
    "'a' < 'b'",
    "('x'):rep(3)",
    "('x'):rep(3, ',')",
    "('x'):rep(0)",
    "('x'):rep(-1)",
    "('ab'):rep(200, '-')",
    "('abc'):rep(150)",
    "('x'):rep(65)",
    "('x'):rep(2.0)",
    "string.rep(5, 2)",
    "string.rep('x', '3')",
    "string.rep('x', 70, 1)",
    "('abc'):sub(-2)",
    "('abc'):byte(-1)",
    "('abc'):upper():lower():len()",
    "('abc'):reverse()",
    "string.char(104, 105)",
    "string.format('%5.1f|%-5s|%q', 1.25, 'a', 'b')",
    "string.format('%s', setmetatable({}, {__tostring = function() return 'me' end}))",
    "table.concat({1, 2, 3}, ', ')",
    "table.concat({1, 2, 3}, ', ', 2)",
    "table.concat({}, 'x')",
    "table.concat({1, 2, 3}, ', ', 2, 2)",
    "table.concat({'a', 'b'}, 5)",
    "table.concat(table.pack(('x '):rep(900):byte(1, -1)), ',')",
    "select(2, pcall(table.concat, {1, {}, 3}))",
    "table.unpack({1, 2, 3}, 2)",
    "table.unpack({}, 1, 2)",
    "table.pack(1, nil, 3).n",
    "table.concat(table.move({1, 2, 3}, 1, 3, 2))",
    "table.concat(table.move({1, 2, 3}, 2, 3, 1))",
    "table.concat(table.move({1, 2, 3}, 1, 3, 1, {}))",
    "table.remove({1, 2, 3})",
    "table.remove({1, 2, 3}, 1)",
    "table.remove({})",
    "table.remove({}, 0)",
    "table.remove({1}, 2)",
    "utf8.char(228, 8364)",
    "utf8.len('äö')",
    "utf8.len('\\xff')",
    "utf8.codepoint('äö', 1, -1)",
    "utf8.offset('äö', 2)",
    "('äö'):match(utf8.charpattern)",
    "#utf8.charpattern",
    "(function() local t = {3, 1, 2} table.sort(t) return table.concat(t) end)()",
    "(function() local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) "
    "return table.concat(t) end)()",
    "(function() local t = {1} table.insert(t, 2) table.insert(t, 1, 0) "
    "return table.concat(t) end)()",
    "(function() local t = {1, 2, 3} table.remove(t, 1) return table.concat(t, ',') end)()",
    "select(2, pcall(table.insert, {1}))",
    "(function() local s = '' for p, c in utf8.codes('aä') "
    "do s = s .. p .. ':' .. c .. ' ' end return s end)()",
    "(function() local s = 0 for i, v in ipairs({1, 2, nil, 4}) do s = s + v end return s end)()",
    "(function() local s = 0 for k, v in pairs({1, 2, x = 4}) do s = s + v end return s end)()",
    "(function() local o = setmetatable({}, {__index = {a = 1}}) return o.a end)()",
    "(function() local m = {} local o = setmetatable({}, m) m.__index = {a = 1} return o.a end)()",
    "(function() local m = {} local o = setmetatable({}, m) m.__index = function(_, k) "
    "return k end return o.a end)()",
    "(function() local m = {} local o = setmetatable({}, m) return getmetatable(o) == m end)()",
    "getmetatable(setmetatable({}, {__metatable = 'mine'}))",
    "select(2, pcall(setmetatable, setmetatable({}, {__metatable = 1}), {}))",
    "(function() local n = {} local o = setmetatable({}, {__newindex = n}) o.a = 5 "
    "return n.a, rawget(o, 'a') end)()",
    "(function() local m = {} local o = setmetatable({}, m) o.a = 5 return rawget(o, 'a') end)()",
    "setmetatable({}, {__call = function(_, a) return a end})(5)",
    "#setmetatable({}, {__len = function() return 9 end})",
    "(function() for k in pairs(setmetatable({}, {__pairs = function() "
    "return next, {z = 1} end})) do return k end end)()",
    "(function() local log = '' do "
    "local c <close> = setmetatable({}, {__close = function() log = 'closed' end}) end "
    "return log end)()",
    "(function() local A = {} A.__index = A function A.new() return setmetatable({}, A) end "
    "function A:hi() return 'hi' end return A.new():hi() end)()",
    "(function() local a = setmetatable({}, {__add = function(x, y) return y end}) "
    "return a + 4 end)()",
    "setmetatable({}, nil) ~= nil",
)


@pytest.mark.parametrize("expression", _SAME)
def test_what_is_there_does_what_lua_does(expression: str) -> None:
    lua = lupa.lua54.LuaRuntime(encoding="utf-8")

    expected = lua.execute(f"return tostring({expression})")

    assert said(expression) == (expected or None)


def test_a_script_sees_what_is_listed_and_nothing_else() -> None:
    decision = decide(
        "local names = {} for name in pairs(_G) do names[#names + 1] = name end table.sort(names) "
        "return { fairness_key = table.concat(names, ' ') }"
    )

    assert decision is not None
    assert set((decision.fairness_key or "").split()) == _GLOBALS


def test_headers_read_like_a_table() -> None:
    body = """
        local h, seen = msg.headers, {}
        for k, v in pairs(h) do seen[#seen + 1] = k .. '=' .. v end
        for _ in ipairs(h) do error('not a list') end
        table.sort(seen)
        local k = next(h)
        assert(h[k] and rawget(h, k) == h[k] and #h == 0 and rawlen(h) == 0)
        assert(h.none == nil and rawget(h, 'none') == nil and type(h) == 'table')
        return { fairness_key = table.concat(seen, ',') }"""

    decision = decide(body, b="2", a="1", c="3")

    assert decision is not None
    assert decision.fairness_key == "a=1,b=2,c=3"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("msg.headers.a = 1", "msg.headers"),
        ("rawset(msg.headers, 'a', 1)", "msg.headers"),
        ("msg.headers[1] = 'x'", "msg.headers"),
        ("msg.queue = 'other'", "msg"),
        ("rawset(msg, 'tenant', 'x')", "msg"),
    ],
)
def test_a_message_cannot_be_changed_and_the_error_says_so(change: str, what: str) -> None:
    hook = make(enqueue_script(change))

    assert ask_one(hook, a="1") is None
    assert f"{what} is read-only" in hook.stats(0).last_error
    assert hook.stats(0).last_error.startswith("on_enqueue:2:")


def test_a_message_reads_like_a_table() -> None:
    body = """
        local seen = {}
        for k, v in pairs(msg) do seen[#seen + 1] = k end
        table.sort(seen)
        assert(next(msg) and rawget(msg, 'queue') == msg.queue and type(msg) == 'table')
        return { fairness_key = table.concat(seen, ',') }"""

    decision = decide(body)

    assert decision is not None
    assert decision.fairness_key == "headers,payload_size,queue"


def test_headers_may_hold_anything() -> None:
    decision = decide(
        "return { fairness_key = #msg.headers.nul .. msg.headers.text, "
        "throttle_keys = { msg.headers[''] } }",
        nul="\0a\0",
        text="é" * 3,
        **{"": "empty"},
    )

    assert decision is not None
    assert decision.fairness_key == "3ééé"
    assert decision.throttle_keys == ("empty",)


def test_many_headers_are_all_there() -> None:
    headers = {f"h{n}": f"v{n}" for n in range(100)}

    decision = decide(
        "for n = 0, 99 do assert(msg.headers['h' .. n] == 'v' .. n) end return {weight = 2}",
        **headers,
    )

    assert decision is not None
    assert decision.weight == 2


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("'plain'", "value"),
        ("'é'", "accent"),
        ("'empty'", ""),
        ("'none'", "nil"),
        ("'auth:x'", "nil"),
        ("'AUTH:x'", "nil"),
        ("' auth:x'", "nil"),
        ("'auth:x\\0'", "nil"),
        ("'plain\\0'", "nil"),
        ("nil", "nil"),
        ("1", "nil"),
        ("{}", "nil"),
        ("'\\xff'", "nil"),
        ("('x'):rep(300)", "nil"),
    ],
)
def test_the_config_is_read_but_for_its_secrets(key: str, found: str) -> None:
    config = {"plain": "value", "é": "accent", "empty": "", "1": "one", "x" * 300: "long"}
    config |= dict.fromkeys(("auth:x", "AUTH:x", " auth:x", "auth:x\0", "plain\0"), "secret")
    hook = make(
        enqueue_script(f"return {{ fairness_key = 'is ' .. tostring(fila.get({key})) }}"),
        config=config,
    )

    decision = ask_one(hook)

    assert decision is not None
    assert decision.fairness_key == f"is {found}"


def test_random_numbers_are_the_same_in_each_runtime() -> None:
    assert said("math.random(1000000)") == said("math.random(1000000)")


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("exponential_backoff(1)", "1000"),
        ("exponential_backoff(4)", "8000"),
        ("exponential_backoff(100)", "300000"),
        ("exponential_backoff(3, 50)", "200"),
        ("exponential_backoff(30, 50, 700)", "700"),
        ("exponential_backoff(0)", "1000"),
        ("exponential_backoff(2, -5)", "0"),
        ("exponential_backoff(9e99, 9e99, 9e99)", "3153600000000"),
    ],
)
def test_backoff_doubles_up_to_its_most(call: str, value: str) -> None:
    assert said(f"fila.helpers.{call}") == value


def test_a_tenant_is_routed_by_its_header_and_its_configured_weight() -> None:
    script = enqueue_script("return fila.helpers.tenant_route(msg, 'customer', 'nobody')")
    hook = make(script, config={"weight:acme": "7"})

    known, unknown = ask_one(hook, customer="acme"), ask_one(hook)

    assert known is not None
    assert unknown is not None
    assert (known.fairness_key, known.weight) == ("acme", 7)
    assert (unknown.fairness_key, unknown.weight) == ("nobody", None)


def test_rate_limit_keys_name_header_and_value() -> None:
    decision = decide(
        "local keys = fila.helpers.rate_limit_keys(msg, 'provider', 'none', 'region') "
        "return { throttle_keys = keys }",
        provider="mail",
        region="eu",
    )

    assert decision is not None
    assert decision.throttle_keys == ("provider:mail", "region:eu")


def test_retries_end_and_back_off_until_then() -> None:
    hook = make(failure_script("return fila.helpers.max_retries(msg, 3, 100)"), HookKind.ON_FAILURE)

    second, third = fail_once(hook, attempts=2), fail_once(hook, attempts=3)

    assert second is not None
    assert third is not None
    assert (second.action and second.action.value, second.delay_ms) == ("retry", 200)
    assert (third.action and third.action.value, third.delay_ms) == ("dlq", None)
