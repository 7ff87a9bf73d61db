"""Those who use the broker, with what they know: producers and consumers.

A `Call` is the tag of a command: it brings the reply home, if it is not lost on the way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fila import ids
from fila.core import commands as c
from fila.core.effects import Delivery, Reply, SettleResult
from fila.model import (
    NS_PER_S,
    FailureDecision,
    ItemError,
    Outcome,
    ProducerSequence,
    Spec,
    Timing,
)
from tests.simulation.books import Part, Place
from tests.simulation.checkers import item_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.world import World

# A client that has not heard for so long stops asking: outcomes are kept for ten minutes.
_GIVE_UP_NS = 540 * NS_PER_S


@dataclass(slots=True)
class Call:
    """One request on its way."""

    what: str
    answer: Callable[[Reply], None]
    items: Sequence[int] = ()
    # How much had been written when it was decided.
    generation: int = 0
    # Where the messages of an enqueue went.
    part: Part | None = None
    # Where those of a redrive were when they were looked up.
    places: Sequence[Place] = ()

    def __repr__(self) -> str:
        return self.what


def ignore(_reply: Reply) -> None:
    """Nobody waits for this reply."""


@dataclass(slots=True)
class Batch:
    """An enqueue that is sent until it is answered."""

    queue: str
    items: list[int]
    specs: list[Spec]
    timings: dict[int, Timing]
    refused: tuple[ItemError, ...]
    producer: ProducerSequence | None
    first_sent: int


class Producer:
    """Sends batches; what is not answered it sends again, under the same sequence."""

    def __init__(self, world: World, name: str, *, retries: bool) -> None:
        self.world = world
        self.name = name
        self.retries = retries
        self.unanswered: dict[int, Batch] = {}
        self._lives = 0
        self._sequence = 0

    def enqueue(self, queue: str, specs: list[Spec]) -> None:
        """Send something new."""
        world, rng = self.world, self.world.rng
        self._sequence += 1
        timings = {}
        for index in range(len(specs)):
            timing = world.palette.timing(world.wall)
            if timing is not None:
                timings[index] = timing
        refused: tuple[ItemError, ...] = ()
        if rng.random() < 0.05:
            place = rng.randint(0, len(specs))
            refused = (ItemError(place, "INVALID_ARGUMENT", "over a limit"),)
        name = f"{self.name}.{self._lives}".encode()
        producer = ProducerSequence(name, self._sequence) if self.retries else None
        items = world.new_items(len(specs))
        batch = Batch(queue, items, specs, timings, refused, producer, world.age)
        if self.retries:
            self.unanswered[self._sequence] = batch
        self._send(batch)

    def retry(self) -> None:
        """Send again what was not answered."""
        for sequence, batch in list(self.unanswered.items()):
            if self.world.age - batch.first_sent > _GIVE_UP_NS:
                del self.unanswered[sequence]
            else:
                self._send(batch)

    def crash(self) -> None:
        """Forget everything; whoever comes next has another producer id."""
        self.unanswered.clear()
        self._lives += 1
        self._sequence = 0

    def _send(self, batch: Batch) -> None:
        def answer(reply: Reply) -> None:
            self._answered(batch, call, reply)

        what = f"enqueue {batch.queue} {batch.items} {batch.producer}"
        call = Call(what, answer, batch.items)
        self.world.submit(
            c.Enqueue(
                tag=call,
                queue=batch.queue,
                bodies=[item_body(item) for item in batch.items],
                specs=batch.specs,
                timings=batch.timings,
                refused=batch.refused,
                producer=batch.producer,
            )
        )

    def _answered(self, batch: Batch, call: Call, reply: Reply) -> None:
        if batch.producer is not None:
            self.unanswered.pop(batch.producer.sequence, None)
        if not isinstance(reply, Outcome):
            return
        refused = {error.index for error in reply.errors}
        own = {error.index for error in batch.refused}
        columns = [index for index in range(reply.count) if index not in own]
        sequence = reply.first_seq
        for item, index in zip(batch.items, columns, strict=True):
            if index not in refused:
                # 0 where the queue was deleted in the same pass: nobody can know the id.
                partition = call.part.number if call.part else 0
                low = ids.id_low(sequence, partition)
                self.world.ledger.accepted(item, (reply.id_high, low) if partition else None)
                sequence += 1


@dataclass(frozen=True, slots=True)
class Held:
    """A message that a consumer works on, as the consumer knows it."""

    queue: str
    partition: int
    sequence: int
    id_high: int
    token: int
    item: int


@dataclass(slots=True)
class Stream:
    """An open stream: the broker's end of it, with what was not sent yet."""

    number: int
    release_on_disconnect: bool
    waiting: deque[Delivery] = field(default_factory=deque)


class Consumer:
    """Opens streams, works on what comes, and settles it, well or badly."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.stream: Stream | None = None
        self.held: list[Held] = []
        self.old: deque[Held] = deque(maxlen=60)

    def open(self, queues: Sequence[str], credit: int, *, release: bool) -> None:
        """Begin a stream."""
        world = self.world
        number = world.attach(self)
        self.stream = Stream(number, release)
        world.submit(
            c.OpenConsumer(
                consumer=number, credit=credit, name=self.name, release_on_disconnect=release
            )
        )
        for queue in queues:
            self.subscribe(queue)

    def subscribe(self, queue: str) -> None:
        """Ask for a queue's messages."""
        if self.stream is not None:
            call = Call(f"{self.name} subscribe {queue}", ignore)
            number = self.stream.number
            self.world.submit(c.Subscribe(tag=call, consumer=number, queue=queue))

    def unsubscribe(self, queue: str) -> None:
        """No more of this queue."""
        stream = self.stream
        if stream is None:
            return

        def confirmed(_reply: Reply) -> None:
            gone = [each for each in stream.waiting if each[0].queue.name == queue]
            for each in gone:
                stream.waiting.remove(each)
            self.world.give_back(gone)

        call = Call(f"{self.name} unsubscribe {queue}", confirmed)
        self.world.submit(c.Unsubscribe(tag=call, consumer=stream.number, queue=queue))

    def set_credit(self, credit: int) -> None:
        """Ask for more or less."""
        if self.stream is not None:
            self.world.submit(c.SetCredit(consumer=self.stream.number, credit=credit))
            if not credit and self.world.rng.random() < 0.5:
                self.world.give_back(list(self.stream.waiting))
                self.stream.waiting.clear()

    def disconnect(self) -> None:
        """Go; what was not sent goes back at once."""
        if self.stream is None:
            return
        stream, self.stream = self.stream, None
        self.world.detach(stream.number)
        unsent = [(m.queue.name, m.sequence, token) for m, token in stream.waiting]
        self.world.submit(c.CloseConsumer(consumer=stream.number, unsent=unsent))
        if stream.release_on_disconnect or self.world.rng.random() < 0.5:
            self._forget()

    def broker_lost(self) -> None:
        """The connection broke. What is held may still be settled later."""
        self.stream = None
        if self.world.rng.random() < 0.3:
            self._forget()

    def take_in(self) -> None:
        """Read what the stream has: bytes are looked up now, leases that are over are skipped."""
        stream = self.stream
        if stream is None:
            return
        count = self.world.rng.randint(1, 6)
        while stream.waiting and count:
            count -= 1
            held = self.world.send_delivery(stream.waiting.popleft())
            if held is not None:
                self.held.append(held)

    def settle(self) -> None:
        """Do something about some of what is held, all of one queue."""
        rng = self.world.rng
        if not self.held:
            return
        queue = rng.choice(self.held).queue
        mine = [held for held in self.held if held.queue == queue]
        chosen = mine[: rng.randint(1, len(mine))]
        kind = rng.random()
        keep = kind > 0.93
        if not keep:
            for held in chosen:
                self.held.remove(held)
                self.old.append(held)
        if kind < 0.7:
            self.ack(chosen)
        elif kind < 0.85:
            self._nack(chosen)
        elif kind < 0.93:
            self._release(chosen)
        else:
            span = rng.choice((None, 1000, 60_000))
            self._settle(chosen, c.Action.EXTEND, delay_ms=span)

    def settle_stale(self) -> None:
        """Settle what was settled before, or is lost since: it must not matter."""
        if self.old:
            with_another = [held for held in self.old if self.world.is_with_another(held)]
            held = self.world.rng.choice(with_another or list(self.old))
            action = self.world.rng.choice(list(c.Action))
            if action is c.Action.ACK:
                self.ack([held, held])
            else:
                self._settle([held], action)

    def ack(self, chosen: Sequence[Held]) -> None:
        """Done."""
        for held in chosen:
            self.world.ledger.ack_asked.add(held.item)

        def answer(reply: Reply) -> None:
            if isinstance(reply, SettleResult):
                refused = {error.index for error in reply.errors}
                for index, held in enumerate(chosen):
                    if index not in refused:
                        self.world.ledger.acked(held.item)

        self._settle(chosen, c.Action.ACK, answer=answer)

    def _nack(self, chosen: Sequence[Held]) -> None:
        rng = self.world.rng
        delay = rng.choice((None, None, 0, 5, 2000, 100_000))
        decisions = None
        if rng.random() < self.world.shape.decisions:
            decisions = [self.world.palette.decision() for _ in chosen]
        self._settle(
            chosen,
            c.Action.NACK,
            error=f"error {rng.randrange(100)}",
            delay_ms=delay,
            dead_letter=rng.random() < 0.15,
            decisions=decisions,
        )

    def _release(self, chosen: Sequence[Held]) -> None:
        self._settle(chosen, c.Action.RELEASE)

    def _settle(
        self,
        chosen: Sequence[Held],
        action: c.Action,
        *,
        answer: Callable[[Reply], None] = ignore,
        error: str = "",
        delay_ms: int | None = None,
        dead_letter: bool = False,
        decisions: Sequence[FailureDecision | None] | None = None,
    ) -> None:
        world = self.world
        queue = chosen[0].queue
        plain = world.rng.random() < 0.15
        known = world.known(queue)
        if not known:
            return
        tokens = [0 if plain else held.token for held in chosen]
        # As the server does: an id of another partition is nobody's, and so is one that comes
        # without a token and is not stored.
        sequences = [
            held.sequence if held.partition == known and (not plain or world.is_stored(held)) else 0
            for held in chosen
        ]
        what = f"{self.name} {action.value} {queue} {sequences} {tokens}"
        world.submit(
            c.Settle(
                tag=Call(what, answer),
                queue=queue,
                action=action,
                sequences=sequences,
                tokens=tokens,
                partition=known,
                error=error,
                delay_ms=delay_ms,
                dead_letter=dead_letter,
                decisions=decisions,
            )
        )

    def _forget(self) -> None:
        self.old.extend(self.held)
        self.held.clear()
