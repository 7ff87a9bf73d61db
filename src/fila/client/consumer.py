"""The asynchronous consumer: an iterator over a subscription's buffer."""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from fila.client.credit import CreditPolicy
from fila.client.message import Message
from fila.client.subscription import Subscription

# A loop over a full buffer never waits: it lets others run after so long.
_TURN_S = 0.001


class Retirement(Protocol):
    """What ends a subscription."""

    def retire(self, subscription: Subscription) -> None:
        """End it as soon as what was handed out is settled; may be called from any thread."""


Subscribe = Callable[[Callable[[], None]], tuple[Retirement, Subscription]]


class AsyncConsumer:
    """Messages as they come. It starts with the first one asked for, and ends with `close`.

    On `close` what was not handed out goes back to the broker; what was can still be settled.
    """

    def __init__(self, subscribe: Subscribe, policy: CreditPolicy) -> None:
        self._subscribe = subscribe
        self._policy = policy
        self._session: Retirement | None = None
        self._subscription: Subscription | None = None
        self._ready = asyncio.Event()
        self._closed = False
        self._turn_ends_at = 0.0

    def __aiter__(self) -> "AsyncConsumer":
        return self

    async def __aenter__(self) -> "AsyncConsumer":
        self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def __anext__(self) -> Message:
        subscription = self._subscription or self._start()
        policy = self._policy
        now = time.monotonic()
        policy.asked(now, subscription.in_hand)
        buffer = subscription.buffer
        while True:
            if now >= self._turn_ends_at:
                await asyncio.sleep(0)
                now = time.monotonic()
                self._turn_ends_at = now + _TURN_S
            if policy.credit != subscription.credit_sent:
                subscription.took()
            if buffer:
                message = buffer.popleft()
                policy.handed(now)
                return message
            if self._closed:
                raise StopAsyncIteration
            if subscription.is_over:
                raise subscription.failure or StopAsyncIteration
            self._ready.clear()
            await self._ready.wait()
            now = time.monotonic()
            self._turn_ends_at = now + _TURN_S

    def _start(self) -> Subscription:
        if self._closed:
            raise RuntimeError("the consumer is closed; make a new one")
        self._session, self._subscription = self._subscribe(self._ready.set)
        return self._subscription

    async def close(self) -> None:
        """Stop deliveries and hand back what was not handed out."""
        if self._closed:
            return
        self._closed = True
        self._ready.set()
        if self._subscription is not None and self._session is not None:
            self._subscription.stop()
            self._session.retire(self._subscription)

    def __del__(self) -> None:
        # A loop that was left with `break` drops its consumer without a word.
        if not self._closed and self._subscription is not None and self._session is not None:
            self._session.retire(self._subscription)
