"""A consumer's deliveries on their way to the wire.

What waits here are references, at most as many as the consumer has credit; the bytes are read when
they are about to be written. A lease that ended meanwhile is skipped.
"""

from collections import deque
from collections.abc import Callable, Sequence

from fila.core.commands import CloseConsumer, SetCredit
from fila.core.effects import Closed, Delivery
from fila.server.delivery import read_deliveries
from fila.server.runner import Runner
from fila.storage.port import Storage

# One write: what waits behind it waits no longer than this takes.
CHUNK_BYTES_MAX = 256 * 1024
CHUNK_MESSAGES_MAX = 500
# Read at once: few while messages may be large, more once they have shown to be small.
_READ_MIN = 8
_READ_MAX = 128
_SMALL_BYTES = 8 * 1024


class Outbox:
    """A sink that collects; `wake` is called when there is something new.

    `forget` is called with deliveries whose messages the disk has lost.
    """

    def __init__(
        self,
        storage: Storage,
        wake: Callable[[], None],
        forget: Callable[[Sequence[Delivery]], None],
    ) -> None:
        self.closed: deque[Closed] = deque()
        self._storage = storage
        self._wake = wake
        self._forget = forget
        self._waiting: deque[Delivery] = deque()
        # Read already, but too much for the last chunk.
        self._ready: deque[tuple[bytes, Delivery]] = deque()
        self._read_count = _READ_MIN

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Take in what is to be sent."""
        self._waiting.extend(deliveries)
        self._wake()

    def close_queue(self, closed: Closed) -> None:
        """The broker ended a subscription."""
        self.closed.append(closed)
        self._wake()

    def next_chunk(self, bytes_max: int = CHUNK_BYTES_MAX) -> list[bytes]:
        """Deliveries for one write, each a field of the response; at least one, if any is live."""
        chunk: list[bytes] = []
        size = 0
        while len(chunk) < CHUNK_MESSAGES_MAX:
            if not self._ready and not self._read_more():
                break
            size += len(self._ready[0][0])
            if chunk and size > bytes_max:
                break
            chunk.append(self._ready.popleft()[0])
        return chunk

    def take_unsent(self, queue: str | None = None) -> list[Delivery]:
        """Everything that was not sent, or what is one queue's; it is forgotten here."""
        unsent = [delivery for _, delivery in self._ready]
        unsent.extend(self._waiting)
        self._ready.clear()
        self._waiting.clear()
        if queue is None:
            return unsent
        self._waiting.extend(each for each in unsent if each[0].queue.name != queue)
        return [each for each in unsent if each[0].queue.name == queue]

    def leave(self, runner: Runner, consumer: int) -> None:
        """The consumer has gone: what it was not sent goes back at once."""
        unsent = self.take_unsent()
        runner.detach(consumer)
        if runner.draining:
            # It is the broker that goes. Who holds leases may settle them after the restart.
            runner.submit(SetCredit(consumer=consumer, credit=0))
            runner.give_back(unsent)
            return
        leases = [(message.queue.name, message.sequence, token) for message, token in unsent]
        runner.submit(CloseConsumer(consumer=consumer, unsent=leases))

    def _read_more(self) -> bool:
        while self._waiting and not self._ready:
            count = min(self._read_count, len(self._waiting))
            batch = [self._waiting.popleft() for _ in range(count)]
            lost: list[Delivery] = []
            self._ready.extend(read_deliveries(self._storage, batch, lost))
            if lost:
                self._forget(lost)
            small = sum(len(message) for message, _ in self._ready) <= count * _SMALL_BYTES
            self._read_count = min(2 * self._read_count, _READ_MAX) if small else _READ_MIN
        return bool(self._ready)
