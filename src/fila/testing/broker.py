"""A broker in a thread of the test's own process: the real one, on a free port of loopback."""

import asyncio
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType

from fila.server.app import App
from fila.server.clock import Clock, SystemClock
from fila.server.config import Config
from fila.server.sources import load
from fila.testing.clock import ManualClock

_START_SECONDS_MAX = 30.0
_STOP_SECONDS_MAX = 30.0
_SETTINGS = {
    "server.listen_addr": "127.0.0.1:0",
    # A test that ends does not care for what is still in flight.
    "server.shutdown_timeout_ms": "1000",
    # Durability is not what is tested, and the disk under a test may be slow, or nearly full.
    "storage.fsync": "never",
    "storage.min_free_bytes": "0",
}


def broker(
    *,
    clock: ManualClock | None = None,
    settings: Mapping[str, object] | None = None,
    data_dir: Path | None = None,
) -> "Broker":
    """A broker for a `with` or `async with` block.

    Without a `clock` it lives in real time. `settings` are those of the configuration file, such
    as `{"scheduler.quantum": 10}`. A `data_dir` outlives the broker.
    """
    return Broker(clock, settings or {}, data_dir)


class Broker:
    """Starts on entering the block, stops on leaving it."""

    def __init__(
        self, clock: ManualClock | None, settings: Mapping[str, object], data_dir: Path | None
    ) -> None:
        # Where clients connect to.
        self.address = ""
        self._clock = clock
        self._settings = settings
        self._data_dir = data_dir
        self._started: Future[App] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="fila-broker", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave: asyncio.Event | None = None

    def advance(self, seconds: float) -> None:
        """Let time pass for the broker; it then does what has fallen due."""
        if self._clock is None:
            raise ValueError("this broker lives in real time; give it a ManualClock")
        self._clock.advance(seconds)
        app = self._started.result(_START_SECONDS_MAX)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(app.runner.wake)

    def __enter__(self) -> "Broker":
        """Start, and wait until it answers."""
        self._thread.start()
        self.address = self._started.result(_START_SECONDS_MAX).address
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, and raise what went wrong inside."""
        assert self._loop is not None
        assert self._leave is not None
        self._loop.call_soon_threadsafe(self._leave.set)
        self._ended.result(_STOP_SECONDS_MAX)
        self._thread.join(_STOP_SECONDS_MAX)

    async def __aenter__(self) -> "Broker":
        """Start, and wait until it answers."""
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, and raise what went wrong inside."""
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def _run(self) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="fila-test-") as folder:
                asyncio.run(self._serve(self._data_dir or Path(folder)))
        except BaseException as error:  # noqa: BLE001 - supervision: the test hears of it
            future = self._ended if self._started.done() else self._started
            future.set_exception(error)
        else:
            self._ended.set_result(None)

    async def _serve(self, data_dir: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._leave = asyncio.Event()
        failures: list[BaseException] = []

        def fail(error: BaseException) -> None:
            failures.append(error)
            assert self._leave is not None
            self._leave.set()

        clock: Clock = self._clock or SystemClock()
        app = await App.start(self._config(data_dir), on_failure=fail, clock=clock)
        self._started.set_result(app)
        await self._leave.wait()
        await app.stop()
        if failures:
            raise failures[0]

    def _config(self, data_dir: Path) -> Config:
        given = {name: str(value) for name, value in self._settings.items()}
        flags: dict[tuple[str, str], str] = {}
        for name, value in {**_SETTINGS, "server.data_dir": str(data_dir), **given}.items():
            section, _, key = name.partition(".")
            flags[section, key] = value
        # Neither the environment nor a file in the current directory is the test's business.
        return load(None, {}, flags, search=()).config
