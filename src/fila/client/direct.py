"""Settles of messages that came without a stream, or whose stream is gone: by unary calls."""

import asyncio
import random
import time
from collections.abc import Callable

from fila.client.backoff import wait_before
from fila.client.connection import DEADLINE_S, SERVICE, Connection
from fila.client.failures import is_worth_repeating
from fila.client.message import Message
from fila.client.settling import Action, Extend, Refusal, SettlePipeline
from fila.errors import FilaError
from fila.wire._pb import service_pb2 as pb


class DirectSettler:
    """One call at a time carries everything that was settled meanwhile."""

    def __init__(self, connection: Connection, on_refusal: Callable[[Refusal], None]) -> None:
        self._connection = connection
        self._on_refusal = on_refusal
        self._pipeline = SettlePipeline()
        self._sender: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()

    def settle(self, message: Message, action: Action) -> None:
        """Send an action on its way; a refusal is reported later."""
        grant = message.grant
        assert grant is not None
        if not isinstance(action, Extend):
            message.grant = None
        self._pipeline.add(grant.queue, message, action)
        self._settled.clear()
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())

    @property
    def unsettled(self) -> int:
        """Settles without an answer."""
        return self._pipeline.outstanding

    async def flush(self) -> None:
        """Return when every settle has its answer."""
        while self._pipeline.outstanding and self._sender is not None:
            await self._settled.wait()

    async def _send_all(self) -> None:
        try:
            while (batch := self._pipeline.take()) is not None:
                await self._send(*batch)
        finally:
            self._sender = None
            self._settled.set()

    async def _send(self, number: int, settlements: list[pb.Settlement]) -> None:
        request = pb.SettleRequest(settlements=settlements).SerializeToString()
        try:
            answer = await self._repeated(number, request)
        except FilaError as error:
            for message, action in self._pipeline.abandoned(number):
                self._on_refusal(Refusal(message, action, error))
            return
        results = pb.SettleResponse.FromString(answer).results
        for refusal in self._pipeline.answered(number, results):
            self._on_refusal(refusal)

    async def _repeated(self, number: int, request: bytes) -> bytes:
        deadline = time.monotonic() + DEADLINE_S
        tries = 0
        while True:
            left = max(0.01, deadline - time.monotonic())
            try:
                return await self._connection.unary(SERVICE + "Settle", request, timeout=left)
            except FilaError as error:
                wait = wait_before(tries, random.random())
                if not is_worth_repeating(error) or time.monotonic() + wait >= deadline:
                    raise
            tries += 1
            self._pipeline.repeated(number)
            await asyncio.sleep(wait)

    async def close(self) -> None:
        """Give up what is on its way."""
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
