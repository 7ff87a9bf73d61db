"""Work: one stream that brings deliveries and takes settles, for any number of queues.

Two tasks share a stream. The reader turns requests into commands as they come and never waits for
deliveries; the writer sends replies first, then one bounded chunk of deliveries, and looks again:
however slow the client reads, a reply waits behind one chunk at most.
"""

import asyncio
from collections import deque
from functools import partial

from fila.core.commands import OpenConsumer, SetCredit, Subscribe, Unsubscribe
from fila.core.effects import Reply
from fila.errors import FilaError, InvalidArgumentError
from fila.server.boundary import Context, Requests
from fila.server.outbox import Outbox
from fila.server.settle import SettleBatch, SettleService
from fila.server.shell import Shell
from fila.wire._pb import service_pb2 as pb
from fila.wire.names import check_queue_name
from fila.wire.reply import work_deliveries
from fila.wire.request import parse
from fila.wire.status import CODE_NUMBERS

# Requests of one stream that are not answered yet; the reader pauses above it.
_UNANSWERED_MAX = 256


class WorkService:
    """Work."""

    def __init__(self, shell: Shell, settling: SettleService) -> None:
        self._shell = shell
        self._settling = settling

    async def work(self, requests: Requests, context: Context) -> None:
        """Serve one stream until it ends."""
        stream = WorkStream(self._shell, self._settling, context)
        reader = asyncio.create_task(stream.read(requests))
        try:
            await stream.write()
        finally:
            reader.cancel()
            stream.close()


class WorkStream:
    """One stream's state. Commands are sent in the order of its requests."""

    def __init__(self, shell: Shell, settling: SettleService, context: Context) -> None:
        self._shell = shell
        self._runner = shell.runner
        self._settling = settling
        self._context = context
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._outbox = Outbox(shell.storage, self._changed.set, self._runner.forget)
        self._consumer = 0
        self._replies: deque[bytes] = deque()
        # In order of arrival; those before others are mostly answered first.
        self._settles: deque[tuple[int, SettleBatch]] = deque()
        # Subscriptions on their way: a delivery must not overtake the confirmation.
        self._confirming = 0
        self._stopped = False
        self._end: FilaError | None = None
        self._read_all = False

    async def read(self, requests: Requests) -> None:
        """Take requests until there are no more, or one is wrong."""
        try:
            async for data in requests:
                self._take(parse(pb.WorkRequest, data))
                await self._wait_for_room()
        except FilaError as error:
            self.end(error)
        finally:
            self._read_all = True
            self._changed.set()

    async def write(self) -> None:
        """Send replies and deliveries until the stream is over; raises why it was ended."""
        while True:
            self._changed.clear()
            if self._replies:
                reply = self._replies.popleft()
                self._room.set()
                await self._context.write(reply)
                continue
            if not self._settles and not self._confirming:
                if self._end is not None:
                    raise self._end
                if self._read_all:
                    return
            self._tell_closed()
            if self._replies:
                continue
            chunk = self._next_chunk()
            if chunk:
                await self._context.write(work_deliveries(chunk))
            else:
                await self._changed.wait()

    def end(self, error: FilaError) -> None:
        """Stop deliveries, answer what was asked, then end with this error."""
        if self._end is None:
            self._end = error
            self._stop_deliveries()
        self._changed.set()

    def close(self) -> None:
        """The stream is over, however it ended."""
        self._shell.streams.discard(self)
        if self._consumer:
            self._outbox.leave(self._runner, self._consumer)

    def _take(self, request: pb.WorkRequest) -> None:
        kind = request.WhichOneof("request")
        if not self._consumer:
            if kind != "open":
                raise InvalidArgumentError("the first request of a Work stream must be open")
            self._open(request.open)
            return
        match kind:
            case "settle":
                self._settle(request.settle)
            case "credit":
                self._set_credit(request.credit.credit)
            case "subscribe":
                self._subscribe(request.subscribe.queue)
            case "unsubscribe":
                self._unsubscribe(request.unsubscribe.queue)
            case "stop":
                self._stop_deliveries()
                self._reply(pb.WorkResponse(stopped=pb.WorkStopped()))
            case "open":
                raise InvalidArgumentError("a Work stream can be opened only once")
            case _:
                raise InvalidArgumentError("a Work request must say what it asks for")

    def _open(self, request: pb.WorkOpen) -> None:
        credit = self._shell.checked_credit(request.credit)
        self._consumer = self._runner.attach(self._outbox)
        self._shell.streams.add(self)
        self._runner.submit(
            OpenConsumer(
                consumer=self._consumer,
                credit=credit,
                name=self._shell.consumer_name(request.consumer_name),
                peer=self._context.peer(),
                release_on_disconnect=request.release_on_disconnect,
            )
        )
        self._reply(pb.WorkResponse(opened=pb.WorkOpened(consumer_id=self._consumer)))

    def _subscribe(self, queue: str) -> None:
        answer = partial(self._subscribed, queue)
        self._confirming += 1
        try:
            check_queue_name(queue, self._shell.limits)
            self._runner.submit(Subscribe(tag=answer, consumer=self._consumer, queue=queue))
        except FilaError as error:
            answer(error)

    def _subscribed(self, queue: str, reply: Reply) -> None:
        self._confirming -= 1
        error = _item_error(reply) if isinstance(reply, FilaError) else None
        self._reply(pb.WorkResponse(subscribed=pb.WorkSubscribed(queue=queue, error=error)))

    def _unsubscribe(self, queue: str) -> None:
        answer = partial(self._unsubscribed, queue)
        self._confirming += 1
        try:
            check_queue_name(queue, self._shell.limits)
            self._runner.submit(Unsubscribe(tag=answer, consumer=self._consumer, queue=queue))
        except FilaError as error:
            answer(error)

    def _unsubscribed(self, queue: str, reply: Reply) -> None:
        self._confirming -= 1
        # After the confirmation nothing of the queue comes any more.
        self._runner.give_back(self._outbox.take_unsent(queue))
        error = _item_error(reply) if isinstance(reply, FilaError) else None
        self._reply(pb.WorkResponse(unsubscribed=pb.WorkUnsubscribed(queue=queue, error=error)))

    def _set_credit(self, credit: int) -> None:
        if credit:
            self._shell.checked_credit(credit)
        if not self._stopped:
            self._runner.submit(SetCredit(consumer=self._consumer, credit=credit))

    def _settle(self, request: pb.WorkSettle) -> None:
        batch = self._settling.submit(request.settlements, self._answer_settles)
        self._settles.append((request.batch, batch))
        # It may have been answered at once: refused, or empty.
        self._answer_settles()

    def _answer_settles(self) -> None:
        """Answer what is done: acks must not wait behind a nack that waits for a script."""
        waiting: deque[tuple[int, SettleBatch]] = deque()
        for number, batch in self._settles:
            if batch.is_done:
                settled = pb.WorkSettled(batch=number, results=batch.results)
                self._reply(pb.WorkResponse(settled=settled))
            else:
                waiting.append((number, batch))
        self._settles = waiting

    def _stop_deliveries(self) -> None:
        self._stopped = True
        if self._consumer:
            self._runner.submit(SetCredit(consumer=self._consumer, credit=0))
            self._runner.give_back(self._outbox.take_unsent())

    def _next_chunk(self) -> list[bytes]:
        if self._stopped:
            # Decided before the core heard of it.
            self._runner.give_back(self._outbox.take_unsent())
            return []
        return [] if self._confirming else self._outbox.next_chunk()

    def _tell_closed(self) -> None:
        while self._outbox.closed:
            closed = self._outbox.closed.popleft()
            gone = pb.WorkUnsubscribed(queue=closed.queue, error=_item_error(closed.error))
            self._reply(pb.WorkResponse(unsubscribed=gone))

    def _reply(self, response: pb.WorkResponse) -> None:
        self._replies.append(response.SerializeToString())
        self._changed.set()

    async def _wait_for_room(self) -> None:
        while len(self._replies) + len(self._settles) + self._confirming > _UNANSWERED_MAX:
            self._room.clear()
            await self._room.wait()


def _item_error(error: FilaError) -> pb.ItemError:
    return pb.ItemError(code=CODE_NUMBERS[error.code], message=str(error))
