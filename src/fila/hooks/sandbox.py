"""One Lua runtime with one script in it; the only place that knows lupa.

While a limit on memory is in force, a call from Python that has to allocate in Lua may end the
process if it can't. Three rules keep that from happening: the limit is set where more than the next
arguments need is free, what comes back is one value that exists already, and a callback that has
something to hand over lifts the limit first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

import lupa.lua54

from fila.errors import ScriptError
from fila.hooks.calls import HookKind
from fila.model import NS_PER_S, Limits

P = ParamSpec("P")
R = TypeVar("R")

# In the order in which they need each other.
_PARTS = (
    "native", "watch", "views", "outline", "base", "tables", "strings", "codes", "patterns",
    "matching", "config", "policies", "results", "histogram", "environment", "runner",
)  # fmt: skip
_FIELDS = ("fairness_key", "weight", "throttle_keys", "cost", "priority", "delay_ms", "action")
# The lines of a run, and what is read out of its input.
_ROOM_BYTES = 64 * 1024
# What compiling a byte of a script may take, for a time.
_COMPILE_FACTOR = 24
_PROTECTED = b"auth:"

_BOOT = b"""
local load, parts = load, {}
return function(name, code, settings)
  parts.settings = settings
  parts[name] = load(code, "=fila", "b")(parts.native, parts)
  return parts[name]
end
"""
OUT_OF_MEMORY = b"0\n\x04out_of_memory\x01not enough memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """What a runtime is made for."""

    kind: HookKind
    queue: str
    timeout_ms: int
    wire_limits: Limits
    config: Callable[[str], str | None]
    # CPU time of the calling thread.
    cpu_ns: Callable[[], int]


class Sandbox:
    """A script, compiled and run once, whose function can be called."""

    def __init__(
        self, source: str, settings: SandboxSettings, *, memory_bytes: int, every: int
    ) -> None:
        self._settings = settings
        self._cpu_s = _in_seconds(settings.cpu_ns)
        self._ceiling = 0
        self._before = 0
        self._lua = lupa.lua54.LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_no_attributes,
            max_memory=0,
        )
        runner = self._boot()
        self._run = runner[b"run"]
        self._bare = self._used()
        code = source.encode(errors="replace")
        self._load(runner[b"load"], code, memory_bytes + len(code) * _COMPILE_FACTOR, every)
        self._base = self._used()

    @property
    def held_bytes(self) -> int:
        """What the script holds beyond the runtime it runs in, as of its first run."""
        return max(0, self._base - self._bare)

    def run(
        self,
        calls: tuple[bytes, int],
        *,
        budget_ns: int,
        spent_s: float,
        limit_s: float | None,
        memory_bytes: int,
        every: int,
        is_stale: bool,
    ) -> bytes:
        """Run a slice of a batch from one of its calls on; the lines of what came back.

        `limit_s`: for each call, where that is less than its time limit.
        `is_stale`: the runtime config has changed since the last run.
        """
        packed, skip = calls
        self._ceiling = self._base + memory_bytes + 2 * len(packed) + _ROOM_BYTES
        now_s = self._cpu_s()
        # The garbage of earlier runs must not be in the way of the arguments.
        if self._used() + len(packed) + _ROOM_BYTES > self._ceiling:
            self._lua.gccollect()
        self._lua.set_max_memory(self._ceiling, total=True)
        try:
            answer: bytes = self._run(
                packed, skip, budget_ns / NS_PER_S, limit_s, spent_s, now_s, every, is_stale
            )
        except lupa.lua54.LuaMemoryError:
            # Not even the lines fit beside what the script holds on to.
            return OUT_OF_MEMORY
        finally:
            self._ceiling = 0
            self._lua.set_max_memory(0)
        return answer

    def _boot(self) -> Mapping[bytes, Callable[..., bytes]]:
        settings, limits = self._settings, self._settings.wire_limits
        table = self._lua.table_from(
            {
                b"name": settings.kind.value.encode(),
                b"queue": settings.queue.encode(),
                b"timeout": settings.timeout_ms / 1000,
                b"key_bytes_max": limits.key_bytes_max,
                b"throttle_keys_max": limits.throttle_keys_max,
                b"config_key_bytes_max": limits.config_key_bytes_max,
                b"fields": self._lua.table_from([field.encode() for field in _FIELDS]),
                b"cpu": self._cpu_s,
                # Lua must not hold this object, which holds Lua: the runtime, and all that a script
                # keeps in it, would stay until cycles are looked for, in a large broker for long.
                b"fetch": _held_weakly(self._fetch),
                b"resume_limit": _held_weakly(self._resume_limit),
            }
        )
        boot = self._lua.execute(_BOOT)
        runner: Mapping[bytes, Callable[..., bytes]] = {}
        for name, code in _compiled().items():
            runner = boot(name, code, table)
        return runner

    def _load(self, load: Callable[..., bytes | None], code: bytes, room: int, every: int) -> None:
        self._ceiling = self._bare + room + len(code) + _ROOM_BYTES
        self._lua.set_max_memory(self._ceiling, total=True)
        try:
            problem = load(code, self._cpu_s(), every)
        except lupa.lua54.LuaMemoryError:
            problem = b"out_of_memory\x01not enough memory"
        finally:
            self._ceiling = 0
            self._lua.set_max_memory(0)
        if problem is not None:
            text = problem.partition(b"\x01")[2].decode(errors="replace")
            raise ScriptError(f"{self._settings.kind.value}_script: {text}")

    def _used(self) -> int:
        used: int = self._lua.get_memory_used(total=True)
        return used

    # What Lua calls. A number can be returned under a limit; nothing else can.

    def _fetch(self, key: bytes) -> bytes | None:
        self._lua.set_max_memory(0)
        self._before = self._used()
        name = _readable(key)
        if name is None:
            return None
        value = self._settings.config(name)
        return None if value is None else value.encode(errors="replace")

    def _resume_limit(self) -> None:
        # What the cache keeps is not the script's.
        grown = max(0, self._used() - self._before)
        self._base += grown
        if self._ceiling:
            self._ceiling += grown
            self._lua.set_max_memory(self._ceiling, total=True)


def _in_seconds(cpu_ns: Callable[[], int]) -> Callable[[], float]:
    return lambda: cpu_ns() / NS_PER_S


def _held_weakly(method: Callable[P, R]) -> Callable[P, R]:
    held = WeakMethod(method)

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = held()
        assert bound is not None
        return bound(*args, **kwargs)

    return call


def _readable(key: bytes) -> str | None:
    """The name that a script may read; None for what is no key, or a secret."""
    if key.strip().lower().startswith(_PROTECTED) or b"\0" in key:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        return None


def _no_attributes(_owner: object, _name: object, _is_setting: object) -> object:
    raise AttributeError


@cache
def _compiled() -> dict[bytes, bytes]:
    """Our own Lua, compiled once for the process: a runtime is made of it in little time."""
    dump = lupa.lua54.LuaRuntime(encoding=None).execute(
        b"return function(code, name) return string.dump(assert(load(code, name, 't')), true) end"
    )
    folder = files("fila.hooks") / "lua"
    return {
        name.encode(): dump((folder / f"{name}.lua").read_bytes(), b"=" + name.encode())
        for name in _PARTS
    }
