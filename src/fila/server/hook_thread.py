"""Where scripts run: lines take turns of a few milliseconds, slow ones in a thread of their own.

One thread, because two would take turns with the event loop for two cores and gain nothing; lines
in turn, so that a slow script slows its own queue only. Lua runs without the interpreter lock, and
a whole question crosses at once: the way back may have to wait for the lock, so it is taken seldom.

A script that was quick is asked on the loop itself, where the way there and back costs nothing. A
call that is not quick after all is broken off after a moment, and asked again in the thread.
"""

import asyncio
import logging
import re
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
_PLACE = re.compile(r"on_\w+:\d+")

# A turn; a call that has begun may run over it, up to its own limit.
_TURN_NS = 5 * NS_PER_MS
# On the loop: a turn, and how long a call may hold everything up.
_QUICK_TURN_NS = 2 * NS_PER_MS
_QUICK_CALL_NS = NS_PER_MS


class HookThread:
    """Belongs to the event loop's thread; only questions are asked in the other."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="fila-hooks")
        self._quick: deque[HookLine] = deque()
        self._slow: deque[HookLine] = deque()
        # Whose question is out: its line is the thread's until the answer is in.
        self._asked: HookLine | None = None
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
        if not line.is_listed and line is not self._asked:
            line.is_listed = True
            (self._quick if line.is_quick else self._slow).append(line)

    def _turn_soon(self) -> None:
        # Not at once: requests that arrive together are asked together.
        if not self._turn_due and (self._quick or (self._slow and self._asked is None)):
            self._turn_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_due = False
        if self._slow and self._asked is None:
            self._slow_turn(self._slow.popleft())
        if self._quick:
            self._quick_turn(self._quick.popleft())
        self._turn_soon()

    def _quick_turn(self, line: HookLine) -> None:
        line.is_listed = False
        question = line.next_question(self._clock.now_ns())
        if question is not None:
            try:
                run = question.ask(_QUICK_TURN_NS, _QUICK_CALL_NS)
            except Exception as error:  # noqa: BLE001 - supervision, as in the thread
                _give_up(line, question, error)
            else:
                self._take(line, question, run)
        if len(line):
            self._list(line)

    def _slow_turn(self, line: HookLine) -> None:
        line.is_listed = False
        question = line.next_question(self._clock.now_ns())
        if question is not None:
            self._asked = line
            asked = self._loop.run_in_executor(self._executor, question.ask, _TURN_NS)
            asked.add_done_callback(partial(self._end_turn, line, question))
        elif len(line):
            self._list(line)

    def _take(self, line: HookLine, question: Question, run: Run) -> None:
        line.take(question, run, self._clock.now_ns())
        _log_trips(question.hook)

    def _end_turn(self, line: HookLine, question: Question, asked: "asyncio.Future[Run]") -> None:
        self._asked = None
        if asked.cancelled():
            return
        error = asked.exception()
        if error is None:
            self._take(line, question, asked.result())
        else:
            _give_up(line, question, error)
        if len(line):
            self._list(line)
        self._turn_soon()


def _give_up(line: HookLine, question: Question, error: BaseException) -> None:
    """Supervision: a fault of ours in the sandbox must not stop the queue."""
    log.error("a script could not be run", exc_info=error)
    line.give_up(question)


def _log_trips(hook: Hook) -> None:
    """Once for each time that the breaker opened, not for each failure.

    Where it failed, but not with what words: those are the script's own, and may hold a header.
    """
    while hook.trips:
        place = _PLACE.match(hook.trips.pop(0))
        log.warning(
            "a script keeps failing and is left out for a while",
            extra=facts(
                queue=hook.queue,
                at=place[0] if place else hook.kind.value,
                more=f"fila stats {hook.queue}",
            ),
        )
