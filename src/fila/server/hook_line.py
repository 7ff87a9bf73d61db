"""What waits for one script, in order of arrival: each request's calls, and the decisions so far.

Nothing here runs Lua. A line says what to ask the script next and hands the decisions out; whoever
has a request in line is told when the last of its calls is decided.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from fila.errors import ExhaustedError
from fila.hooks.calls import EnqueueCall, FailureCall
from fila.model import EnqueueDecision, FailureDecision

if TYPE_CHECKING:
    from fila.hooks.hook import Hook, Run

log = logging.getLogger(__name__)

Call: TypeAlias = EnqueueCall | FailureCall
Decision: TypeAlias = EnqueueDecision | FailureDecision

# Asked at once: what a quick script does in a millisecond or two.
_ASKED_MAX = 512
# Above it enqueues are refused: the script is slower than what arrives.
_CALLS_MAX = 20_000
_BYTES_MAX = 64 * 1024 * 1024


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One request's calls.

    `prepare` is asked for them when their turn comes; None means that nobody wants the answer any
    more. `done` gets a decision for each, None where the script has none.
    """

    prepare: Callable[[], Sequence[Call] | None]
    done: Callable[[Sequence[Decision | None]], None]
    count: int
    size: int = 0
    calls: Sequence[Call] | None = None
    decisions: list[Decision | None] = field(default_factory=list)

    @property
    def undecided(self) -> int:
        """How many of its calls wait."""
        return 0 if self.calls is None else len(self.calls) - len(self.decisions)


@dataclass(slots=True, eq=False)
class Question:
    """Calls for a script, packed for the way to it; `start` of them are decided."""

    hook: Hook
    packed: bytes
    count: int
    start: int = 0

    def ask(self, budget_ns: int, call_ns: int | None = None) -> Run:
        """Run the script, for about so long. The one thing that another thread does."""
        return self.hook.run(self.packed, start=self.start, budget_ns=budget_ns, call_ns=call_ns)


class HookLine:
    """One script's line. Without a script, whatever waits is let through."""

    def __init__(self, queue: str, hook: Hook | None) -> None:
        self._queue = queue
        self.hook = hook
        # Known to the thread as a line with work.
        self.is_listed = False
        self._jobs: deque[Job] = deque()
        self._count = 0
        self._bytes = 0
        self._question: Question | None = None

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def is_quick(self) -> bool:
        """Whether it may be asked where everything else waits for the answer."""
        return self.hook is None or self.hook.is_quick

    def admit(self, count: int, size: int) -> None:
        """Refuse what would wait too long behind the rest; alone, anything may wait."""
        if not self._jobs:
            return
        if self._count + count > _CALLS_MAX or self._bytes + size > _BYTES_MAX:
            raise ExhaustedError(
                f"{self._count} messages wait for the on_enqueue script of queue {self._queue!r}; "
                "try again later, send less at once, or make the script quicker"
            )

    def append(self, job: Job) -> None:
        """Let a request wait behind all others."""
        self._jobs.append(job)
        self._count += job.count
        self._bytes += job.size

    def next_question(self, now_ns: int) -> Question | None:
        """What to ask now. None: some were answered without asking, or there is nothing.

        Not while a question is out: what it says is for those at the front.
        """
        question = self._question
        if question is not None and question.hook is self.hook:
            left = question.count - question.start
            if not question.hook.bypasses(now_ns, left):
                return question
            self._question = None
            self._hand_out([None] * left)
            return None
        self._question = None
        calls = self._gather()
        if self.hook is None or not calls or self.hook.bypasses(now_ns, len(calls)):
            self._hand_out([None] * len(calls))
            return None
        self._question = Question(self.hook, self.hook.pack(calls), len(calls))
        return self._question

    def take(self, question: Question, run: Run, now_ns: int) -> None:
        """Take in what the script said."""
        decisions = question.hook.take(run, now_ns=now_ns)
        self._advance(question, decisions)

    def give_up(self, question: Question) -> None:
        """There will be no answer: its messages go on with their own options."""
        self._advance(question, [None] * (question.count - question.start))

    def _advance(self, question: Question, decisions: Sequence[Decision | None]) -> None:
        question.start += len(decisions)
        if question.start >= question.count:
            self._question = None
        self._hand_out(decisions)

    def _gather(self) -> list[Call]:
        """The next calls; requests that nobody waits for any more leave the line."""
        calls: list[Call] = []
        looked_at: list[Job] = []
        while self._jobs and len(calls) < _ASKED_MAX:
            job = self._jobs.popleft()
            if job.calls is None:
                job.calls = _prepared(job)
                if job.calls is None:
                    self._forget(job)
                    continue
            start = len(job.decisions)
            calls.extend(job.calls[start : start + _ASKED_MAX - len(calls)])
            looked_at.append(job)
        self._jobs.extendleft(reversed(looked_at))
        return calls

    def _hand_out(self, decisions: Sequence[Decision | None]) -> None:
        """From the front: the order of requests is the order of their answers."""
        given = 0
        while self._jobs and self._jobs[0].calls is not None:
            job = self._jobs[0]
            wanted = job.undecided
            job.decisions.extend(decisions[given : given + wanted])
            given += wanted
            if job.undecided:
                return
            self._jobs.popleft()
            self._forget(job)
            job.done(job.decisions)

    def _forget(self, job: Job) -> None:
        self._count -= job.count
        self._bytes -= job.size


def _prepared(job: Job) -> Sequence[Call] | None:
    """What to ask for a request; nothing if that can't be found out, but it must not be lost."""
    try:
        return job.prepare()
    except Exception:
        # Supervision: the disk may fail to read. The request goes on with its own options.
        log.exception("a script could not be asked")
        return []
