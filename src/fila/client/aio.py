"""The asynchronous client: everything that a program can ask of a broker."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Literal, TypeAlias

from fila.client.admin import AsyncAdmin
from fila.client.connection import DEADLINE_S, SERVICE
from fila.client.consumer import AsyncConsumer, Subscribe
from fila.client.credit import CreditPolicy
from fila.client.items import check_text, encode_item, encode_new, encode_options, milliseconds
from fila.client.leases import Grant, LeaseBook
from fila.client.message import Message, NewMessage
from fila.client.producer import Producer
from fila.client.session import Session
from fila.client.settling import (
    ACK,
    RELEASE,
    UNANSWERED_MAX,
    Action,
    Extend,
    Nack,
    Refusal,
    error_text,
)
from fila.client.subscription import Subscription
from fila.client.worker import AsyncWorker, Handler
from fila.errors import (
    FilaError,
    InvalidArgumentError,
    LeaseNotFoundError,
    OutcomeUnknownError,
)
from fila.wire._pb import service_pb2 as pb

_log = logging.getLogger("fila.client")
_FAILURES_MAX = 1000
_CREDIT_LIMIT = 65_536

Prefetch: TypeAlias = int | Literal["auto"]


class AsyncClient:
    """A broker as seen from an event loop. Opens on first use; `close` it, or use `async with`.

    Settles are pipelined: `ack`, `nack`, `release` and `extend` return when the settle is on its
    way, and one that the broker refuses is raised by a later call, which does its own work before,
    or by `flush`. A message that is dropped unsettled is delivered again when its lease ends.
    """

    def __init__(self, addr: str = "localhost:5555", *, timeout: float = DEADLINE_S) -> None:
        check_text("addr", addr)
        if not addr.strip("\0 "):
            raise InvalidArgumentError("addr is empty; give host:port")
        self.addr = addr
        self.timeout = timeout
        self._session: Session | None = None
        self._closed = False
        # Settles that failed, for a later call; and those that may have, for whoever wants to know.
        self._refusals: deque[FilaError] = deque(maxlen=_FAILURES_MAX)
        self._doubts: deque[FilaError] = deque(maxlen=_FAILURES_MAX)
        self.admin = AsyncAdmin(self._admin_call)

    async def __aenter__(self) -> "AsyncClient":
        self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _open(self) -> Session:
        session = self._session
        if session is not None and session.is_usable():
            return session
        self.check_open()
        # Never opened, or a child of the process that did, or another asyncio.run().
        self._refusals.clear()
        self._doubts.clear()
        session = self._session = Session(self.addr, self._refused)
        return session

    def check_open(self) -> None:
        """Refuse what comes after `close`."""
        if self._closed:
            raise RuntimeError("the client is closed; make a new one")

    def _refused(self, refusal: Refusal) -> None:
        refusal.error.add_note(f"message {refusal.message.id} of queue {refusal.message.queue!r}")
        if isinstance(refusal.error, OutcomeUnknownError):
            self._doubts.append(refusal.error)
        else:
            self._refusals.append(refusal.error)

    async def close(self) -> None:
        """Send what is settled on its way, then end all consumers and the connection."""
        session, self._session = self._session, None
        self._closed = True
        if session is None or not session.is_usable():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.timeout):
                await session.flush()
        await session.close()
        for error in self._refusals:
            _log.warning("fila: a settle failed, and nobody asked: %s", error)

    # Producing.

    async def enqueue(
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
        producer = self._open().producer
        if timeout is None:
            timeout = self.timeout
        if producer.is_full:
            await producer.wait_for_room(timeout)
        return await producer.submit(queue, item, timeout)

    def submit(self, queue: str, item: bytes, timeout: float) -> Awaitable[str]:
        """`enqueue` for an item that `encode_item` made."""
        producer = self._open().producer
        if producer.is_full:
            return self._submit_later(producer, queue, item, timeout)
        return producer.submit(queue, item, timeout)

    async def _submit_later(
        self, producer: Producer, queue: str, item: bytes, timeout: float
    ) -> str:
        await producer.wait_for_room(timeout)
        return await producer.submit(queue, item, timeout)

    async def enqueue_batch(
        self, queue: str, messages: Sequence[NewMessage], *, timeout: float | None = None
    ) -> list[str | FilaError]:
        """Store messages; one id or error for each, in order.

        A thousand, or three megabytes, are one request. More are several: each succeeds or fails
        by itself, and an error of a whole request is given to each of its messages.
        """
        if not messages:
            return []
        items = [encode_new(message) for message in messages]
        return await self.submit_many(queue, items, self.timeout if timeout is None else timeout)

    async def submit_many(
        self, queue: str, items: list[bytes], timeout: float
    ) -> list[str | FilaError]:
        """`enqueue_batch` for items that `encode_new` made."""
        return await self._open().producer.submit_many(queue, items, timeout)

    # Consuming.

    def consume(
        self,
        queues: str | Sequence[str],
        *,
        prefetch: Prefetch = "auto",
        name: str | None = None,
    ) -> AsyncConsumer:
        """Messages of one or more queues, for ever: `async for`. Settle each one.

        `prefetch` is how many unsettled messages may be here. "auto" holds as many as are handled
        in about five milliseconds, so that nobody's message waits long behind others.
        """
        return AsyncConsumer(*self.subscribing(queues, prefetch=prefetch, name=name))

    def subscribing(
        self, queues: str | Sequence[str], *, prefetch: Prefetch, name: str | None
    ) -> tuple[Subscribe, CreditPolicy]:
        """How a consumer of these queues starts, and its credit."""
        policy = CreditPolicy(_fixed_credit(prefetch))
        check_text("name", name or "")

        def subscribe(on_ready: Callable[[], None]) -> tuple[Session, Subscription]:
            session = self._open()
            return session, self._subscribe(
                session, queues, policy, name=name, on_ready=on_ready, on_refusal=self._refused
            )

        return subscribe, policy

    def worker(
        self,
        queues: str | Sequence[str],
        *,
        concurrency: int = 32,
        name: str | None = None,
        grace: float = 30.0,
    ) -> Callable[[Handler], AsyncWorker]:
        """Make a handler a worker that runs up to `concurrency` of it at once.

        A handler that returns acks, one that raises nacks; `Retry` and `Reject` say more. A plain
        function runs in a thread. A stopped worker waits `grace` seconds for what runs.
        """
        credit = _fixed_credit(concurrency)
        check_text("name", name or "")

        def subscribe(
            on_ready: Callable[[], None], on_refusal: Callable[[Refusal], None]
        ) -> Subscription:
            policy = CreditPolicy(credit)
            return self._subscribe(
                self._open(), queues, policy, name=name, on_ready=on_ready, on_refusal=on_refusal
            )

        def decorate(handler: Handler) -> AsyncWorker:
            return AsyncWorker(handler, subscribe, concurrency=concurrency, grace=grace)

        return decorate

    def _subscribe(
        self,
        session: Session,
        queues: str | Sequence[str],
        policy: CreditPolicy,
        *,
        name: str | None,
        on_ready: Callable[[], None],
        on_refusal: Callable[[Refusal], None],
    ) -> Subscription:
        names = [queues] if isinstance(queues, str) else list(dict.fromkeys(queues))
        if not names:
            raise InvalidArgumentError("name at least one queue")
        for each in names:
            check_text("queue", each)
        subscription = Subscription(
            session.connection,
            names,
            policy,
            name=name or "",
            on_ready=on_ready,
            on_refusal=on_refusal,
            on_over=session.subscriptions.discard,
        )
        session.subscriptions.add(subscription)
        return subscription

    async def lease(self, queue: str, max_messages: int = 1, *, wait: float = 0.0) -> list[Message]:
        """Lease up to so many messages, waiting so many seconds for a first one.

        Their leases are not renewed by themselves: `extend` those that take long.
        """
        session = self._open()
        check_text("queue", queue)
        try:
            request = pb.LeaseRequest(
                queue=queue, max_messages=max_messages, wait_ms=milliseconds("wait", wait)
            )
        except ValueError as error:
            raise InvalidArgumentError(f"max_messages is {max_messages}: {error}") from error
        answer = await session.connection.unary(
            SERVICE + "Lease", request.SerializeToString(), timeout=wait + self.timeout
        )
        response = pb.LeaseResponse.FromString(answer)
        return LeaseBook(session.direct).receive(response.messages, time.monotonic())

    # Settling.

    async def ack(self, message: Message) -> None:
        """The message is done."""
        await self._settle(message, ACK)

    async def nack(
        self,
        message: Message,
        error: str = "",
        *,
        delay: float | None = None,
        dead_letter: bool = False,
    ) -> None:
        """The attempt failed: again after the queue's backoff, or `delay`, or never."""
        delay_ms = milliseconds("delay", delay)
        await self._settle(message, Nack(error_text(error), delay_ms, dead_letter))

    async def release(self, message: Message) -> None:
        """The message was not started: back to its place, no attempt counted."""
        await self._settle(message, RELEASE)

    async def extend(self, message: Message, seconds: float | None = None) -> None:
        """The lease ends so many seconds from now; by default after the queue's timeout."""
        await self._settle(message, Extend(milliseconds("seconds", seconds) or 0))

    async def _settle(self, message: Message, action: Action) -> None:
        if message.grant is None:
            raise LeaseNotFoundError(message.queue)
        if message.grant.holder.unsettled >= UNANSWERED_MAX:
            await self.make_room()
        self._send(message, message.grant, action)
        # Last: this message must not suffer for an earlier one.
        if self._refusals:
            self.raise_refusal()

    def raise_refusal(self) -> None:
        """Raise a settle's failure that nobody was told of yet."""
        try:
            refusal = self._refusals.popleft()
        except IndexError:
            # Another thread was told.
            return
        raise refusal

    async def make_room(self) -> None:
        """Wait until settles may be added again."""
        await self._flush(self._open(), self.timeout)

    def settle_late(self, message: Message, action: Action) -> None:
        """Put a settle on its way for a caller that has gone on: its failure is told later."""
        grant = message.grant
        if grant is None:
            self._refused(Refusal(message, action, LeaseNotFoundError(message.queue)))
        else:
            self._send(message, grant, action)

    def _send(self, message: Message, grant: Grant, action: Action) -> None:
        session = self._open()
        holder = grant.holder
        if isinstance(holder, Subscription) and holder in session.subscriptions:
            holder.settle(message, action)
            return
        # Leased without a stream, or its stream is gone, or it belonged to the parent process.
        session.direct.settle(message, action)

    async def flush(self, *, timeout: float | None = None) -> None:
        """Return when every settle is answered; raise the first that was refused.

        A settle whose answer was lost, and whose lease is gone, is `OutcomeUnknownError`.
        """
        await self._flush(self._open(), self.timeout if timeout is None else timeout)
        failed = [*self._refusals, *self._doubts]
        self._refusals.clear()
        self._doubts.clear()
        if failed:
            if len(failed) > 1:
                failed[0].add_note(f"{len(failed) - 1} more settles failed")
            raise failed[0]

    async def _flush(self, session: Session, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await session.flush()
        except TimeoutError as error:
            raise OutcomeUnknownError(
                f"{session.unsettled()} settles were not confirmed within {timeout} s"
            ) from error

    async def _admin_call(
        self, path: str, request: bytes, *, repeatable: bool, patient: bool = False
    ) -> bytes:
        timeout = None if patient else self.timeout
        return await self._open().connection.unary(
            path, request, timeout=timeout, repeatable=repeatable
        )


def _fixed_credit(prefetch: Prefetch) -> int | None:
    if prefetch == "auto":
        return None
    if not isinstance(prefetch, int):
        raise TypeError(f"a credit must be int, not {type(prefetch).__name__}")
    if not 1 <= prefetch <= _CREDIT_LIMIT:
        raise InvalidArgumentError(f"{prefetch!r} is no credit; give 1 to {_CREDIT_LIMIT}")
    return prefetch
