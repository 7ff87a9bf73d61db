"""The synchronous client: the asynchronous one, driven on the background loop."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from types import FrameType, TracebackType

from fila.client.aio import AsyncClient, Prefetch
from fila.client.connection import DEADLINE_S
from fila.client.items import encode_item, encode_new, encode_options, milliseconds
from fila.client.message import Message, NewMessage
from fila.client.portal import Portal, portal
from fila.client.settling import (
    ACK,
    RELEASE,
    UNANSWERED_MAX,
    Action,
    Extend,
    Nack,
    error_text,
)
from fila.client.sync_admin import Admin
from fila.client.sync_consumer import Consumer
from fila.client.worker import AsyncWorker, Handler
from fila.errors import FilaError, LeaseNotFoundError


class Client:
    """A broker as seen from any number of threads. Opens on first use; `close` it, or use `with`.

    Settles are pipelined: `ack`, `nack`, `release` and `extend` return when the settle is on its
    way, and one that the broker refuses is raised by a later call, which does its own work before,
    or by `flush`. A message that is dropped unsettled is delivered again when its lease ends.

    A client that a process inherits from its parent opens a connection of its own.
    """

    def __init__(self, addr: str = "localhost:5555", *, timeout: float = DEADLINE_S) -> None:
        self.addr = addr
        self.timeout = timeout
        self._client = AsyncClient(addr, timeout=timeout)
        self.admin = Admin(self._client.admin)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Send what is settled on its way, then end all consumers and the connection."""
        portal().call(self._client.close)

    def enqueue(
        self,
        queue: str,
        payload: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        fairness_key: str | None = None,
        weight: int | None = None,
        throttle_keys: Sequence[str] | None = None,
        priority: int | None = None,
        cost: int | None = None,
        delay: float | None = None,
        deliver_at: datetime | None = None,
        ttl: float | None = None,
        timeout: float | None = None,
    ) -> str:
        """Store a message and return its id: it is on the broker's disk.

        Calls that run at the same time travel together. A call is repeated until it is answered
        or `timeout` seconds are over, and a repeat stores nothing twice.
        """
        options = encode_options(
            fairness_key=fairness_key,
            weight=weight,
            throttle_keys=throttle_keys,
            priority=priority,
            cost=cost,
            delay=delay,
            deliver_at=deliver_at,
            ttl=ttl,
        )
        item = encode_item(payload, headers, options)
        deadline = self.timeout if timeout is None else timeout
        return portal().call(self._client.submit, queue, item, deadline)

    def enqueue_batch(
        self, queue: str, messages: Sequence[NewMessage], *, timeout: float | None = None
    ) -> list[str | FilaError]:
        """Store messages; one id or error for each, in order.

        A thousand, or three megabytes, are one request. More are several: each succeeds or fails
        by itself, and an error of a whole request is given to each of its messages.
        """
        if not messages:
            return []
        items = [encode_new(message) for message in messages]
        deadline = self.timeout if timeout is None else timeout
        return portal().call(self._client.submit_many, queue, items, deadline)

    def consume(
        self,
        queues: str | Sequence[str],
        *,
        prefetch: Prefetch = "auto",
        name: str | None = None,
    ) -> Consumer:
        """Messages of one or more queues, for ever: `for`. Settle each one.

        `prefetch` is how many unsettled messages may be here. "auto" holds as many as are handled
        in about five milliseconds, so that nobody's message waits long behind others.
        """
        return Consumer(*self._client.subscribing(queues, prefetch=prefetch, name=name))

    def worker(
        self,
        queues: str | Sequence[str],
        *,
        concurrency: int = 32,
        name: str | None = None,
        grace: float = 30.0,
    ) -> "Callable[[Handler], Worker]":
        """Make a handler a worker that runs up to `concurrency` of it at once.

        A handler that returns acks, one that raises nacks; `Retry` and `Reject` say more. A plain
        function runs in a thread, an async one on the client's own loop: it must not block. A
        stopped worker waits `grace` seconds for what runs.
        """
        bind = self._client.worker(queues, concurrency=concurrency, name=name, grace=grace)
        return lambda handler: Worker(bind(handler))

    def lease(self, queue: str, max_messages: int = 1, *, wait: float = 0.0) -> list[Message]:
        """Lease up to so many messages, waiting so many seconds for a first one.

        Their leases are not renewed by themselves: `extend` those that take long.
        """
        return portal().call(self._client.lease, queue, max_messages, wait=wait)

    def ack(self, message: Message) -> None:
        """The message is done."""
        self._settle(message, ACK)

    def nack(
        self,
        message: Message,
        error: str = "",
        *,
        delay: float | None = None,
        dead_letter: bool = False,
    ) -> None:
        """The attempt failed: again after the queue's backoff, or `delay`, or never."""
        delay_ms = milliseconds("delay", delay)
        self._settle(message, Nack(error_text(error), delay_ms, dead_letter))

    def release(self, message: Message) -> None:
        """The message was not started: back to its place, no attempt counted."""
        self._settle(message, RELEASE)

    def extend(self, message: Message, seconds: float | None = None) -> None:
        """The lease ends so many seconds from now; by default after the queue's timeout."""
        self._settle(message, Extend(milliseconds("seconds", seconds) or 0))

    def _settle(self, message: Message, action: Action) -> None:
        if message.grant is None:
            raise LeaseNotFoundError(message.queue)
        self._client.check_open()
        way = portal()
        if message.grant.holder.unsettled + way.backlog >= UNANSWERED_MAX:
            way.call(self._client.make_room)
        way.post(partial(self._client.settle_late, message, action))
        # Last: this message must not suffer for an earlier one.
        self._client.raise_refusal()

    def flush(self, *, timeout: float | None = None) -> None:
        """Return when every settle is answered; raise the first that was refused.

        A settle whose answer was lost, and whose lease is gone, is `OutcomeUnknownError`.
        """
        portal().call(self._client.flush, timeout=timeout)


class Worker:
    """A handler bound to queues: `run` it, `stop` it. Calling it calls the handler."""

    def __init__(self, worker: AsyncWorker) -> None:
        self._worker = worker
        self.__doc__ = worker.__doc__ or self.__doc__
        self.__name__ = getattr(worker, "__name__", "worker")

    def __call__(self, message: Message) -> object:
        """Call the handler itself."""
        return self._worker(message)

    def run(self) -> None:
        """Handle messages until stopped; then finish what runs.

        In the main thread SIGTERM and SIGINT stop it; a second SIGINT interrupts.
        """
        way = portal()
        with _stopping_on_signals(way, self._worker):
            way.call(self._worker.run)

    def stop(self) -> None:
        """Ask for no more messages; `run` returns when those that run are done.

        Before the first `run` it makes that one return at once.
        """
        portal().post(self._worker.request_stop)


@contextmanager
def _stopping_on_signals(way: Portal, worker: AsyncWorker) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and number in seen:
            raise KeyboardInterrupt
        seen.append(number)
        way.post(worker.request_stop)

    previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
