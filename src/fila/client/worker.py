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
from fila.client.settling import ACK, Action, Nack, Refusal, error_text
from fila.client.subscription import Subscription
from fila.errors import FilaError, LeaseNotFoundError, OutcomeUnknownError

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
        # Whether the first run was asked to stop before it began.
        self._stop_early: bool | None = False

    def __call__(self, message: Message) -> Awaitable[object] | object:
        """Call the handler itself."""
        return self._handler(message)

    async def run(self) -> None:
        """Handle messages until stopped; then finish what runs."""
        if self._stop is not None:
            raise RuntimeError("this worker is running already")
        self._stop = asyncio.Event()
        if self._stop_early:
            self._stop.set()
        self._stop_early = None
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
        """Ask for no more messages; `run` returns when those that run are done.

        Before the first `run` it makes that one return at once.
        """
        self.request_stop()

    def request_stop(self) -> None:
        """`stop` for callers that can't await."""
        if self._stop is not None:
            self._stop.set()
        elif self._stop_early is not None:
            self._stop_early = True

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
        failure = await self._failure(message)
        action = ACK if failure is None else _verdict(message, failure)
        if message.grant is None:
            self._lost_lease(message)
        elif not subscription.is_over:
            subscription.settle(message, action)

    def _lost_lease(self, message: Message) -> None:
        _log.warning(
            "fila: message %s was handled, but its lease was lost meanwhile: it is delivered again",
            message.id,
        )

    async def _failure(self, message: Message) -> BaseException | None:
        """Run the handler to its end; what it raised."""
        task = asyncio.current_task()
        try:
            if self._threads is None:
                result = self._handler(message)
            else:
                loop = asyncio.get_running_loop()
                call = functools.partial(_call, self._handler, message)
                result, failure = await loop.run_in_executor(self._threads, call)
                if failure is not None:
                    return failure
            # A plain function may return what is to be awaited: a wrapper around an async one.
            if inspect.isawaitable(result):
                await result
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except asyncio.CancelledError as error:
            if task is not None and task.cancelling():
                raise
            # Something that the handler waited for was cancelled.
            return error
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises
            return error
        return None

    def _refused(self, refusal: Refusal) -> None:
        if isinstance(refusal.error, LeaseNotFoundError):
            self._lost_lease(refusal.message)
        elif isinstance(refusal.error, OutcomeUnknownError):
            _log.info("fila: %s", refusal.error)
        else:
            _log.error("fila: message %s: %s", refusal.message.id, refusal.error)


def _call(
    handler: Handler, message: Message
) -> tuple[Awaitable[object] | object, BaseException | None]:
    """A call whose failure is a value: not every exception can cross into a future."""
    try:
        return handler(message), None
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises
        return None, error


def _verdict(message: Message, failure: BaseException) -> Action:
    """What becomes of a message whose handler raised."""
    if isinstance(failure, Reject):
        return Nack(error=error_text(str(failure.reason)), dead_letter=True)
    if isinstance(failure, Retry):
        try:
            delay_ms = milliseconds("after", failure.after)
        except (FilaError, TypeError) as error:
            failure = error
        else:
            return Nack(error=error_text(str(failure.reason)), delay_ms=delay_ms)
    _log.warning("fila: the handler failed on message %s", message.id, exc_info=failure)
    return Nack(error=error_text(_described(failure)))


def _described(failure: BaseException) -> str:
    kind = type(failure).__name__
    try:
        return f"{kind}: {failure}"
    except Exception:  # noqa: BLE001 - its own text fails
        return kind
