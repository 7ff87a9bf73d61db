"""The synchronous consumer: a thread takes from the buffer that the background loop fills."""

import threading
import time
from types import TracebackType

from fila.client import library
from fila.client.consumer import Retirement, Subscribe
from fila.client.credit import CreditPolicy
from fila.client.message import Message
from fila.client.portal import portal
from fila.client.subscription import Subscription

# Nothing should need it: a waiting thread looks again after so long.
_LOOK_S = 1.0


class Consumer:
    """Messages as they come. It starts with the first one asked for, and ends with `close`.

    On `close` what was not handed out goes back to the broker; what was can still be settled.
    """

    def __init__(self, subscribe: Subscribe, policy: CreditPolicy) -> None:
        self._subscribe = subscribe
        self._policy = policy
        self._session: Retirement | None = None
        self._subscription: Subscription | None = None
        self._generation = library.generation()
        self._ready = threading.Event()
        self._closed = False

    def __iter__(self) -> "Consumer":
        return self

    def __enter__(self) -> "Consumer":
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __next__(self) -> Message:
        subscription = self._subscription or self._start()
        policy = self._policy
        way = portal()
        now = time.monotonic()
        # Settles that the loop has not seen yet are no longer in hand.
        policy.asked(now, max(0, subscription.in_hand - way.backlog))
        while True:
            if policy.credit != subscription.credit_sent:
                way.post(subscription.took)
            try:
                message = subscription.buffer.popleft()
            except IndexError:
                pass
            else:
                policy.handed(time.monotonic())
                return message
            if self._closed:
                raise StopIteration
            if self._generation != library.generation():
                raise RuntimeError("the consumer belongs to the parent process; make a new one")
            if subscription.is_over:
                raise subscription.failure or StopIteration
            self._ready.clear()
            if not subscription.buffer:
                self._ready.wait(_LOOK_S)

    def _start(self) -> Subscription:
        if self._closed:
            raise RuntimeError("the consumer is closed; make a new one")
        self._session, self._subscription = portal().call(self._begin)
        return self._subscription

    async def _begin(self) -> tuple[Retirement, Subscription]:
        return self._subscribe(self._ready.set)

    def close(self) -> None:
        """Stop deliveries and hand back what was not handed out."""
        if self._closed:
            return
        self._closed = True
        self._ready.set()
        if self._subscription is not None and self._session is not None:
            self._session.retire(self._subscription)

    def __del__(self) -> None:
        # A loop that was left with `break` drops its consumer without a word.
        self.close()
