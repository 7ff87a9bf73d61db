"""The worker: runs a handler for each message, so many at once, and settles by how it ends."""

import asyncio
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from fila.client.items import milliseconds
from fila.client.message import Message, Reject, Retry
from fila.client.settling import ACK, ERROR_CHARS_MAX, Action, Nack, Refusal
from fila.client.subscription import Subscription
from fila.errors import LeaseNotFoundError, OutcomeUnknownError

_log = logging.getLogger("fila.worker")
_FLUSH_S = 5.0

Handler: TypeAlias = Callable[[Message], Awaitable[object] | object]
Subscribe: TypeAlias = Callable[[Callable[[], None], Callable[[Refusal], None]], Subscription]


class AsyncWorker:
    """A handler bound to queues: `run` it, `stop` it. Calling it calls the handler."""

    def __init__(
        self, handler: Handler, subscribe: Subscribe, *, concurrency: int, grace: float
    ) -> None:
        functools.update_wrapper(self, handler)
        self._handler = handler
        self._subscribe = subscribe
        self._concurrency = concurrency
        self._grace = grace
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004 - the method itself is inspected
        )
        self._subscription: Subscription | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._stop: asyncio.Event | None = None

    def __call__(self, message: Message) -> Awaitable[object] | object:
        """Call the handler itself."""
        return self._handler(message)

    async def run(self) -> None:
        """Handle messages until stopped; then finish what runs."""
        if self._stop is not None:
            raise RuntimeError("this worker is running already")
        self._stop = asyncio.Event()
        if not self._is_async:
            self._threads = ThreadPoolExecutor(self._concurrency, "fila-worker")
        subscription = self._subscription = self._subscribe(self._start_some, self._refused)
        try:
            self._start_some()
            await self._stop.wait()
            await self._finish(subscription)
        finally:
            for task in self._running:
                task.cancel()
            await subscription.close()
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
            self._subscription = self._stop = None
        if subscription.failure is not None:
            raise subscription.failure

    async def stop(self) -> None:
        """Ask for no more messages; `run` returns when those that run are done."""
        self.request_stop()

    def request_stop(self) -> None:
        """`stop` for callers that can't await."""
        if self._stop is not None:
            self._stop.set()

    async def _finish(self, subscription: Subscription) -> None:
        subscription.stop()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=self._grace)
            if late:
                _log.warning("fila: %d handlers did not end within the grace period", len(late))
        try:
            async with asyncio.timeout(_FLUSH_S):
                await subscription.flush()
        except TimeoutError:
            _log.warning("fila: %d settles were not confirmed", subscription.unsettled)

    def _start_some(self) -> None:
        subscription = self._subscription
        if subscription is None or self._stop is None:
            return
        if subscription.is_over:
            self._stop.set()
            return
        # After a reconnect there may be more to do than before: what runs goes on.
        while subscription.buffer and len(self._running) < self._concurrency:
            message = subscription.buffer.popleft()
            task = asyncio.create_task(self._handle(subscription, message))
            self._running.add(task)
            task.add_done_callback(self._handled)

    def _handled(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if self._stop is not None and not self._stop.is_set():
            self._start_some()

    async def _handle(self, subscription: Subscription, message: Message) -> None:
        action = await self._outcome(message)
        if message.grant is None:
            self._lost_lease(message)
        elif not subscription.is_over:
            subscription.settle(message, action)

    def _lost_lease(self, message: Message) -> None:
        _log.warning(
            "fila: message %s was handled, but its lease was lost meanwhile: it is delivered again",
            message.id,
        )

    async def _outcome(self, message: Message) -> Action:
        try:
            if self._threads is None:
                await self._handler(message)  # type: ignore[misc]
            else:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._threads, self._handler, message)
        except Retry as retry:
            return Nack(error=_bounded(retry.reason), delay_ms=milliseconds("after", retry.after))
        except Reject as reject:
            return Nack(error=_bounded(reject.reason), dead_letter=True)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises
            _log.warning("fila: the handler failed on message %s", message.id, exc_info=error)
            return Nack(error=_bounded(f"{type(error).__name__}: {error}"))
        return ACK

    def _refused(self, refusal: Refusal) -> None:
        if isinstance(refusal.error, LeaseNotFoundError):
            self._lost_lease(refusal.message)
        elif isinstance(refusal.error, OutcomeUnknownError):
            _log.info("fila: %s", refusal.error)
        else:
            _log.error("fila: message %s: %s", refusal.message.id, refusal.error)


def _bounded(text: str) -> str:
    return text if len(text) <= ERROR_CHARS_MAX else text[: ERROR_CHARS_MAX - 1] + "…"
