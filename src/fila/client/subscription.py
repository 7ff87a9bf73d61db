"""A consumer's engine: one `Work` stream after another, what it holds, and what it settles.

It runs on one event loop. Whoever takes messages from `buffer` (a program's loop, a thread, a
worker) says so with `took`; the rest happens here: credit, renewals, settles, reconnecting.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from fila.client.answers import item_error
from fila.client.backoff import Backoff
from fila.client.connection import DEADLINE_S, SERVICE, Connection, Stream
from fila.client.credit import CreditPolicy
from fila.client.failures import is_worth_repeating
from fila.client.leases import LeaseBook
from fila.client.message import Message
from fila.client.settling import (
    RELEASE,
    RENEW,
    Action,
    Extend,
    Refusal,
    Release,
    SettlePipeline,
    in_doubt,
)
from fila.errors import FilaError, LeaseNotFoundError, OutcomeUnknownError
from fila.wire._pb import service_pb2 as pb

_log = logging.getLogger("fila.client")
_TICK_S = 0.02
_IDLE_TICK_S = 0.25
_SETTLE_PAUSE_S = 0.001
_CLOSE_S = 1.0


class Subscription:
    """Deliveries of some queues under one credit.

    `on_ready` is called when `buffer` has more, `on_refusal` with each settle that failed,
    `on_over` when nothing can be settled through it any more.
    """

    def __init__(
        self,
        connection: Connection,
        queues: Sequence[str],
        policy: CreditPolicy,
        *,
        name: str,
        on_ready: Callable[[], None],
        on_refusal: Callable[[Refusal], None],
        on_over: "Callable[[Subscription], None]",
    ) -> None:
        self._connection = connection
        self._queues = tuple(queues)
        self._policy = policy
        self._name = name
        self._on_ready = on_ready
        self._on_refusal = on_refusal
        self._on_over = on_over
        self.buffer: deque[Message] = deque()
        self.book = LeaseBook(self)
        self.failure: FilaError | None = None
        # Whether leases are kept alive.
        self.renewing = True
        self._pipeline = SettlePipeline()
        # What the broker was told last.
        self.credit_sent = 0
        self._stop_wanted = False
        self._closing = False
        self._is_connected = False
        self._is_over = False
        self._work = asyncio.Event()
        self._settled = asyncio.Event()
        self._backoff = Backoff(random.random)
        self._ever_opened = False
        self._task = asyncio.create_task(self._run(), name="fila-subscription")
        self._task.add_done_callback(self._ended)

    # What the consumer says.

    def took(self) -> None:
        """The policy was told about a hand-out: send the credit if it moved."""
        if self._policy.credit != self.credit_sent:
            self._work.set()
            self._shrink()

    @property
    def in_hand(self) -> int:
        """Messages that were handed out and not settled."""
        return self.book.count - len(self.buffer)

    def settle(self, message: Message, action: Action) -> None:
        """Send an action on its way; a refusal is reported later."""
        grant = message.grant
        assert grant is not None
        if not isinstance(action, Extend):
            self.book.settle(message)
        self._send(grant.queue, message, action)

    @property
    def unsettled(self) -> int:
        """Settles without an answer."""
        return self._pipeline.outstanding

    @property
    def is_over(self) -> bool:
        """Whether nothing can be settled through it any more; `failure` then says why."""
        return self._is_over

    async def flush(self) -> None:
        """Return when every settle has its answer."""
        while self._pipeline.outstanding and not self._task.done():
            await self._settled.wait()

    def stop(self) -> None:
        """Ask for no more deliveries, and hand back what was not started."""
        if not self._stop_wanted:
            self._stop_wanted = True
            self._release(len(self.buffer))
            self._work.set()

    async def close(self) -> None:
        """End the stream; what is still held goes back to the broker at once."""
        self.stop()
        self._closing = True
        self._work.set()
        if self._is_connected:
            # Both sides end it: gRPC then has nothing left to say to a loop that may be gone.
            await asyncio.wait({self._task}, timeout=_CLOSE_S)
        self._task.cancel()
        await asyncio.wait({self._task})

    # One stream after another.

    async def _run(self) -> None:
        give_up_at = time.monotonic() + DEADLINE_S
        while True:
            try:
                await self._one_stream()
                error: FilaError = OutcomeUnknownError(
                    f"the broker at {self._connection.address} ended the stream"
                )
            except FilaError as failure:
                error = failure
            self._is_connected = False
            self._lose_stream()
            if self._closing:
                return
            late = not self._ever_opened and time.monotonic() >= give_up_at
            if late or not is_worth_repeating(error):
                raise error
            if self._stop_wanted and not self._pipeline.outstanding:
                return
            wait = self._backoff.next()
            _log.info("fila: %s; trying again in %.2f s", error, wait)
            await asyncio.sleep(wait)

    async def _one_stream(self) -> None:
        async with self._connection.stream(SERVICE + "Work") as stream:
            for request in self._open_requests():
                await stream.write(request)
            for queue in self._queues if not self._stop_wanted else ():
                await stream.write(_encoded(subscribe=pb.WorkSubscribe(queue=queue)))
            self._work.set()
            writer = asyncio.create_task(self._write(stream))
            ticker = asyncio.create_task(self._tick())
            try:
                while (content := await stream.read()) is not None:
                    self._receive(pb.WorkResponse.FromString(content))
            finally:
                writer.cancel()
                ticker.cancel()
                await asyncio.gather(writer, ticker, return_exceptions=True)

    def _open_requests(self) -> Iterator[bytes]:
        self.credit_sent = credit = self._policy.credit
        yield _encoded(
            open=pb.WorkOpen(
                credit=max(1, credit), release_on_disconnect=True, consumer_name=self._name
            )
        )
        if not credit:
            # An opening without credit would have the broker's default.
            yield _encoded(credit=pb.WorkCredit(credit=0))

    def _lose_stream(self) -> None:
        self._pipeline.lost()
        # A broker that saw the stream end took the leases back: what was not started must not be
        # started here. One that crashed did not: it is told, and keeps the leases of what runs.
        self._release(len(self.buffer))
        self.book.doubt()
        if not self._pipeline.outstanding:
            self._settled.set()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            error = task.exception()
            if isinstance(error, FilaError):
                self.failure = error
            elif error is not None:
                _log.error("fila: a consumer stopped by mistake", exc_info=error)
                self.failure = FilaError(f"the consumer stopped by mistake: {error!r}")
        # Only now: other threads look at the failure when they see this.
        self._is_over = True
        self._on_over(self)
        self.buffer.clear()
        self.book.clear()
        for message, action in self._pipeline.give_up():
            if not isinstance(action, Extend | Release):
                self._on_refusal(Refusal(message, action, in_doubt(message)))
        self._settled.set()
        self._on_ready()

    # Outwards.

    def _send(self, queue: str, message: Message, action: Action) -> None:
        self._pipeline.add(queue, message, action)
        self._settled.clear()
        self._work.set()

    async def _write(self, stream: Stream) -> None:
        stop_sent = False
        settled_at = 0.0
        while True:
            await self._work.wait()
            # A settle that closely follows another waits a moment for company, unless it is a good
            # part of what the consumer holds: a message on the stream costs more than a settle.
            if self._pipeline.unsent * 4 < self._policy.credit:
                await asyncio.sleep(settled_at + _SETTLE_PAUSE_S - time.monotonic())
            self._work.clear()
            settled_at = time.monotonic()
            if self._stop_wanted and not stop_sent:
                stop_sent = True
                await stream.write(_encoded(stop=pb.WorkStop()))
            for request in self._requests():
                if not await stream.write(request):
                    return
            if self._closing:
                await stream.finish()
                return

    def _requests(self) -> Iterator[bytes]:
        if not self._stop_wanted and self._policy.credit != self.credit_sent:
            self.credit_sent = self._policy.credit
            yield _encoded(credit=pb.WorkCredit(credit=self.credit_sent))
        batch = self._pipeline.take()
        if batch is not None:
            number, settlements = batch
            yield _encoded(settle=pb.WorkSettle(batch=number, settlements=settlements))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S if self.buffer else _IDLE_TICK_S)
            now = time.monotonic()
            if self.buffer and self._policy.stalled(now):
                self._release(len(self.buffer))
                self._work.set()
            for message in self.book.due(now) if self.renewing else ():
                self._send(message.queue, message, RENEW)

    def _shrink(self) -> None:
        """Hand back what is far more than the credit: it would wait here for nothing."""
        too_many = len(self.buffer) - 2 * self._policy.credit
        if too_many > 0:
            self._release(too_many)

    def _release(self, count: int) -> None:
        """Hand back the last of what is buffered."""
        for _ in range(count):
            try:
                message = self.buffer.pop()
            except IndexError:
                return
            self.settle(message, RELEASE)

    # Inwards.

    def _receive(self, response: pb.WorkResponse) -> None:
        kind = response.WhichOneof("response")
        if kind == "deliveries":
            self._deliver(response.deliveries)
        elif kind == "settled":
            self._answered(response.settled)
        elif kind == "opened":
            self._ever_opened = self._is_connected = True
            self._backoff.reset()
        elif kind == "subscribed" and response.subscribed.HasField("error"):
            raise _queue_error(response.subscribed.error)
        elif kind == "unsubscribed" and response.unsubscribed.HasField("error"):
            raise _queue_error(response.unsubscribed.error)

    def _deliver(self, deliveries: pb.WorkDeliveries) -> None:
        messages = self.book.receive(deliveries.messages, time.monotonic())
        self.buffer.extend(messages)
        if self._stop_wanted:
            self._release(len(messages))
        else:
            self._on_ready()

    def _answered(self, settled: pb.WorkSettled) -> None:
        for refusal in self._pipeline.answered(settled.batch, settled.results):
            self._refused(refusal)
        if not self._pipeline.outstanding:
            self._settled.set()

    def _refused(self, refusal: Refusal) -> None:
        message, action = refusal.message, refusal.action
        if isinstance(action, Extend):
            if message.grant is None:
                # It was settled meanwhile.
                return
            if isinstance(refusal.error, LeaseNotFoundError):
                self.book.settle(message)
                with contextlib.suppress(ValueError):
                    self.buffer.remove(message)
            if not action.asked:
                _log.warning("fila: lost the lease of message %s: %s", message.id, refusal.error)
                return
        elif action is RELEASE:
            return
        self._on_refusal(refusal)


def _encoded(**request: object) -> bytes:
    return pb.WorkRequest(**request).SerializeToString()  # type: ignore[arg-type]


def _queue_error(error: pb.ItemError) -> FilaError:
    return item_error(error, "QueueNotFoundError" if error.code == 5 else "")
