"""Where calls enter and errors leave: requests are bytes, refusals statuses.

The one place that turns an error into a gRPC status.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import grpc
import grpc.aio

from fila.errors import FilaError, StorageError
from fila.server.log import facts
from fila.wire.status import KIND_KEY

log = logging.getLogger(__name__)

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Requests: TypeAlias = AsyncIterator[bytes]
Unary: TypeAlias = Callable[[bytes, Context], Awaitable[bytes]]
ServerStream: TypeAlias = Callable[[bytes, Context], Awaitable[None]]
BothStreams: TypeAlias = Callable[[Requests, Context], Awaitable[None]]
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"

# A status travels in headers, whose size is limited.
_DETAILS_MAX = 1000


class Boundary:
    """Wraps what services do into gRPC handlers, and knows how many calls are being answered."""

    def __init__(self) -> None:
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def unary(self, behave: Unary) -> Handler:
        """A call with one request and one response."""

        async def serve(request: bytes, context: Context) -> bytes:
            with self._counted():
                try:
                    return await behave(request, context)
                except Exception as error:  # noqa: BLE001 - supervision: it becomes a status
                    await _refuse(context, error)
                    return b""

        return grpc.unary_unary_rpc_method_handler(serve)

    def server_stream(self, behave: ServerStream) -> Handler:
        """A call whose responses are written to the context."""

        async def serve(request: bytes, context: Context) -> None:
            with self._counted():
                try:
                    await behave(request, context)
                except Exception as error:  # noqa: BLE001 - supervision: it becomes a status
                    await _refuse(context, error)

        return grpc.unary_stream_rpc_method_handler(serve)

    def both_streams(self, behave: BothStreams) -> Handler:
        """A call that reads requests as they come and writes responses to the context."""

        async def serve(requests: Requests, context: Context) -> None:
            with self._counted():
                try:
                    await behave(requests, context)
                except Exception as error:  # noqa: BLE001 - supervision: it becomes a status
                    await _refuse(context, error)

        return grpc.stream_stream_rpc_method_handler(serve)

    async def wait_until_idle(self) -> None:
        """Wait until no call is being answered."""
        await self._idle.wait()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._calls += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()


async def _refuse(context: Context, error: Exception) -> None:
    if isinstance(error, FilaError):
        await _abort(context, error)
    elif context.cancelled() or context.done():
        log.debug("a call ended while it was answered", extra=facts(peer=context.peer()))
    else:
        log.error("a call failed inside the broker", exc_info=error)
        await _abort(context, StorageError("the broker failed to answer; its log says why"))


async def _abort(context: Context, error: FilaError) -> None:
    await context.abort(
        grpc.StatusCode[error.code],
        str(error)[:_DETAILS_MAX],
        ((KIND_KEY, type(error).__name__),),
    )
