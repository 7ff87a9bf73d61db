"""What a client has open: one connection, and all that runs over it."""

import asyncio
import time
from collections.abc import Callable

from fila.client import library
from fila.client.connection import DEADLINE_S, Connection
from fila.client.direct import DirectSettler
from fila.client.producer import Producer
from fila.client.settling import Refusal
from fila.client.subscription import Subscription


class Session:
    """What a client has open on one event loop of one process."""

    def __init__(self, address: str, on_refusal: Callable[[Refusal], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.generation = library.generation()
        self.connection = Connection(address)
        self.producer = Producer(self.connection)
        self.direct = DirectSettler(self.connection, on_refusal)
        self.subscriptions: set[Subscription] = set()
        self._background: set[asyncio.Task[None]] = set()
        library.leave_to_the_parent(self)

    def is_usable(self) -> bool:
        """Whether this is still the process and the loop it was opened in."""
        return self.generation == library.generation() and not self.loop.is_closed()

    def retire(self, subscription: Subscription) -> None:
        """End a subscription when what was handed out is settled; from any thread."""
        if self.is_usable():
            self.loop.call_soon_threadsafe(self._start_retirement, subscription)

    def _start_retirement(self, subscription: Subscription) -> None:
        subscription.stop()
        subscription.renewing = False
        task = self.loop.create_task(self._retire(subscription))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def unsettled(self) -> int:
        """Settles without an answer."""
        return self.direct.unsettled + sum(one.unsettled for one in self.subscriptions)

    async def flush(self) -> None:
        """Return when every settle has its answer."""
        await self.direct.flush()
        for subscription in list(self.subscriptions):
            await subscription.flush()

    async def _retire(self, subscription: Subscription) -> None:
        # What the program holds on to, now that nobody asks for more, may lapse.
        lapses_at = time.monotonic() + max(DEADLINE_S, subscription.book.longest())
        while not subscription.is_over and time.monotonic() < lapses_at:
            if not subscription.in_hand and not subscription.unsettled:
                break
            await asyncio.sleep(0.01)
        await subscription.close()

    async def close(self) -> None:
        """End everything."""
        for task in list(self._background):
            task.cancel()
        self.producer.close()
        await asyncio.gather(*(subscription.close() for subscription in self.subscriptions))
        await self.direct.close()
        await self.connection.close()
