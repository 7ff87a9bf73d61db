"""One script of one queue: its sandbox, its breaker, and what is counted of it.

`run` is for the thread that runs hooks, everything else for the event loop. What they share: the
sandbox belongs to the thread once the hook is made, and `config_changed` leaves a mark that the
next run finds.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fila.errors import ScriptError
from fila.hooks.allowance import Allowance, steps
from fila.hooks.batch import Call, pack, slice_from
from fila.hooks.breaker import Breaker
from fila.hooks.calls import BreakerSettings, HookKind, HookLimits
from fila.hooks.decisions import Decision, Reader
from fila.hooks.histogram import Histogram
from fila.hooks.sandbox import Sandbox, SandboxSettings
from fila.hooks.stats import HookStats
from fila.model import NS_PER_S, Limits

_FAILED = b"\x04"
_SEPARATOR = b"\x01"
_OUT_OF_MEMORY = b"\x04out_of_memory\x01"
_INTERRUPTED = b"\x04interrupted"
_KNOWN_LINES_MAX = 4096
# A run that took no more than this, and for each call, was quick.
_QUICK_RUN_NS = 500_000
_QUICK_CALL_NS = 20_000
# Lua's compiler walks a list of these for each of them.
_JUMPS = re.compile(r"\b(?:and|or|elseif|goto)\b|::")
_JUMPS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Run:
    """What came back of some calls of a batch: a line for each, and a line before them."""

    answer: bytes
    # What it took, and whether a call was left that took too long for now.
    cpu_ns: int
    is_interrupted: bool


class Hook:
    """A script that is asked about messages, and bypassed while it fails."""

    def __init__(
        self,
        kind: HookKind,
        source: str,
        *,
        queue: str,
        limits: HookLimits,
        breaker: BreakerSettings,
        wire_limits: Limits,
        config: Callable[[str], str | None],
        cpu_ns: Callable[[], int],
    ) -> None:
        _check(kind, source, wire_limits)
        self.kind = kind
        self.queue = queue
        self._source = source
        self._limits = limits
        self._settings = SandboxSettings(
            kind=kind,
            queue=queue,
            timeout_ms=limits.timeout_ms,
            wire_limits=wire_limits,
            config=config,
            cpu_ns=cpu_ns,
        )
        # The error of each trip of the breaker, for the log; whoever logs them takes them out.
        self.trips: list[str] = []
        # Whether the last run was quick: the next one will hardly be slow.
        self.is_quick = False
        self._breaker = Breaker(breaker)
        self._reader = Reader(kind, wire_limits)
        self._histogram = Histogram()
        self._decided: dict[bytes, Decision] = {}
        self._clamps: dict[bytes, int] = {}
        self._counts = dict.fromkeys(("timeouts", "out_of_memory", "errors", "bad_results"), 0)
        self._calls = self._bypassed = self._clamped = 0
        self._last_error = ""
        self._changes = self._changes_seen = 0
        self._steps: Sequence[Allowance] = ()
        self._step = 0
        # Of its time, what the next call has used up in attempts with less memory.
        self._spent_s = 0.0
        self._sandbox: Sandbox | None = self._load()

    def bypasses(self, now_ns: int, count: int) -> bool:
        """Whether the breaker is open; the messages that are not asked about are counted."""
        if not self._breaker.is_open(now_ns):
            return False
        self._bypassed += count
        return True

    def pack(self, calls: Sequence[Call]) -> bytes:
        """The inputs of a batch as one value."""
        return pack(calls)

    def run(self, packed: bytes, *, start: int, budget_ns: int, call_ns: int | None = None) -> Run:
        """Ask about the batch from a call on, until the time is spent or a call failed.

        With `call_ns` nobody can wait for a call that takes longer than that, or much memory: it is
        left, to be asked again without.
        """
        began_ns = self._settings.cpu_ns()
        answer = self._answer(slice_from(packed, start), budget_ns, call_ns)
        is_interrupted = answer.endswith(_INTERRUPTED)
        if is_interrupted:
            answer = answer.rpartition(b"\n")[0]
        return Run(answer, self._settings.cpu_ns() - began_ns, is_interrupted)

    def _answer(self, calls: tuple[bytes, int], budget_ns: int, call_ns: int | None) -> bytes:
        while True:
            spent_s, self._spent_s = self._spent_s, 0.0
            answer = self._ask(calls, budget_ns, call_ns, spent_s)
            head, _, body = answer.partition(b"\n")
            earlier, _, last = body.rpartition(b"\n")
            if not last.startswith(_OUT_OF_MEMORY):
                return answer
            if call_ns is not None:
                # More memory lets a single instruction take longer: not where somebody waits.
                return answer[: len(answer) - len(last)] + _INTERRUPTED
            if self._step + 1 >= len(self._steps):
                # With the runtime goes whatever the script holds on to.
                self._sandbox = None
                return answer
            # Again with more memory, in what is left of its time.
            self._step += 1
            self._spent_s = spent_s + float(head.partition(b" ")[0])
            if earlier:
                return head + b"\n" + earlier

    def take(self, run: Run, *, now_ns: int) -> list[Decision | None]:
        """The decisions of a run, None for a call that failed; the breaker learns of them."""
        head, *lines = run.answer.split(b"\n")
        for bucket in head.split()[1:]:
            place, _, count = bucket.partition(b":")
            self._histogram.add(int(place), int(count))
        is_failed = bool(lines) and lines[-1].startswith(_FAILED)
        failure = lines.pop()[1:] if is_failed else None
        self.is_quick = (
            failure is None
            and not run.is_interrupted
            and run.cpu_ns < _QUICK_RUN_NS + len(lines) * _QUICK_CALL_NS
        )
        known = self._decided
        decisions: list[Decision | None] = list(map(known.get, lines))
        if not all(decisions):
            decisions = [known.get(line) or self._decide(line) for line in lines]
        self._calls += len(lines)
        if self._clamps:
            self._clamped += sum(self._clamps.get(line, 0) for line in lines)
        if lines and self._breaker.succeeded(len(lines), now_ns):
            self.trips.append(self._last_error)
        if failure is not None:
            self._fail(failure, now_ns)
            decisions.append(None)
        return decisions

    def config_changed(self) -> None:
        """Let the next run see a change of the runtime config."""
        # Not of which key: changes are rare, and what is forgotten is soon read again.
        self._changes += 1

    def stats(self, now_ns: int) -> HookStats:
        """What was counted so far."""
        return HookStats(
            calls=self._calls,
            timeouts=self._counts["timeouts"],
            out_of_memory=self._counts["out_of_memory"],
            errors=self._counts["errors"],
            bad_results=self._counts["bad_results"],
            bypassed=self._bypassed,
            clamped=self._clamped,
            breaker_opened=self._breaker.opened,
            breaker_open=self._breaker.is_open(now_ns),
            last_error=self._last_error,
            median_us=self._histogram.quantile_us(0.5),
            p99_us=self._histogram.quantile_us(0.99),
        )

    def close(self) -> None:
        """Give the runtime back; nothing may be called afterwards but `stats`."""
        self._sandbox = None

    def _ask(
        self, calls: tuple[bytes, int], budget_ns: int, call_ns: int | None, spent_s: float
    ) -> bytes:
        # Counted before anything is read: a change in between is seen by the next run.
        changes = self._changes
        if self._sandbox is None:
            try:
                self._sandbox = self._load()
            except ScriptError as error:
                return b"0\n" + _FAILED + b"errors" + _SEPARATOR + _one_line(str(error))
        step, seen, self._changes_seen = self._steps[self._step], self._changes_seen, changes
        return self._sandbox.run(
            calls,
            budget_ns=budget_ns,
            limit_s=None if call_ns is None else call_ns / NS_PER_S,
            spent_s=spent_s,
            memory_bytes=step.memory_bytes,
            every=step.every,
            is_stale=changes != seen,
        )

    def _load(self) -> Sandbox:
        limits = self._limits
        whole = steps(limits.memory_bytes, held_bytes=0, timeout_ms=limits.timeout_ms)[-1]
        sandbox = Sandbox(
            self._source, self._settings, memory_bytes=whole.memory_bytes, every=whole.every
        )
        self._steps = steps(
            limits.memory_bytes, held_bytes=sandbox.held_bytes, timeout_ms=limits.timeout_ms
        )
        self._step = 0
        return sandbox

    def _decide(self, line: bytes) -> Decision:
        decision = self._reader.read(line)
        if len(self._decided) >= _KNOWN_LINES_MAX:
            self._decided.clear()
            self._clamps.clear()
        self._decided[line] = decision
        if self._reader.clamped:
            self._clamps[line] = self._reader.clamped
        return decision

    def _fail(self, failure: bytes, now_ns: int) -> None:
        how, _, text = failure.partition(_SEPARATOR)
        self._calls += 1
        self._counts[how.decode()] += 1
        self._last_error = text.decode(errors="replace")
        if self._breaker.failed(now_ns):
            self.trips.append(self._last_error)


def _check(kind: HookKind, source: str, limits: Limits) -> None:
    """Refuse what would take long to compile, which nothing can stop."""
    size = len(source.encode(errors="replace"))
    if size > limits.script_bytes_max:
        raise ScriptError(
            f"{kind.value}_script has {size} bytes; the limit is "
            f"{limits.script_bytes_max} (limits.script_bytes_max)"
        )
    jumps = len(_JUMPS.findall(source))
    if jumps > _JUMPS_MAX:
        raise ScriptError(
            f"{kind.value}_script says 'and', 'or', 'elseif' and 'goto' {jumps} times; "
            f"the limit is {_JUMPS_MAX}"
        )


def _one_line(text: str) -> bytes:
    return " ".join(text.split()).encode(errors="replace")
