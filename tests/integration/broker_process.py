"""A real broker: the program as it is installed, in a process of its own, on loopback."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

_LISTENING = re.compile(r"listening on (\S+?),? ")
_STOP_SECONDS_MAX = 30


class BrokerProcess:
    """Started at once; ended on leaving the `with` block, however that happens."""

    def __init__(
        self,
        data_dir: Path,
        *,
        listen: str = "127.0.0.1:0",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = data_dir
        self._log = data_dir.with_name(data_dir.name + ".log").open("ab")
        settings = {key: text for key, text in os.environ.items() if not key.startswith("FILA_")}
        command = [sys.executable, "-m", "fila.server.main"]
        self._process = subprocess.Popen(
            [*command, "--listen", listen, "--data-dir", str(data_dir)],
            env={**settings, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.address = self._wait_until_listening()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def log_text(self) -> str:
        return Path(str(self._log.name)).read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> int:
        """SIGTERM; the exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for an end that is already on its way; the exit status."""
        return self._process.wait(_STOP_SECONDS_MAX)

    def __enter__(self) -> "BrokerProcess":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_running:
            self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def _wait_until_listening(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = _LISTENING.search(line)
            if found:
                return found.group(1)
        self._process.wait()
        raise AssertionError(f"the broker did not start: {self.log_text[-2000:]}")
