"""Which messages travel together, and which batch travels next. No I/O: the caller has the clock.

A queue's messages gather in its line while the slots are taken, so a batch is as large as the load
makes it. A batch that was sent never changes: it is repeated with the same sequence and the same
items, and the broker answers a repeat with the first outcome. While a batch of a line waits to be
repeated, the line sends nothing new, which keeps its order and spares a broker in trouble.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, TypeVar

from fila.client.items import check_text
from fila.errors import FilaError
from fila.wire._pb import service_pb2 as pb

BATCH_MESSAGES_MAX = 1000
BATCH_BYTES_MAX = 3 * 1024 * 1024
IN_FLIGHT_MAX = 4

T = TypeVar("T")


class Batch(Generic[T]):
    """Items of one queue with one sequence. `whole`: one ticket stands for all of them."""

    __slots__ = (
        "deadlines",
        "error",
        "first_deadline",
        "in_flight",
        "items",
        "last_deadline",
        "maybe_applied",
        "queue",
        "sequence",
        "size",
        "tickets",
        "tries",
        "whole",
    )

    def __init__(self, queue: str, *, whole: bool = False) -> None:
        self.queue = queue
        self.items: list[bytes] = []
        # None: its caller was answered already.
        self.tickets: list[T | None] = []
        self.deadlines: list[float] = []
        self.size = 0
        self.first_deadline = float("inf")
        self.last_deadline = 0.0
        self.sequence = 0
        self.tries = 0
        self.in_flight = False
        # Whether an attempt may have reached the broker.
        self.maybe_applied = False
        self.error: FilaError | None = None
        self.whole = whole


@dataclass(slots=True)
class Expired(Generic[T]):
    """A ticket that ran out of time, and what is known about its item."""

    ticket: T
    maybe_applied: bool
    error: FilaError | None


class _Line(Generic[T]):
    """What waits for one queue."""

    __slots__ = ("held", "held_until", "in_turn", "queue", "waiting")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        # Whether it stands among those that take turns.
        self.in_turn = False
        self.waiting: deque[Batch[T]] = deque()
        # Batches to be repeated, and when.
        self.held: list[Batch[T]] = []
        self.held_until = 0.0

    def next(self, now: float) -> Batch[T] | None:
        if self.held:
            if now < self.held_until:
                return None
            oldest = min(self.held, key=lambda batch: batch.sequence)
            self.held.remove(oldest)
            return oldest
        return self.waiting.popleft() if self.waiting else None

    def __bool__(self) -> bool:
        return bool(self.waiting or self.held)


class Batcher(Generic[T]):
    """The enqueue calls of one producer that are not answered yet."""

    def __init__(self, producer_id: bytes, *, in_flight_max: int = IN_FLIGHT_MAX) -> None:
        self._producer_id = producer_id
        self._in_flight_max = in_flight_max
        self._sequence = 0
        self._in_flight = 0
        self._lines: dict[str, _Line[T]] = {}
        # Those that may have something to send, the next one first. There may be very many.
        self._turns: deque[_Line[T]] = deque()
        # When held lines may go on; those that are held longer by now, or gone, are in it still.
        self._recalls: list[tuple[float, str]] = []
        self._live: set[Batch[T]] = set()
        self.outstanding = 0
        self.outstanding_bytes = 0

    def add(self, queue: str, item: bytes, ticket: T, deadline: float) -> None:
        """Let an item travel with others of its queue."""
        line = self._lines.get(queue) or self._line(queue)
        size = len(item)
        batch = line.waiting[-1] if line.waiting else None
        if (
            batch is None
            or batch.whole
            or len(batch.items) >= BATCH_MESSAGES_MAX
            or batch.size + size > BATCH_BYTES_MAX
        ):
            batch = self._join(line, Batch(queue))
        batch.items.append(item)
        batch.tickets.append(ticket)
        batch.deadlines.append(deadline)
        batch.first_deadline = min(batch.first_deadline, deadline)
        batch.last_deadline = max(batch.last_deadline, deadline)
        batch.size += size
        self.outstanding += 1
        self.outstanding_bytes += size

    def _join(self, line: _Line[T], batch: Batch[T]) -> Batch[T]:
        line.waiting.append(batch)
        self._live.add(batch)
        if not line.held:
            self._take_turns(line)
        return batch

    def add_whole(self, queue: str, items: list[bytes], ticket: T, deadline: float) -> None:
        """Let items travel as a batch of their own, with one answer."""
        line = self._lines.get(queue) or self._line(queue)
        batch = self._join(line, Batch(queue, whole=True))
        batch.items = items
        batch.tickets.append(ticket)
        batch.deadlines.append(deadline)
        batch.first_deadline = batch.last_deadline = deadline
        batch.size = sum(map(len, items))
        self.outstanding += len(items)
        self.outstanding_bytes += batch.size

    def _line(self, queue: str) -> _Line[T]:
        # Here, once for many items, and before any of them is in the books.
        check_text("queue", queue)
        line: _Line[T] = _Line(queue)
        self._lines[queue] = line
        return line

    def take(self, now: float) -> Batch[T] | None:
        """The batch to be sent now, if any; it holds a slot until `answered` or `held`."""
        if self._in_flight >= self._in_flight_max:
            return None
        self._recall(now)
        while self._turns:
            line = self._turns.popleft()
            line.in_turn = False
            batch = line.next(now)
            if not line:
                self._forget(line)
            elif batch is not None:
                # To the end: the queues take turns.
                self._take_turns(line)
            if batch is not None:
                return self._send(batch)
        return None

    def _take_turns(self, line: _Line[T]) -> None:
        if not line.in_turn:
            line.in_turn = True
            self._turns.append(line)

    def _recall(self, now: float) -> None:
        """Let held lines whose time has come take turns again."""
        while self._recalls and self._recalls[0][0] <= now:
            line = self._lines.get(heappop(self._recalls)[1])
            if line is not None and line.held and line.held_until <= now:
                self._take_turns(line)

    def _forget(self, line: _Line[T]) -> None:
        if self._lines.get(line.queue) is line:
            del self._lines[line.queue]

    def _send(self, batch: Batch[T]) -> Batch[T]:
        if not batch.sequence:
            self._sequence += 1
            batch.sequence = self._sequence
        batch.in_flight = True
        batch.tries += 1
        self._in_flight += 1
        return batch

    def request(self, batch: Batch[T]) -> bytes:
        """The bytes of the `EnqueueBatchRequest`."""
        head = pb.EnqueueBatchRequest(
            queue=batch.queue,
            producer=pb.Producer(id=self._producer_id, sequence=batch.sequence),
        ).SerializeToString()
        return b"".join((head, *batch.items))

    def answered(self, batch: Batch[T]) -> None:
        """The broker said what became of it."""
        batch.in_flight = False
        self._in_flight -= 1
        self._drop(batch)

    def held(self, batch: Batch[T], error: FilaError, *, until: float, maybe_applied: bool) -> None:
        """The attempt failed: repeat it then, unless nobody waits for it any more."""
        batch.in_flight = False
        self._in_flight -= 1
        batch.error = error
        batch.maybe_applied = batch.maybe_applied or maybe_applied
        if not any(ticket is not None for ticket in batch.tickets):
            self._drop(batch)
            return
        line = self._lines.get(batch.queue) or self._line(batch.queue)
        line.held.append(batch)
        line.held_until = max(line.held_until, until)
        heappush(self._recalls, (line.held_until, line.queue))

    def expire(self, now: float) -> Iterator[Expired[T]]:
        """Tickets whose time is over; what was never sent is not sent any more."""
        for batch in [batch for batch in self._live if batch.first_deadline <= now]:
            yield from self._expire(batch, now)

    def _expire(self, batch: Batch[T], now: float) -> Iterator[Expired[T]]:
        maybe_applied = batch.maybe_applied or batch.in_flight
        late = [index for index, deadline in enumerate(batch.deadlines) if deadline <= now]
        for index in late:
            ticket = batch.tickets[index]
            batch.tickets[index] = None
            batch.deadlines[index] = float("inf")
            if ticket is not None:
                yield Expired(ticket, maybe_applied, batch.error)
        if not maybe_applied and not batch.whole:
            self._remove_items(batch, late)
        batch.first_deadline = min(batch.deadlines, default=float("inf"))
        if not batch.in_flight and not any(ticket is not None for ticket in batch.tickets):
            self._abandon(batch)

    def _remove_items(self, batch: Batch[T], indexes: Sequence[int]) -> None:
        for index in reversed(indexes):
            size = len(batch.items.pop(index))
            del batch.tickets[index], batch.deadlines[index]
            batch.size -= size
            self.outstanding -= 1
            self.outstanding_bytes -= size

    def _abandon(self, batch: Batch[T]) -> None:
        line = self._lines.get(batch.queue)
        if line is not None:
            if batch in line.held:
                line.held.remove(batch)
            if batch in line.waiting:
                line.waiting.remove(batch)
            if not line:
                self._forget(line)
            elif not line.held:
                self._take_turns(line)
        self._drop(batch)

    def _drop(self, batch: Batch[T]) -> None:
        self._live.discard(batch)
        self.outstanding -= len(batch.items)
        self.outstanding_bytes -= batch.size

    def next_repeat(self) -> float | None:
        """When the earliest held batch is to be repeated."""
        while self._recalls:
            until, queue = self._recalls[0]
            line = self._lines.get(queue)
            if line is not None and line.held and line.held_until == until:
                return until
            heappop(self._recalls)
        return None

    def abandon_all(self) -> Iterator[Expired[T]]:
        """Give everything up: the client closes."""
        yield from self.expire(float("inf"))
