"""Scripts that want to run for ever, take all memory, get out, or end the process.

Those that are the body of a function stand in `hostile/*.lua`; those that are hostile before there
is a function are made here.
"""

import re
from pathlib import Path

_SECTION = re.compile(r"^--- (.+)\n((?:(?!--- ).*\n)*)", re.MULTILINE)


def _read(name: str) -> dict[str, str]:
    text = (Path(__file__).parent / "hostile" / f"{name}.lua").read_text()
    return {title: body.strip() for title, body in _SECTION.findall(text)}


ENDLESS = _read("endless")
GREEDY = _read("greedy")
CUNNING = _read("cunning")
BEYOND = _read("beyond")

# What is hostile before the function is there.
SOURCES = {
    "nested parentheses": "x = " + "(" * 30_000 + "1" + ")" * 30_000,
    "nested tables": "x = " + "{" * 30_000 + "}" * 30_000,
    "nested functions": "x = " + "function() return " * 2800 + "1" + " end" * 2800,
    "unary operators": "x = " + "-" * 2 + " -" * 30_000 + "1",
    "not operators": "x = " + "not " * 15_000 + "1",
    "concat operators": "x = " + "'a'.." * 12_000 + "'a'",
    "power operators": "x = " + "2^" * 30_000 + "2",
    "labels": "".join(f"::l{n}:: " for n in range(480)),
    "gotos": "".join(f"goto a{n} " for n in range(990)),
    "gotos and labels": "".join(f"goto a{n} ::a{n}:: " for n in range(400)),
    "nested blocks of gotos": "do " * 190 + "goto a " * 990 + " end" * 190,
    "locals": "".join(f"local a{n} " for n in range(5000)),
    "constants": "x = {" + ",".join(f"{n}.5" for n in range(8000)) + "}",
    "many functions": "x = {" + "function() end," * 4000 + "}",
    "upvalues": "local a = 1 " + "x = function() return a end " * 2000,
    "long string": "x = [==[" + "]=" * 30_000 + "]==]",
    "long comment": "--[==[" + "]=" * 30_000 + "]==]",
    "elseif": "if x then " + "elseif x then " * 990 + "end",
    "too many jumps": "x = " + "a and b or " * 5800 + "c",
    "and or": "x = " + "a and b or " * 499 + "c",
    "semicolons": ";" * 65_000,
    "top level loop": "while true do end",
    "top level pcall": "while true do pcall(function() while true do end end) end",
    "top level memory": "t = {} while true do t[#t + 1] = {} end",
    "bytecode": "\x1bLua\x54\x00",
    "NULs": "x = '" + "\0" * 1000 + "'",
    "not a function": "on_enqueue = setmetatable({}, {__call = function() end})",
    "hidden by a metatable": "setmetatable(_G, {__index = function() while true do end end})",
}  # fmt: skip
