"""The processes of a measurement: the broker, and those that load it. Each is ended by its id."""

import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import psutil

from benchmarks.machine import ROOT

_LISTENING = re.compile(rb"listening on (\S+?),? ")
_START_S = 120.0
_STOP_S = 30.0
# The longest job fills a queue with millions.
_JOB_S = 300.0
# Linux names the clock of another process's CPU time by its inverted id.
_CPUCLOCK_SCHED = 2


class RunError(Exception):
    """A process of the measurement did not do its part."""


class _Process:
    """A child whose lines are read with a deadline."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log.open("ab")
        kept = {name: text for name, text in os.environ.items() if not name.startswith("FILA_")}
        paths = [str(ROOT / "src"), str(ROOT), kept.get("PYTHONPATH", "")]
        self._child = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**kept, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
            # Ctrl-C is ours: we end our children in our own order.
            start_new_session=True,
        )
        self._rest = b""

    @property
    def pid(self) -> int:
        return self._child.pid

    def cpu_s(self) -> float:
        """User and system time so far, of all its threads."""
        return time.clock_gettime(~self.pid << 3 | _CPUCLOCK_SCHED)

    def resident_bytes(self) -> int:
        """Memory that it has in RAM."""
        return int(psutil.Process(self.pid).memory_info().rss)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL when that takes too long."""
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
        self._close()

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self._child.kill()
        self._child.wait(_STOP_S)
        self._close()

    def _close(self) -> None:
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        self._log.close()

    def _line(self, timeout_s: float) -> bytes:
        assert self._child.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._child.stdout], [], [], left)[0]:
                raise RunError(f"nothing within {timeout_s:.0f} s from {self._words()}")
            got = self._child.stdout.read(65_536)
            if not got:
                raise RunError(f"unexpected end of {self._words()}")
            self._rest += got
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _words(self) -> str:
        tail = Path(str(self._log.name)).read_text(errors="replace")[-1500:]
        return f"{' '.join(map(str, cast('list[str]', self._child.args)[1:5]))}\n{tail}".rstrip()

    def __enter__(self) -> "_Process":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class Broker(_Process):
    """`fila-server` with its defaults, on loopback; fsync is on."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.started_at = time.monotonic()
        super().__init__(
            [
                *("-m", "fila.server.main", "--listen", "127.0.0.1:0"),
                *("--data-dir", str(data_dir)),
            ],
            data_dir.with_name(data_dir.name + ".log"),
        )
        self.address = self._wait_until_listening()

    def __enter__(self) -> "Broker":
        return self

    def _wait_until_listening(self) -> str:
        try:
            while not (found := _LISTENING.search(self._line(_START_S))):
                pass
        except BaseException:
            self.kill()
            raise
        return found.group(1).decode()


class Load(_Process):
    """A client process that carries out jobs of `benchmarks.jobs`, one at a time."""

    def __init__(self, log: Path) -> None:
        super().__init__(["-m", "benchmarks.load"], log)

    def __enter__(self) -> "Load":
        return self

    def begin(self, job: str, address: str, **arguments: object) -> None:
        """Start a job against a broker; its `result` must be taken before the next."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps([job, address, arguments]).encode() + b"\n")

    def result(self) -> dict[str, Any]:
        """What the job found."""
        found = json.loads(self._line(_JOB_S))
        if "error" in found:
            raise RunError(found["error"])
        return cast("dict[str, Any]", found)

    def run(self, job: str, address: str, **arguments: object) -> dict[str, Any]:
        """`begin` and `result`."""
        self.begin(job, address, **arguments)
        return self.result()
