"""Enqueue calls on their way: the batcher's decisions carried out on the event loop."""

import asyncio
import contextlib
import copy
import os
import random
import time
from collections import deque
from typing import Any, TypeAlias

from fila.client.answers import outcomes
from fila.client.backoff import wait_before
from fila.client.batching import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, Batch, Batcher, Expired
from fila.client.connection import SERVICE, Connection
from fila.client.failures import is_worth_repeating, may_have_happened
from fila.errors import (
    DeadlineError,
    FilaError,
    OutcomeUnknownError,
    UnreachableError,
)

OUTSTANDING_MAX = 20_000
OUTSTANDING_BYTES_MAX = 64 * 1024 * 1024
_ATTEMPT_S = 2.0
_SWEEP_S = 0.05

Outcomes: TypeAlias = list[str | FilaError]
# The answer of one item, or of all items of a whole batch.
Ticket: TypeAlias = asyncio.Future[Any]


class Producer:
    """Sends what is enqueued on one connection, as one producer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._batcher: Batcher[Ticket] = Batcher(os.urandom(16))
        self._sends: set[asyncio.Task[None]] = set()
        self._room: deque[asyncio.Future[None]] = deque()
        self._pump_planned = False
        self._sweep: asyncio.TimerHandle | None = None
        self._repeat: asyncio.TimerHandle | None = None

    @property
    def is_full(self) -> bool:
        """Whether the next call must wait for room."""
        return bool(self._room) or self._is_crowded

    async def wait_for_room(self, timeout: float) -> None:
        """Return when another message fits."""
        ready = self._loop.create_future()
        self._room.append(ready)
        try:
            async with asyncio.timeout(timeout):
                await ready
        except TimeoutError as error:
            raise DeadlineError(
                f"{self._batcher.outstanding} enqueues wait for the broker at "
                f"{self._connection.address} already; this one was not sent"
            ) from error
        finally:
            with contextlib.suppress(ValueError):
                self._room.remove(ready)

    def submit(self, queue: str, item: bytes, timeout: float) -> asyncio.Future[str]:
        """Send one message with others; the future is its id."""
        answer: asyncio.Future[str] = self._loop.create_future()
        self._batcher.add(queue, item, answer, time.monotonic() + timeout)
        self._plan()
        return answer

    async def submit_many(self, queue: str, items: list[bytes], timeout: float) -> Outcomes:
        """Send messages as batches of their own; one id or error for each."""
        deadline = time.monotonic() + timeout
        answers: list[asyncio.Future[Outcomes]] = []
        sizes: list[int] = []
        try:
            for part in _parts(items):
                answers.append(await self._submit_part(queue, part, deadline))
                sizes.append(len(part))
            return await (answers[0] if len(answers) == 1 else _joined(answers, sizes))
        finally:
            # Nobody asks any more, if the caller has gone: an error must not be missed by anybody.
            for answer in answers:
                answer.cancel()

    async def _submit_part(
        self, queue: str, part: list[bytes], deadline: float
    ) -> asyncio.Future[Outcomes]:
        """One request; that there was no room for it in time is its own error, not the others'."""
        answer: asyncio.Future[Outcomes] = self._loop.create_future()
        try:
            if self.is_full:
                await self.wait_for_room(max(0.0, deadline - time.monotonic()))
        except FilaError as error:
            answer.set_exception(error)
        else:
            self._batcher.add_whole(queue, part, answer, deadline)
            self._plan()
        return answer

    def _plan(self) -> None:
        if not self._pump_planned:
            # At the end of the loop's turn, when everything that is ready has been submitted.
            self._pump_planned = True
            self._loop.call_soon(self._pump)
            if self._sweep is None:
                self._sweep = self._loop.call_later(_SWEEP_S, self._expire)

    def _pump(self) -> None:
        self._pump_planned = False
        now = time.monotonic()
        while (batch := self._batcher.take(now)) is not None:
            send = self._loop.create_task(self._send(batch))
            self._sends.add(send)
            send.add_done_callback(self._sends.discard)
        self._plan_repeat(now)
        while self._room and not self._is_crowded:
            ready = self._room.popleft()
            if not ready.done():
                ready.set_result(None)
                break

    @property
    def _is_crowded(self) -> bool:
        batcher = self._batcher
        return (
            batcher.outstanding >= OUTSTANDING_MAX
            or batcher.outstanding_bytes >= OUTSTANDING_BYTES_MAX
        )

    def _plan_repeat(self, now: float) -> None:
        at = self._batcher.next_repeat()
        if self._repeat is not None:
            self._repeat.cancel()
            self._repeat = None
        if at is not None:
            self._repeat = self._loop.call_later(max(at - now, 0.001), self._pump)

    async def _send(self, batch: Batch[Ticket]) -> None:
        batcher = self._batcher
        left = batch.last_deadline - time.monotonic()
        try:
            answer = await self._connection.unary(
                SERVICE + "EnqueueBatch",
                batcher.request(batch),
                timeout=max(0.01, min(left, _ATTEMPT_S)),
            )
        except FilaError as error:
            self._failed(batch, error)
        else:
            batcher.answered(batch)
            _deliver(batch, outcomes(answer))
        self._pump()

    def _failed(self, batch: Batch[Ticket], error: FilaError) -> None:
        if is_worth_repeating(error):
            until = time.monotonic() + wait_before(batch.tries - 1, random.random())
            maybe_applied = may_have_happened(error)
            self._batcher.held(batch, error, until=until, maybe_applied=maybe_applied)
            return
        self._batcher.answered(batch)
        for ticket in batch.tickets:
            _fail(ticket, error)

    def _expire(self) -> None:
        self._sweep = None
        for expired in self._batcher.expire(time.monotonic()):
            _fail(expired.ticket, self._late(expired))
        if self._batcher.outstanding:
            self._sweep = self._loop.call_later(_SWEEP_S, self._expire)
        if self._room:
            self._pump()

    def _late(self, expired: Expired[Ticket]) -> FilaError:
        if expired.maybe_applied:
            error: FilaError = OutcomeUnknownError(
                f"the broker at {self._connection.address} did not confirm in time: the message "
                "may or may not be stored"
            )
        else:
            error = expired.error or UnreachableError(
                f"the broker at {self._connection.address} took nothing in time; nothing was stored"
            )
        error.__cause__ = expired.error if error is not expired.error else error.__cause__
        return error

    def close(self) -> None:
        """Give up what is on its way."""
        for handle in (self._sweep, self._repeat):
            if handle is not None:
                handle.cancel()
        for expired in self._batcher.abandon_all():
            _fail(expired.ticket, self._late(expired))
        for send in self._sends:
            send.cancel()


def _parts(items: list[bytes]) -> list[list[bytes]]:
    """The items in order, in parts that fit a batch."""
    if len(items) <= BATCH_MESSAGES_MAX and sum(map(len, items)) <= BATCH_BYTES_MAX:
        return [items]
    parts: list[list[bytes]] = []
    part: list[bytes] = []
    size = 0
    for item in items:
        if part and (len(part) >= BATCH_MESSAGES_MAX or size + len(item) > BATCH_BYTES_MAX):
            parts.append(part)
            part, size = [], 0
        part.append(item)
        size += len(item)
    parts.append(part)
    return parts


async def _joined(answers: list[asyncio.Future[Outcomes]], sizes: list[int]) -> Outcomes:
    """One result for each item; a part that failed gives its error to each of its items."""
    results: Outcomes = []
    for answer, size in zip(answers, sizes, strict=True):
        try:
            results += await answer
        except FilaError as error:
            results += [error] * size
    return results


def _deliver(batch: Batch[Ticket], results: Outcomes) -> None:
    if batch.whole:
        ticket = batch.tickets[0]
        if ticket is not None and not ticket.done():
            ticket.set_result(results)
        return
    for ticket, result in zip(batch.tickets, results, strict=True):
        if ticket is None or ticket.done():
            continue
        if type(result) is str:
            ticket.set_result(result)
        else:
            ticket.set_exception(result)  # type: ignore[arg-type]


def _fail(ticket: Ticket | None, error: FilaError) -> None:
    """Each caller gets an exception of its own: they gather tracebacks."""
    if ticket is None or ticket.done():
        return
    own = copy.copy(error)
    own.__cause__ = error.__cause__
    ticket.set_exception(own)
