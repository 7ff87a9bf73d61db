"""A hook whose script is a Python function: what waits for it can be tested without Lua."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

from fila.hooks.calls import EnqueueCall
from fila.hooks.hook import Hook
from fila.model import EnqueueDecision
from fila.server.hook_line import Decision, Job

Said = EnqueueDecision | None


class Script:
    """Answers `per_run` calls a turn; a call whose headers say `fail` ends its turn."""

    def __init__(self, name: str = "", *, per_run: int = 1000) -> None:
        self.name = name
        self.trips: list[str] = []
        self.per_run = per_run
        self.is_open = False
        self.is_quick = False
        self.threads: list[str] = []
        self.asked: list[str] = []
        self.runs: list[int] = []
        self.packs = 0
        self.closed = False
        self.is_asked = threading.Event()
        self.may_run = threading.Event()
        self.may_run.set()
        self._packed: list[list[str]] = []

    @property
    def hook(self) -> Hook:
        return cast("Hook", self)

    def bypasses(self, _now_ns: int, _count: int) -> bool:
        return self.is_open

    def pack(self, calls: Sequence[EnqueueCall]) -> bytes:
        self.packs += 1
        self._packed.append([call.decode() for call in calls])
        return str(len(self._packed) - 1).encode()

    def run(self, packed: bytes, *, start: int, budget_ns: int, call_ns: int | None = None) -> Any:
        assert budget_ns > 0
        self.threads.append(threading.current_thread().name)
        self.is_asked.set()
        assert call_ns is None or threading.current_thread() is threading.main_thread()
        assert self.may_run.wait(10)
        names = self._packed[int(packed)][start : start + self.per_run]
        failed = [index for index, name in enumerate(names) if name.startswith("fail")]
        return names[: failed[0] + 1] if failed else names

    def take(self, run: Any, *, now_ns: int) -> list[Said]:
        assert now_ns >= 0
        names = cast("list[str]", run)
        self.asked.extend(names)
        self.runs.append(len(names))
        return [
            None if name.startswith("fail") else EnqueueDecision(fairness_key=self.name + name)
            for name in names
        ]

    def close(self) -> None:
        self.closed = True


class Request:
    """Calls that wait in line, and what became of them."""

    def __init__(self, *names: str, told: Callable[[Request], None] | None = None) -> None:
        self.names = names
        self.is_wanted = True
        self.prepared = 0
        self.keys: list[str | None] | None = None
        self._told = told

    @property
    def job(self) -> Job:
        return Job(prepare=self._prepare, done=self._done, count=len(self.names), size=10)

    def _prepare(self) -> Sequence[EnqueueCall] | None:
        self.prepared += 1
        return [name.encode() for name in self.names] if self.is_wanted else None

    def _done(self, decisions: Sequence[Decision | None]) -> None:
        assert self.keys is None, "told twice"
        self.keys = [None if decision is None else decision.fairness_key for decision in decisions]
        if self._told is not None:
            self._told(self)
