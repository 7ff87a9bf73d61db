"""The calls that deliver from one queue: Consume, the plain stream, and Lease, the long poll."""

import asyncio
from collections.abc import Callable
from functools import partial

from fila.core.commands import OpenConsumer, Subscribe
from fila.errors import FilaError, InvalidArgumentError
from fila.server.boundary import Context
from fila.server.outbox import Outbox
from fila.server.runner import Answer
from fila.server.shell import Shell
from fila.wire._pb import service_pb2 as pb
from fila.wire.names import check_queue_name
from fila.wire.request import parse

_LEASE_WAIT_MAX_MS = 60_000
# A response must fit into what clients accept by default, 4 MiB.
_LEASE_BYTES_MAX = 3 * 1024 * 1024


class Feed:
    """One consumer of one queue, as long as its call lasts."""

    def __init__(self, shell: Shell, queue: str) -> None:
        self._shell = shell
        self._queue = queue
        self._changed = asyncio.Event()
        self._end: FilaError | None = None
        self.outbox = Outbox(shell.storage, self._changed.set, shell.runner.forget)
        self.number = shell.runner.attach(self.outbox)
        shell.streams.add(self)

    async def open(
        self, context: Context, *, credit: int, name: str, release_on_disconnect: bool = False
    ) -> None:
        """Become a consumer and subscribe; the queue must exist."""
        self._shell.runner.submit(
            OpenConsumer(
                consumer=self.number,
                credit=credit,
                name=self._shell.consumer_name(name),
                peer=context.peer(),
                release_on_disconnect=release_on_disconnect,
            )
        )

        def command(answer: Answer) -> Subscribe:
            return Subscribe(tag=answer, consumer=self.number, queue=self._queue)

        await self._shell.runner.ask(command)

    async def next_chunk(self, bytes_max: int | None = None) -> list[bytes]:
        """Wait for deliveries; raises why there will be none."""
        take: Callable[[], list[bytes]] = self.outbox.next_chunk
        if bytes_max is not None:
            take = partial(self.outbox.next_chunk, bytes_max)
        while True:
            self._changed.clear()
            if self.outbox.closed:
                raise self.outbox.closed[0].error
            if self._end is not None:
                raise self._end
            chunk = take()
            if chunk:
                return chunk
            await self._changed.wait()

    def end(self, error: FilaError) -> None:
        """The broker is stopping: whatever is not sent goes back."""
        self._end = error
        self._changed.set()

    def close(self) -> None:
        """The call is over, however it ended."""
        self._shell.streams.discard(self)
        self.outbox.leave(self._shell.runner, self.number)


class ConsumeService:
    """Consume and Lease."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def consume(self, data: bytes, context: Context) -> None:
        """Deliver until the call is cancelled or the queue deleted."""
        request = parse(pb.ConsumeRequest, data)
        check_queue_name(request.queue, self._shell.limits)
        credit = self._shell.checked_credit(request.credit)
        feed = Feed(self._shell, request.queue)
        try:
            await feed.open(
                context,
                credit=credit,
                name=request.consumer_name,
                release_on_disconnect=request.release_on_disconnect,
            )
            # Tells the client that it is subscribed.
            await context.send_initial_metadata(())
            while True:
                for response in await feed.next_chunk():
                    await context.write(response)
        finally:
            feed.close()

    async def lease(self, data: bytes, context: Context) -> bytes:
        """Lease what is there, or wait for a first message."""
        request = parse(pb.LeaseRequest, data)
        check_queue_name(request.queue, self._shell.limits)
        count = request.max_messages or 1
        if count > self._shell.limits.batch_messages_max:
            raise InvalidArgumentError(
                f"max_messages is {count}; the limit is {self._shell.limits.batch_messages_max} "
                "(limits.batch_messages_max)"
            )
        feed = Feed(self._shell, request.queue)
        try:
            await feed.open(context, credit=count, name=request.consumer_name)
            return b"".join(await _first_chunk(feed, request.wait_ms))
        finally:
            feed.close()


async def _first_chunk(feed: Feed, wait_ms: int) -> list[bytes]:
    """The first deliveries; none when there were none in time."""
    wait_s = min(wait_ms, _LEASE_WAIT_MAX_MS) / 1000
    chunk: list[bytes] = []
    try:
        async with asyncio.timeout(wait_s or None):
            if wait_s:
                chunk = await feed.next_chunk(_LEASE_BYTES_MAX)
            else:
                chunk = feed.outbox.next_chunk(_LEASE_BYTES_MAX)
    except TimeoutError:
        return []
    return chunk
