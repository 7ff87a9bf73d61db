"""Which scripts each queue has, compiled: what its messages' keys, weights and retries follow."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from fila.errors import ScriptError
from fila.hooks.calls import BreakerSettings, HookKind, HookLimits
from fila.hooks.hook import Hook
from fila.hooks.stats import HookStats
from fila.model import DLQ_SUFFIX, Limits, QueueSettings
from fila.server.clock import thread_cpu_ns
from fila.server.config import LuaSection
from fila.server.hook_line import Call, Decision, HookLine, Job
from fila.server.hook_thread import HookThread
from fila.server.log import facts

log = logging.getLogger(__name__)

ConfigReader: TypeAlias = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class _Source:
    """What a hook is made of: while it stays the same, so does the hook."""

    script: str
    limits: HookLimits


@dataclass(slots=True)
class _QueueHooks:
    sources: dict[HookKind, _Source] = field(default_factory=dict)
    lines: dict[HookKind, HookLine] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A queue's new scripts, ready to take the place of those it has."""

    queue: str
    sources: dict[HookKind, _Source]
    # Those that differ from what the queue has.
    hooks: dict[HookKind, Hook]


class Policy:
    """The scripts of all queues."""

    def __init__(
        self, *, thread: HookThread, lua: LuaSection, limits: Limits, config: ConfigReader
    ) -> None:
        self._thread = thread
        self._lua = lua
        self._limits = limits
        self._config = config
        self._queues: dict[str, _QueueHooks] = {}

    def restore(self, queues: Iterable[tuple[str, QueueSettings]]) -> None:
        """Compile what is stored, before anything is served.

        A script that does not compile any more must not keep the broker down: its queue goes on
        as if it had none.
        """
        for queue, settings in queues:
            sources = self._sources(settings)
            hooks: dict[HookKind, Hook] = {}
            for kind, source in sources.items():
                try:
                    hooks[kind] = self._compile(queue, kind, source)
                except ScriptError as error:
                    log.error(  # noqa: TRY400 - the text says all; there is nothing to trace
                        "a stored script was left out",
                        extra=facts(queue=queue, hook=kind.value, error=str(error)),
                    )
            self.install(Compiled(queue, {kind: sources[kind] for kind in hooks}, hooks))

    async def compile(self, queue: str, settings: QueueSettings) -> Compiled:
        """Make hooks of what has changed; raises what is wrong with a script."""
        sources = self._sources(settings)
        known = self._queues.get(queue) or _QueueHooks()
        changed = {
            kind: source for kind, source in sources.items() if known.sources.get(kind) != source
        }
        hooks: dict[HookKind, Hook] = {}
        try:
            for kind, source in changed.items():
                make = partial(self._compile, queue, kind, source)
                hooks[kind] = await self._thread.run(make)
        except BaseException:
            self._retire(hooks.values())
            raise
        return Compiled(queue, sources, hooks)

    def install(self, compiled: Compiled) -> None:
        """From now on the queue's messages follow these scripts."""
        if not compiled.sources and compiled.queue not in self._queues:
            return
        known = self._queues.setdefault(compiled.queue, _QueueHooks())
        for kind in known.sources.keys() - compiled.sources.keys():
            self._replace(compiled.queue, known, kind, None)
        known.sources = compiled.sources
        for kind, hook in compiled.hooks.items():
            self._replace(compiled.queue, known, kind, hook)

    def discard(self, compiled: Compiled) -> None:
        """The queue keeps what it has."""
        self._retire(compiled.hooks.values())

    def remove(self, queue: str) -> None:
        """A queue is gone, and its dead-letter queue with it."""
        for name in (queue, queue + DLQ_SUFFIX):
            known = self._queues.pop(name, None)
            if known is not None:
                for kind in known.sources:
                    self._replace(name, known, kind, None)

    def line(self, queue: str, kind: HookKind) -> HookLine | None:
        """Where a queue's messages wait for a script; None where they need not."""
        known = self._queues.get(queue)
        line = known.lines.get(kind) if known is not None else None
        if line is None or (line.hook is None and not len(line)):
            return None
        return line

    def submit(self, line: HookLine, job: Job) -> None:
        """Let a request wait for a script."""
        self._thread.submit(line, job)

    async def ask(self, line: HookLine, calls: list[Call]) -> list[Decision | None]:
        """What a script says of each call."""
        future: asyncio.Future[list[Decision | None]] = asyncio.get_running_loop().create_future()

        def prepare() -> list[Call] | None:
            return None if future.cancelled() else calls

        def done(decisions: Sequence[Decision | None]) -> None:
            if not future.cancelled():
                future.set_result(list(decisions))

        self.submit(line, Job(prepare=prepare, done=done, count=len(calls)))
        return await future

    def config_changed(self) -> None:
        """A runtime setting has changed; scripts may read it."""
        for known in self._queues.values():
            for line in known.lines.values():
                if line.hook is not None:
                    line.hook.config_changed()

    def stats(self, queue: str, kind: HookKind, *, now_ns: int) -> HookStats | None:
        """What a script has done so far; None where there is none."""
        known = self._queues.get(queue)
        line = known.lines.get(kind) if known is not None else None
        return line.hook.stats(now_ns) if line is not None and line.hook is not None else None

    def close(self) -> None:
        """No script runs any more."""
        self._thread.close()

    def _sources(self, settings: QueueSettings) -> dict[HookKind, _Source]:
        limits = HookLimits(
            timeout_ms=settings.hook_timeout_ms or self._lua.default_timeout_ms,
            memory_bytes=settings.hook_memory_bytes or self._lua.default_memory_limit_bytes,
        )
        scripts = {
            HookKind.ON_ENQUEUE: settings.on_enqueue_script,
            HookKind.ON_FAILURE: settings.on_failure_script,
        }
        return {kind: _Source(script, limits) for kind, script in scripts.items() if script}

    def _compile(self, queue: str, kind: HookKind, source: _Source) -> Hook:
        try:
            return self._hook(queue, kind, source)
        except ScriptError as error:
            # Its trace would keep the runtime that refused the script, for as long as the answer
            # to the call that brought it keeps the error.
            raise error.with_traceback(None) from None

    def _hook(self, queue: str, kind: HookKind, source: _Source) -> Hook:
        return Hook(
            kind,
            source.script,
            queue=queue,
            limits=source.limits,
            breaker=BreakerSettings(
                threshold=self._lua.circuit_breaker_threshold,
                cooldown_ms=self._lua.circuit_breaker_cooldown_ms,
            ),
            wire_limits=self._limits,
            config=self._config,
            cpu_ns=thread_cpu_ns,
        )

    def _replace(self, queue: str, known: _QueueHooks, kind: HookKind, hook: Hook | None) -> None:
        line = known.lines.get(kind)
        if line is None:
            known.lines[kind] = HookLine(queue, hook)
            return
        if line.hook is not None:
            self._retire([line.hook])
        line.hook = hook
        # Who waits in it goes on with the new script, or without one.
        self._thread.resume(line)

    def _retire(self, hooks: Iterable[Hook]) -> None:
        for hook in hooks:
            self._thread.call(hook.close)
