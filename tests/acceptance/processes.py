"""Real programs for the acceptance tests: a broker on a free port, and commands against it."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, "-m", "fila.server.main"]
COMMAND = [sys.executable, "-m", "fila.cli.main"]
_READY = re.compile(r"listening on (\S+:\d+),")
_START_SECONDS_MAX = 30.0


_NOT_THE_USERS = {"NO_COLOR", "FORCE_COLOR", "PYTHONUNBUFFERED"}


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without what would configure Fila, colour its output or never buffer it."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("FILA_") and key not in _NOT_THE_USERS
    }
    # Without an installation the sources do.
    kept["PYTHONPATH"] = str(ROOT / "src")
    return {**kept, **more}


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker."""

    addr: str
    data_dir: Path

    def environment(self) -> dict[str, str]:
        """What leads a command to this broker."""
        return clean_environment(FILA_ADDR=self.addr)

    def fila(self, *arguments: str, stdin: bytes = b"", timeout: float = 60) -> Finished:
        """Run one command to its end."""
        return run(
            [*COMMAND, *arguments], environment=self.environment(), stdin=stdin, timeout=timeout
        )


def run(
    command: list[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stdin: bytes = b"",
    timeout: float = 60,
) -> Finished:
    """Run a program to its end."""
    done = subprocess.run(
        command,
        env=environment or clean_environment(),
        cwd=folder,
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def started(
    command: list[str], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs beside the test, and not any longer."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def running_broker(folder: Path, command: list[str] | None = None) -> Iterator[Broker]:
    """A broker with its data in `folder`, stopped at the end."""
    data_dir, log = folder / "data", folder / "broker.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*(command or SERVER), "--listen", "127.0.0.1:0", "--data-dir", str(data_dir)],
            env=clean_environment(),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield Broker(_wait_until_ready(process, log), data_dir)
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < deadline:
        if found := _READY.search(log.read_text()):
            return found[1]
        assert process.poll() is None, log.read_text()
        # There is nothing to wait on but the file.
        time.sleep(0.02)
    raise AssertionError(f"the broker did not start: {log.read_text()}")
