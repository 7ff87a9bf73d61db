"""The demo's own broker: a real process on a free port, its data in a folder that goes away."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

_START_SECONDS_MAX = 30.0
_STOP_SECONDS_MAX = 10.0
_LOOK_SECONDS = 0.02

_CONFIG = """
[server]
listen_addr = "127.0.0.1:0"
data_dir = "{data}"

[logging]
format = "json"
"""


@contextmanager
def broker() -> Iterator[str]:
    """Start a broker, yield its address, stop it and remove its data."""
    with tempfile.TemporaryDirectory(prefix="fila-demo-") as name:
        folder = Path(name)
        config, log = folder / "fila.toml", folder / "log"
        config.write_text(_CONFIG.format(data=folder / "data"))
        process = _start(config, log)
        try:
            yield _address(process, log)
        finally:
            _stop(process)


def _start(config: Path, log: Path) -> subprocess.Popen[bytes]:
    # Settings of a broker that the user runs are not the demo's.
    environment = {key: text for key, text in os.environ.items() if not key.startswith("FILA_")}
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "fila.server.main", "--config", str(config)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C is for the demo, which then stops the broker in good order.
            start_new_session=True,
        )


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the broker says where it listens."""
    deadline = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        for line in log.read_text(errors="replace").splitlines():
            if address := _announced(line):
                return address
        if ended:
            raise click.ClickException(f"the demo's broker did not start: {_last_words(log)}")
        time.sleep(_LOOK_SECONDS)
    raise click.ClickException("the demo's broker did not start in 30 s")


def _announced(line: str) -> str | None:
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    address = facts.get("listen_addr") if isinstance(facts, dict) else None
    return address if isinstance(address, str) else None


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("fila-server: ") if lines else "it said nothing"


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
