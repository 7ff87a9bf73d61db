"""Random programs against the sandbox, in a process of their own: functions that scripts may call,
on values that nobody expects, inside loops, handlers, metatables and errors.

    python -m tests.integration.sandbox_fuzz SEED PROGRAMS
"""

import json
import random
import re
import sys

from fila.wire.outline import outline_of
from tests.integration.hostile_child import call_once, make

_MORE_ATTEMPTS = 3
_FUNCTIONS = (
    "assert",
    "error",
    "getmetatable",
    "ipairs",
    "next",
    "pairs",
    "pcall",
    "rawequal",
    "rawget",
    "rawlen",
    "rawset",
    "select",
    "setmetatable",
    "tonumber",
    "tostring",
    "type",
    "string.byte",
    "string.char",
    "string.find",
    "string.format",
    "string.gmatch",
    "string.gsub",
    "string.len",
    "string.lower",
    "string.match",
    "string.rep",
    "string.reverse",
    "string.sub",
    "string.upper",
    "table.concat",
    "table.insert",
    "table.move",
    "table.pack",
    "table.remove",
    "table.sort",
    "table.unpack",
    "utf8.char",
    "utf8.codepoint",
    "utf8.codes",
    "utf8.len",
    "utf8.offset",
    "math.abs",
    "math.ceil",
    "math.floor",
    "math.fmod",
    "math.log",
    "math.max",
    "math.random",
    "math.tointeger",
    "math.type",
    "math.ult",
    "math.modf",
    "fila.get",
    "fila.helpers.exponential_backoff",
    "fila.helpers.tenant_route",
    "fila.helpers.rate_limit_keys",
    "fila.helpers.max_retries",
    "on_enqueue",
    "f1",
    "f2",
    "msg.headers",
    "s1",
)
_VALUES = (
    "nil",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "100",
    "4000",
    "1e9",
    "-1e9",
    "1e308",
    "0/0",
    "1/0",
    "-1/0",
    "math.maxinteger",
    "math.mininteger",
    "1.5",
    "''",
    "'a'",
    "'abc'",
    "'\\0'",
    "'\\0\\0a'",
    "'\\xff\\xfe'",
    "('a'):rep(50)",
    "('a'):rep(20000)",
    "('ab'):rep(60000)",
    "('\\0'):rep(30000)",
    "('('):rep(2000)",
    "('1'):rep(400)",
    "('%a'):rep(20)",
    "'a-a-a-a-a-b'",
    "'(a*)(a*)%1%2b'",
    "'%b()'",
    "'%f[%w]'",
    "'[^%s]+'",
    "'%s%q%d'",
    "'%99.99f'",
    "'%c'",
    "'%1'",
    "'n'",
    "'#'",
    "'k'",
    "'__index'",
    "'__mode'",
    "'__gc'",
    "'__close'",
    "'__metatable'",
    "'auth:root'",
    "'not enough memory'",
    "'stack overflow'",
    "{}",
    "{1, 2, 3}",
    "{'b', 'a'}",
    "{a = 1}",
    "{{}, {}}",
    "t1",
    "t2",
    "s1",
    "n1",
    "msg",
    "msg.headers",
    "_G",
    "string",
    "math",
    "fila",
    "print",
    "f1",
    "f2",
    "pcall",
    "string.rep",
    "function() return 1 end",
    "function(...) return ... end",
    "function() while true do end end",
    "function() error({}) end",
    "function(a) return f1(a) end",
    "setmetatable({}, {__index = f1})",
    "setmetatable({}, {__index = f2, __len = f1, __call = f1, __newindex = f2})",
    "setmetatable({}, {__len = function() return 1e8 // 1 | 0 end})",
    "setmetatable({}, {__tostring = f1, __name = 'x', __pairs = f2})",
    "setmetatable({}, {__eq = f1, __lt = f2, __concat = f1})",
    "setmetatable({}, {__close = f1})",
    "setmetatable({}, {__metatable = 1})",
)
_OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "^",
    "..",
    "==",
    "~=",
    "<",
    "<=",
    "and",
    "or",
    "&",
    "|",
    "~",
    "<<",
    ">>",
)
_NAMES = ("t1", "t2", "s1", "n1")
_DEPTH = 4


class Programs:
    """Bodies of `on_enqueue`."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def body(self) -> str:
        # Most of what they do is an error, which must not be the end of it.
        statements = "\n".join(
            f"pcall(function() {self._statement(0)} end)"
            for _ in range(self._chance.randrange(2, 9))
        )
        return (
            "local t1, t2, s1, n1 = {}, {3, 1, 2}, 'text', 7\n"
            f"local f1, f2\nf1 = function(a, b) {self._block(2)} return {self._expression(2)} end\n"
            f"f2 = function(a, b, ...) {self._block(2)} return {self._expression(2)} end\n"
            f"{statements}\nreturn {{fairness_key = s1, weight = n1, throttle_keys = t1, "
            f"delay_ms = {self._expression(2)}}}"
        )

    def _block(self, depth: int) -> str:
        return " ".join(self._statement(depth + 1) for _ in range(self._chance.randrange(3)))

    def _call(self, depth: int) -> str:
        arguments = ", ".join(self._expression(depth + 1) for _ in range(self._chance.randrange(5)))
        return f"{self._chance.choice(_FUNCTIONS)}({arguments})"

    def _expression(self, depth: int) -> str:
        kind = self._chance.randrange(10) if depth < _DEPTH else 0
        if kind < 4:
            return self._chance.choice(_VALUES)
        if kind < 7:
            return self._call(depth)
        if kind == 7:
            operator = self._chance.choice(_OPERATORS)
            return f"({self._expression(depth + 1)} {operator} {self._expression(depth + 1)})"
        if kind == 8:
            return f"({self._expression(depth + 1)})[{self._expression(depth + 1)}]"
        return (
            f"select(-1, pcall({self._chance.choice(_FUNCTIONS)}, {self._expression(depth + 1)}))"
        )

    def _statement(self, depth: int) -> str:
        forms = (
            f"{self._chance.choice(_NAMES)} = E;",
            "local _ = C;",
            "t1[E] = E;",
            f"for i = 1, {self._chance.choice(('3', '50', '1e9'))} do B end",
            "for k, v in pairs(E) do B end",
            "pcall(function() B B end);",
            "do local c <close> = E; B end",
            "if E then B end",
            "while E do B s1 = s1 .. 'x' end",
        )
        form = forms[0] if depth >= _DEPTH else self._chance.choice(forms[:1] * 3 + forms)
        parts = {"E": self._expression, "C": self._call, "B": self._block}
        words = re.split(r"\b([ECB])\b", form)
        return "".join(parts[word](depth) if word in parts else word for word in words)


def run(seed: int, count: int) -> dict[str, object]:
    """What the programs came to, and the slowest call with its program."""
    programs = Programs(seed)
    failed = dict.fromkeys(("timeouts", "out_of_memory", "errors", "bad_results"), 0)
    worst_ms, worst, wrong = 0.0, "", ""
    for number in range(count):
        body = programs.body()
        print(f"program {number} of seed {seed}", file=sys.stderr, flush=True)
        hook = make(
            "function on_enqueue(msg)\n"
            "if msg.headers.path == nil then return {fairness_key = 'good'} end\n"
            f"{body}\nend"
        )
        took_ms, _ = call_once(hook)
        if took_ms > worst_ms:
            # Again: what others do to the machine meanwhile is no script's doing.
            took_ms = min(took_ms, *(call_once(hook)[0] for _ in range(_MORE_ATTEMPTS)))
            worst_ms, worst = max((worst_ms, worst), (took_ms, body))
        stats = hook.stats(0)
        for name in failed:
            failed[name] += bool(getattr(stats, name))
        _, after = call_once(hook, outline_of({"tenant": "x"}, 1))
        if getattr(after, "fairness_key", None) != "good" and hook.stats(0).errors == stats.errors:
            wrong = body
    return {"failed": failed, "worst_ms": worst_ms, "worst": worst, "wrong": wrong}


if __name__ == "__main__":
    json.dump(run(int(sys.argv[1]), int(sys.argv[2])), sys.stdout)
