"""The background event loop of this process: how threads reach the asynchronous client.

One daemon thread serves all synchronous clients. It is started when it is first needed, and again
in a child process. What several threads ask for at the same time reaches the loop in one wake-up.
"""

import asyncio
import atexit
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from fila.client import library

P = ParamSpec("P")
T = TypeVar("T")
_STOP_S = 2.0


class Portal:
    """The way into one loop in one thread."""

    def __init__(self) -> None:
        self.generation = library.generation()
        self._inbox: deque[Callable[[], object]] = deque()
        self._awake = False
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_handle_exception)
        self._thread = threading.Thread(target=self._run, name="fila-client", daemon=True)
        self._thread.start()
        library.leave_to_the_parent(self)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while self._runs():
                pass
        finally:
            asyncio.set_event_loop(None)

    def _runs(self) -> bool:
        """Run the loop; whether it must go on."""
        try:
            self._loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            # No signal comes to this thread: a handler raised it, and others need the loop.
            return True
        return False

    def post(self, job: Callable[[], object]) -> None:
        """Run a job on the loop, soon; jobs run in the order in which they were posted."""
        self._inbox.append(job)
        if not self._awake:
            self._awake = True
            self._loop.call_soon_threadsafe(self._drain)

    @property
    def backlog(self) -> int:
        """Jobs that were posted and did not run yet."""
        return len(self._inbox)

    def _drain(self) -> None:
        # Before the look at the inbox: a job posted after the look wakes the loop again.
        self._awake = False
        inbox = self._inbox
        for _ in range(len(inbox)):
            try:
                inbox.popleft()()
            except Exception as error:  # noqa: BLE001 - those behind it belong to other threads
                context = {"message": "a job of a fila client failed", "exception": error}
                self._loop.call_exception_handler(context)

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await something on the loop and return its result here."""
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a synchronous call on the client's own thread would wait for itself; an async "
                "handler needs fila.AsyncClient"
            )
        waiter: _Waiter[T] = _Waiter(partial(function, *args, **kwargs))
        self.post(waiter.begin)
        try:
            return waiter.wait()
        except (KeyboardInterrupt, SystemExit):
            # Only the waiting thread was interrupted: the call must not go on without it.
            self.post(waiter.cancel)
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S)


class _Waiter(Generic[T]):
    """One call: a thread waits, the loop works. Lighter than a future that knows both sides."""

    __slots__ = ("_begin", "_done", "_future")

    def __init__(self, begin: Callable[[], Awaitable[T]]) -> None:
        self._begin = begin
        self._future: asyncio.Future[T] | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def begin(self) -> None:
        """Start the call; on the loop."""
        try:
            self._future = asyncio.ensure_future(self._begin())
        except Exception as error:  # noqa: BLE001 - it belongs to the thread that asked
            self._future = asyncio.get_running_loop().create_future()
            self._future.set_exception(error)
        self._future.add_done_callback(self._finish)

    def _finish(self, _future: asyncio.Future[T]) -> None:
        self._done.release()

    def wait(self) -> T:
        """The result; in the thread that asked."""
        with self._done:
            assert self._future is not None
            return self._future.result()

    def cancel(self) -> None:
        """Nobody waits any more; on the loop."""
        if self._future is not None:
            self._future.cancel()


def _handle_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if "PollerCompletionQueue" in repr(context.get("handle")):
        # All loops of a process read gRPC's one wake-up pipe: a slower one finds it empty, and an
        # event may belong to a loop that has ended. Neither matters to us.
        return
    loop.default_exception_handler(context)


_portal: Portal | None = None
_starting = threading.Lock()


def portal() -> Portal:
    """The portal of this process."""
    global _portal, _starting  # noqa: PLW0603 - there is one for each process
    current = _portal
    if current is not None and current.generation == library.generation():
        return current
    if current is not None:
        # Nobody in this process can hold the lock that the parent had.
        _portal, _starting = None, threading.Lock()
    with _starting:
        if _portal is None:
            _portal = Portal()
            atexit.register(_stop_at_exit, _portal)
        return _portal


def _stop_at_exit(started: Portal) -> None:
    if started.generation == library.generation():
        started.stop()
