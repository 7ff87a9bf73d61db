"""Our pattern functions against Lua's own, on inputs that are made at random from a seed.

Both run in one runtime: the parts of the sandbox are loaded as they are, with the limit below which
Lua's own matcher is used set to nothing, so that every call goes through ours.
"""

import random
from collections.abc import Iterator
from importlib.resources import files

import lupa.lua54

_ITEMS = (
    "a",
    "b",
    "c",
    ".",
    "%a",
    "%d",
    "%s",
    "%w",
    "%W",
    "%x",
    "%p",
    "%c",
    "%u",
    "%l",
    "%z",
    "%g",
    "%S",
    "[ab]",
    "[^ab]",
    "[a-c]",
    "[%a_]",
    "[^%s]",
    "[]]",
    "[^]]",
    "[a-]",
    "[-a]",
    "[%]]",
    "[b%-]",
    "[",
    "[a",
    "[^",
    "[a-%a]",
    "%",
    "%%",
    "%.",
    "%b()",
    "%bab",
    "%b",
    "%baa",
    "%f[a]",
    "%f[^a]",
    "%f[%w]",
    "%f",
    "%f[%z]",
    "%1",
    "%2",
    "%3",
    "%0",
    "%9",
    "()",
    "(",
    ")",
    "(a)",
    "(.-)",
    "(a*)",
    "((a)b)",
    "$",
    "^",
    " ",
    "é",
    "\0",
    "\xff",
    "-",
    "*",
    "+",
    "?",
    "%w+",
    "[%w]-",
    "(%b())",
    "(()a())",
    "%e",
)
_SUFFIXES = ("", "", "", "", "*", "+", "-", "?")
_SUBJECT = (
    "a",
    "a",
    "b",
    "b",
    "c",
    " ",
    "(",
    ")",
    "1",
    "_",
    "A",
    "é",
    "\0",
    "\xff",
    "%",
    "]",
    "ab",
    "aab",
)
_REPLACEMENTS = (
    "''",
    "'x'",
    "'%0'",
    "'%1'",
    "'%2'",
    "'<%0%1>'",
    "'%%'",
    "'%'",
    "'%x'",
    "'a%0b%0'",
    "7",
    "1.5",
    "{a = 'A', b = false, ab = 3, [1] = 'one'}",
    "{}",
    "{a = {}}",
    "{a = true}",
    "function(...) return select('#', ...) .. tostring((...)) end",
    "function() end",
    "function(a) return a end",
    "function() return {} end",
    "function(a, b) return b end",
    "setmetatable({}, {__index = function(_, k) return k .. k end})",
    "nil",
    "true",
)
_POSITIONS = (
    "",
    "",
    "",
    ", 1",
    ", 2",
    ", 0",
    ", -1",
    ", -3",
    ", 100",
    ", -100",
    ", nil",
    ", '2'",
    ", 2.0",
    ", 1.5",
    ", 'x'",
)

_DUEL = """
local ours, original = ...
local function answer(call, functions)
  local named = 'local find, match, gmatch, gsub = ... '
  local made, problem = load(named .. call, '=call')
  if not made then return 'no such call: ' .. problem end
  local find, match = functions.find, functions.match
  local gmatch, gsub = functions.gmatch, functions.gsub
  local found = table.pack(pcall(made, find, match, gmatch, gsub))
  for index = 1, found.n do
    local value = found[index]
    found[index] = (math.type(value) or type(value)) .. ':' .. tostring(value)
  end
  local text = table.concat(found, '|')
  -- Where it happened is not the same; neither is the name of an argument's function.
  return (text:gsub('%f[%w]call:%d+: ', ''):gsub('%?:%-1: ', ''):gsub("'%?'", 'function'))
end
return function(call)
  local first, second = answer(call, original), answer(call, ours)
  if first ~= second then return first .. '\\n' .. second end
end
"""
_PARTS = ("native", "patterns", "matching")


def quoted(text: str) -> str:
    """A Lua string literal, byte by byte."""
    return "'" + "".join(f"\\{byte:03d}" for byte in text.encode("latin-1", "replace")) + "'"


class Duel:
    """Both matchers, side by side."""

    def __init__(self, *, break_ours: str = "") -> None:
        lua = lupa.lua54.LuaRuntime(encoding=None)
        self._lua = lua
        original = lua.eval(
            b"{find = string.find, match = string.match,"
            b" gmatch = string.gmatch, gsub = string.gsub}"
        )
        lua.execute(b"kept = {} for name, value in pairs(_G) do kept[name] = value end")
        kept = lua.globals()[b"kept"]
        parts = lua.table_from({})
        native = None
        parts[b"watch"] = lua.table_from({b"look": lua.eval(b"function() end")})
        for name in _PARTS:
            code = (files("fila.hooks") / "lua" / f"{name}.lua").read_text()
            code = code.replace("STEPS_MAX = 200000", "STEPS_MAX = 0")
            if break_ours:
                right, _, wrong = break_ours.partition(" => ")
                code = code.replace(right, wrong)
            part = kept[b"load"](code.encode(), b"=" + name.encode())(native, parts)
            native = native or part
            parts[name.encode()] = part
        restore = kept[b"load"](
            b"local kept, all = ... for k, v in kept.next, kept do all[k] = v end"
        )
        restore(kept, lua.globals())
        self._answer = kept[b"load"](_DUEL.encode())(parts[b"matching"], original)

    def differs(self, call: str) -> str | None:
        """What each said where they disagree: Lua's own first."""
        answer = self._answer(call.encode("latin-1"))
        return None if answer is None else answer.decode("latin-1")


def calls(seed: int) -> Iterator[str]:
    """Calls for ever."""
    chance = random.Random(seed)

    def text(longest: int) -> str:
        return "".join(chance.choice(_SUBJECT) for _ in range(chance.randrange(longest)))

    def pattern() -> str:
        parts = [
            chance.choice(_ITEMS) + chance.choice(_SUFFIXES) for _ in range(chance.randrange(6))
        ]
        return chance.choice(("", "", "^")) + "".join(parts) + chance.choice(("", "", "", "$"))

    while True:
        subject, wanted = quoted(text(chance.choice((4, 12, 30)))), quoted(pattern())
        position = chance.choice(_POSITIONS)
        kind = chance.randrange(5)
        if kind == 0:
            yield f"return find({subject}, {wanted}{position})"
        elif kind == 1:
            yield f"return match({subject}, {wanted}{position})"
        elif kind == 2:
            yield (
                f"local t = {{}} for a, b, c in gmatch({subject}, {wanted}{position}) do "
                "t[#t + 1] = tostring(a) .. tostring(b) .. tostring(c) end "
                "return table.concat(t, ',')"
            )
        elif kind == 3:
            yield f"return gsub({subject}, {wanted}, {chance.choice(_REPLACEMENTS)}{position})"
        else:
            plain = chance.choice(("true", "false", "nil", "1"))
            yield f"return find({subject}, {quoted(text(4))}, {chance.randrange(-5, 9)}, {plain})"
