"""One channel to one broker: calls and streams as bytes, failures as Fila's errors."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from fila.client import library
from fila.client.failures import translate
from fila.errors import OutcomeUnknownError, UnreachableError

SERVICE = "/fila.v1.FilaService/"
ADMIN = "/fila.v1.FilaAdmin/"
DEADLINE_S = 5.0
_OPTIONS = (
    # A broker is near; what the environment says of proxies is meant for the web.
    ("grpc.enable_http_proxy", 0),
    # A broker that restarts is found again within a second.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A broker that vanished without a word is noticed.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Repeating is ours: only we know what may be repeated.
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class Connection:
    """The way to the broker at `address`. Made and used on one event loop."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._aio = library.aio()
        self._channel = self._aio.insecure_channel(address, options=_OPTIONS)
        self._methods: dict[str, library.UnaryMethod] = {}
        library.leave_to_the_parent(self)

    async def unary(
        self, path: str, request: bytes, *, timeout: float | None, repeatable: bool = False
    ) -> bytes:
        """The answer to a call; without a timeout it may take as long as the connection holds.

        One that only reads is repeated when its connection is lost.
        """
        method = self._methods.get(path)
        if method is None:
            method = self._methods[path] = self._channel.unary_unary(path)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                return await method(request, timeout=left)
            except self._aio.AioRpcError as failure:
                error = translate(failure, self.address)
                if not (repeatable and isinstance(error, OutcomeUnknownError)):
                    raise error from failure
                if deadline is not None and time.monotonic() >= deadline:
                    raise UnreachableError(
                        f"the connection to {self.address} was lost"
                    ) from failure
                # Let the channel notice that it must connect again.
                await asyncio.sleep(0.01)

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator["Stream"]:
        """A bidirectional stream, cancelled on the way out."""
        call = self._channel.stream_stream(path)()
        stream = Stream(call, self._aio, self.address)
        try:
            yield stream
        finally:
            call.cancel()

    async def close(self) -> None:
        """End all calls and the channel."""
        await self._channel.close()


class Stream:
    """One open stream."""

    def __init__(self, call: library.StreamCall, aio: library.Aio, address: str) -> None:
        self._call = call
        self._aio = aio
        self._address = address
        library.leave_to_the_parent(self)

    async def read(self) -> bytes | None:
        """The next message; None at the end."""
        try:
            message = await self._call.read()
        except self._aio.AioRpcError as failure:
            raise translate(failure, self._address) from failure
        if message is self._aio.EOF:
            return None
        return cast("bytes", message)

    async def write(self, message: bytes) -> bool:
        """Send a message; False when the stream has ended, whose reason `read` tells."""
        try:
            await self._call.write(message)
        except (self._aio.AioRpcError, asyncio.InvalidStateError):
            return False
        return True

    async def finish(self) -> None:
        """Say that nothing more will be sent."""
        with contextlib.suppress(self._aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.done_writing()
