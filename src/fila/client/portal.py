"""The background event loop of this process: how threads reach the asynchronous client.

One daemon thread serves all synchronous clients. It is started when it is first needed, and again
in a child process. What several threads ask for at the same time reaches the loop in one wake-up.
"""

import asyncio
import atexit
import concurrent.futures
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

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
            self._loop.run_forever()
        finally:
            asyncio.set_event_loop(None)

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
            inbox.popleft()()

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await something on the loop and return its result here."""
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a synchronous call on the client's own thread would wait for itself; an async "
                "handler needs fila.AsyncClient"
            )
        done: concurrent.futures.Future[T] = concurrent.futures.Future()
        started: list[asyncio.Future[T]] = []
        self.post(partial(_begin, done, started, partial(function, *args, **kwargs)))
        try:
            return done.result()
        except (KeyboardInterrupt, SystemExit):
            # Only the waiting thread was interrupted: the call must not go on without it.
            self.post(lambda: [future.cancel() for future in started])
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S)


def _begin(
    done: concurrent.futures.Future[T],
    started: list[asyncio.Future[T]],
    begin: Callable[[], Awaitable[T]],
) -> None:
    try:
        future = asyncio.ensure_future(begin())
    except Exception as error:  # noqa: BLE001 - it belongs to the thread that asked
        done.set_exception(error)
        return
    started.append(future)
    future.add_done_callback(partial(_finish, done))


def _finish(done: concurrent.futures.Future[T], future: asyncio.Future[T]) -> None:
    if done.done():
        return
    if future.cancelled():
        done.set_exception(concurrent.futures.CancelledError())
    elif (error := future.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(future.result())


def _handle_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if isinstance(context.get("exception"), BlockingIOError):
        # Two loops of a process read gRPC's one wake-up pipe; the slower finds it empty.
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
