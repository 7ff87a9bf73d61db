"""A consumer's deliveries on their way to the wire.

What waits here are references, at most as many as the consumer has credit; the bytes are read when
they are about to be written. A lease that ended meanwhile is skipped.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby

from fila.core.commands import CloseConsumer, SetCredit
from fila.core.effects import Closed, Delivery
from fila.server.runner import Runner
from fila.storage.port import Storage
from fila.wire import envelope
from fila.wire.reply import embedded

# One write: what waits behind it waits no longer than this takes.
CHUNK_BYTES_MAX = 256 * 1024
CHUNK_MESSAGES_MAX = 500
# Read at once: few while messages may be large, more once they have shown to be small.
_READ_MIN = 8
_READ_MAX = 128
_SMALL_BYTES = 8 * 1024


class Outbox:
    """A sink that collects; `wake` is called when there is something new."""

    def __init__(self, storage: Storage, wake: Callable[[], None]) -> None:
        self.closed: deque[Closed] = deque()
        self._storage = storage
        self._wake = wake
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
            message = self._ready[0][0]
            if chunk and size + len(message) > bytes_max:
                break
            self._ready.popleft()
            chunk.append(message)
            size += len(message)
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
            self._ready.extend(_delivered(self._storage, batch))
            largest = max((len(message) for message, _ in self._ready), default=0)
            small = largest <= _SMALL_BYTES
            self._read_count = min(2 * self._read_count, _READ_MAX) if small else _READ_MIN
        return bool(self._ready)


def _is_live(delivery: Delivery) -> bool:
    message, token = delivery
    return message.token == token and message.queue.leased.get(message.sequence) is message


def _partition(delivery: Delivery) -> int:
    return delivery[0].queue.partition.number


def _delivered(storage: Storage, deliveries: Sequence[Delivery]) -> list[tuple[bytes, Delivery]]:
    """The bytes of deliveries whose leases are live."""
    out: list[tuple[bytes, Delivery]] = []
    for partition, group in groupby(filter(_is_live, deliveries), _partition):
        batch = list(group)
        stored = storage.read_messages(partition, [message.sequence for message, _ in batch])
        for delivery, data in zip(batch, stored, strict=True):
            # What cannot be read, storage has set aside and told of.
            if data is not None:
                out.append((_message(delivery, data), delivery))
    return out


def _message(delivery: Delivery, stored: bytes) -> bytes:
    message, token = delivery
    tail = envelope.delivery_tail(
        attempts=message.attempts,
        leased_at_ns=message.leased_at_ns,
        expires_at_ns=message.due_wall_ns,
        token=token,
    )
    if message.dead is not None:
        tail = envelope.dead_letter_part(message.queue.name, message.dead) + tail
    return embedded(stored, tail)
