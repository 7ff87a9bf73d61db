"""The one thread in which scripts run: lines take turns of a few milliseconds.

One thread, because two would take turns with the event loop for two cores and gain nothing; lines
in turn, so that a slow script slows its own queue only. Lua runs without the interpreter lock, and
a whole question crosses at once: the way back may have to wait for the lock, so it is taken seldom.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from fila.hooks.hook import Hook, Run
from fila.model import NS_PER_MS
from fila.server.clock import Clock
from fila.server.hook_line import HookLine, Job, Question
from fila.server.log import facts

log = logging.getLogger(__name__)

T = TypeVar("T")

# A turn; a call that has begun may run over it, up to its own limit.
_TURN_NS = 5 * NS_PER_MS


class HookThread:
    """Belongs to the event loop's thread; only questions are asked in the other."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="fila-hooks")
        self._lines: deque[HookLine] = deque()
        self._asking = False
        self._turn_due = False

    def submit(self, line: HookLine, job: Job) -> None:
        """Let a request wait for a script."""
        line.append(job)
        self._list(line)
        self._turn_soon()

    def resume(self, line: HookLine) -> None:
        """A line's script has changed: who waits in it may not have to any more."""
        if len(line):
            self._list(line)
            self._turn_soon()

    async def run(self, make: Callable[[], T]) -> T:
        """Do something that runs a script's text, in its turn; what goes wrong is raised."""
        return await self._loop.run_in_executor(self._executor, make)

    def call(self, do: Callable[[], None]) -> None:
        """Do something after what is being done."""
        self._executor.submit(do)

    def close(self) -> None:
        """No script runs any more."""
        self._executor.shutdown(wait=True)

    def _list(self, line: HookLine) -> None:
        if not line.is_listed:
            line.is_listed = True
            self._lines.append(line)

    def _turn_soon(self) -> None:
        # Not at once: requests that arrive together are asked together.
        if not self._asking and not self._turn_due and self._lines:
            self._turn_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_due = False
        line = self._lines.popleft()
        line.is_listed = False
        question = line.next_question(self._clock.now_ns())
        if question is not None:
            self._asking = True
            asked = self._loop.run_in_executor(self._executor, question.ask, _TURN_NS)
            asked.add_done_callback(partial(self._end_turn, line, question))
            return
        if len(line):
            self._list(line)
        self._turn_soon()

    def _end_turn(self, line: HookLine, question: Question, asked: "asyncio.Future[Run]") -> None:
        self._asking = False
        if asked.cancelled():
            return
        error = asked.exception()
        if error is None:
            line.take(question, asked.result(), self._clock.now_ns())
            _log_trips(question.hook)
        else:
            # Supervision: a fault of ours in the sandbox must not stop the queue.
            log.error("a script could not be run", exc_info=error)
            line.give_up(question)
        if len(line):
            self._list(line)
        self._turn_soon()


def _log_trips(hook: Hook) -> None:
    """Once for each time that the breaker opened, not for each failure."""
    while hook.trips:
        error = hook.trips.pop(0)
        log.warning(
            "a script keeps failing and is left out for a while",
            extra=facts(queue=hook.queue, hook=hook.kind.value, error=error),
        )
