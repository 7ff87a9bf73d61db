"""Drives a scheduler by hand: a clock that stands still until it is moved, and a store in memory.

What a test asks for is one pass each; passes that the scheduler still owes follow at once.
"""

from collections.abc import Sequence
from typing import NamedTuple

from fila.core import commands as c
from fila.core.effects import Closed, Effects, Mutation, RedriveResult, Reply, SettleResult
from fila.core.message import Message
from fila.core.records import Entry
from fila.core.scheduler import Scheduler
from fila.core.views import KeyStats
from fila.errors import FilaError
from fila.model import (
    NS_PER_MS,
    NS_PER_S,
    FailureDecision,
    Outcome,
    ProducerSequence,
    QueueSettings,
    Spec,
    Timing,
)
from fila.storage.memory import MemoryStorage

START_WALL_NS = 1_700_000_000 * NS_PER_S
QUEUE = "jobs"
DLQ = "jobs.dlq"


class Delivery(NamedTuple):
    """A message as it was when it was delivered."""

    consumer: int
    queue: str
    key: str
    sequence: int
    token: int
    attempts: int
    spec: Spec
    message: Message


class Driver:
    """One broker without a shell."""

    def __init__(self, *, quantum: int = 1, stored: bool = True) -> None:
        self.now_ns = 0
        self.wall_ns = START_WALL_NS
        self.quantum = quantum
        # A test with a great backlog and no restart does without.
        self.storage = MemoryStorage() if stored else None
        self.scheduler = Scheduler(epoch=self.storage.epoch if self.storage else 1, quantum=quantum)
        self.delivered: list[Delivery] = []
        self.closed: list[Closed] = []
        self.mutations: list[Mutation] = []
        self._consumers = 0

    def run(self, *commands: c.Command) -> list[Reply]:
        """One pass, and those that are owed then; the replies of all."""
        replies = [reply for _, reply in self.step(*commands).replies]
        while self.due_ns() == 0:
            replies += [reply for _, reply in self.step().replies]
        return replies

    def step(self, *commands: c.Command) -> Effects:
        """One pass and no more."""
        effects = self.scheduler.handle(commands, now_ns=self.now_ns, wall_ns=self.wall_ns)
        if self.storage is not None:
            self.storage.write(effects.mutations)
        self.mutations = effects.mutations
        self.closed += effects.closed
        for consumer, batch in effects.deliveries.items():
            for message, token in batch:
                assert message.consumer == consumer
                self.delivered.append(_snapshot(consumer, message, token))
        return effects

    def do(self, command: c.Command) -> Reply:
        """One command: its reply, or its error raised."""
        (reply,) = self.run(command)
        if isinstance(reply, FilaError):
            raise reply
        return reply

    def due_ns(self) -> int | None:
        """How long until there is work."""
        return self.scheduler.next_due_ns(now_ns=self.now_ns, wall_ns=self.wall_ns)

    def pass_time(self, seconds: float) -> None:
        """Both clocks move on, then what is due falls due."""
        self.now_ns += round(seconds * NS_PER_S)
        self.wall_ns += round(seconds * NS_PER_S)
        self.run()

    def jump(self, seconds: float) -> None:
        """Someone sets the wall clock."""
        self.wall_ns += round(seconds * NS_PER_S)
        self.run()

    def restart(self, *, down_s: float = 0) -> None:
        """Start again from what is stored; the clock that never goes back starts anew."""
        assert self.storage is not None
        self.storage = self.storage.crash()
        self.wall_ns += round(down_s * NS_PER_S)
        self.now_ns = 0
        self.scheduler = Scheduler(epoch=self.storage.epoch, quantum=self.quantum)
        recovered = self.storage.recover()
        self.scheduler.restore(recovered, now_ns=self.now_ns, wall_ns=self.wall_ns)
        self.delivered.clear()
        self.run()

    def create(self, queue: str = QUEUE, settings: QueueSettings | None = None) -> None:
        """A queue with its dead-letter queue."""
        self.do(c.CreateQueue(tag=0, queue=queue, settings=settings or QueueSettings()))

    def enqueue(
        self,
        count: int = 1,
        *,
        queue: str = QUEUE,
        spec: Spec | None = None,
        timing: Timing | None = None,
    ) -> list[int]:
        """Messages that are alike; their sequences."""
        outcome = self.accept([spec or Spec()] * count, queue=queue, timing=timing)
        assert not outcome.errors
        return list(range(outcome.first_seq, outcome.first_seq + count))

    def enqueue_one(
        self, *, queue: str = QUEUE, spec: Spec | None = None, timing: Timing | None = None
    ) -> int:
        """One message; its sequence."""
        return self.enqueue(queue=queue, spec=spec, timing=timing)[0]

    def enqueue_key(self, key: str, count: int = 1, *, weight: int = 1, cost: int = 1) -> list[int]:
        """Messages of one fairness key."""
        return self.enqueue(count, spec=Spec(fairness_key=key, weight=weight, cost=cost))

    def accept(
        self,
        specs: Sequence[Spec],
        *,
        queue: str = QUEUE,
        timing: Timing | None = None,
        producer: ProducerSequence | None = None,
    ) -> Outcome:
        """A batch, its outcome looked up before if it may be a repeat."""
        known = None
        if producer and self.storage and self.scheduler.needs_lookup(queue, producer):
            known = self.storage.read_outcome(self.scheduler.partition_of(queue), producer)
        reply = self.do(
            c.Enqueue(
                tag=0,
                queue=queue,
                bodies=[b""] * len(specs),
                specs=specs,
                timings=dict.fromkeys(range(len(specs)), timing) if timing else {},
                producer=producer,
                known=known,
            )
        )
        assert isinstance(reply, Outcome)
        return reply

    def consume(
        self, *queues: str, credit: int = 100, name: str = "", release_on_disconnect: bool = False
    ) -> int:
        """A new consumer of the queues."""
        self._consumers += 1
        number = self._consumers
        opened = c.OpenConsumer(
            consumer=number,
            credit=credit,
            name=name,
            release_on_disconnect=release_on_disconnect,
        )
        wanted = queues or (QUEUE,)
        subscribed = [c.Subscribe(tag=0, consumer=number, queue=queue) for queue in wanted]
        assert self.run(opened, *subscribed) == [None] * len(wanted)
        return number

    def set_credit(self, consumer: int, credit: int) -> None:
        """A consumer wants more, or less."""
        self.run(c.SetCredit(consumer=consumer, credit=credit))

    def close(self, consumer: int, *unsent: Delivery) -> None:
        """A consumer goes."""
        names = [(delivery.queue, delivery.sequence, delivery.token) for delivery in unsent]
        self.run(c.CloseConsumer(consumer=consumer, unsent=names))

    def take(self, count: int = 1, *, queue: str = QUEUE) -> list[Delivery]:
        """The next messages of a queue, to a consumer that is then gone."""
        before = len(self.delivered)
        self.close(self.consume(queue, credit=count))
        taken = self.delivered[before:]
        assert len(taken) <= count
        return taken

    def take_one(self, *, queue: str = QUEUE) -> Delivery:
        """The next message of a queue; there must be one."""
        (delivery,) = self.take(queue=queue)
        return delivery

    def settle(
        self,
        action: c.Action,
        *deliveries: Delivery,
        error: str = "",
        delay_ms: int | None = None,
        dead_letter: bool = False,
        decisions: Sequence[FailureDecision | None] | None = None,
    ) -> SettleResult:
        """Say of deliveries of one queue what became of them."""
        reply = self.do(
            c.Settle(
                tag=0,
                queue=deliveries[0].queue,
                action=action,
                sequences=[delivery.sequence for delivery in deliveries],
                tokens=[delivery.token for delivery in deliveries],
                error=error,
                delay_ms=delay_ms,
                dead_letter=dead_letter,
                decisions=decisions,
            )
        )
        assert isinstance(reply, SettleResult)
        return reply

    def ack(self, *deliveries: Delivery) -> SettleResult:
        """Done."""
        return self.settle(c.Action.ACK, *deliveries)

    def nack(
        self,
        *deliveries: Delivery,
        error: str = "",
        delay_ms: int | None = None,
        dead_letter: bool = False,
        decisions: Sequence[FailureDecision | None] | None = None,
    ) -> SettleResult:
        """Failed."""
        return self.settle(
            c.Action.NACK,
            *deliveries,
            error=error,
            delay_ms=delay_ms,
            dead_letter=dead_letter,
            decisions=decisions,
        )

    def release(self, *deliveries: Delivery) -> SettleResult:
        """Not begun."""
        return self.settle(c.Action.RELEASE, *deliveries)

    def extend(self, *deliveries: Delivery, delay_ms: int | None = None) -> SettleResult:
        """Still at it."""
        return self.settle(c.Action.EXTEND, *deliveries, delay_ms=delay_ms)

    def bury(self, count: int = 1) -> list[int]:
        """Messages that are enqueued, taken and rejected; their sequences."""
        sequences = self.enqueue(count)
        self.nack(*self.take(count), error="broken", dead_letter=True)
        return sequences

    def dead_letters(self, count: int = 0, *, queue: str = DLQ) -> c.Redrive:
        """A redrive of so many of those that wait now, 0 for all, which was not yet asked for."""
        assert self.storage is not None
        partition = self.scheduler.partition_of(queue)
        found = self.scheduler.backlog(queue).take(count or 1_000_000)
        entries = [self._entry(queue, sequence) for sequence, _ in found]
        known = [entry for entry in entries if entry is not None]
        assert len(known) == len(found)
        return c.Redrive(
            tag=0,
            queue=queue,
            partition=partition,
            entries=known,
            places=[place for _, place in found],
            specs=[entry.spec for entry in known],
        )

    def redrive(
        self,
        count: int = 0,
        *,
        queue: str = DLQ,
        spec: Spec | None = None,
        timing: Timing | None = None,
    ) -> RedriveResult:
        """Move dead letters back, asking for what they asked for or for something else."""
        command = self.dead_letters(count, queue=queue)
        if spec is not None:
            command.specs = [spec] * len(command.entries)
        if timing is not None:
            command.timings = dict.fromkeys(range(len(command.entries)), timing)
        reply = self.do(command)
        assert isinstance(reply, RedriveResult)
        return reply

    def purge(self, queue: str = QUEUE, *, include_leased: bool = False) -> int:
        """Empty a queue."""
        reply = self.do(c.PurgeQueue(tag=0, queue=queue, include_leased=include_leased))
        assert isinstance(reply, int)
        return reply

    def remove(self, sequence: int, queue: str = QUEUE) -> None:
        """Remove one message."""
        command = c.RemoveMessage(
            tag=0,
            queue=queue,
            message_id=str(sequence),
            partition=self.scheduler.partition_of(queue),
            entry=self._entry(queue, sequence),
        )
        self.do(command)

    def reschedule(self, sequence: int, deliver_at_ns: int, queue: str = QUEUE) -> None:
        """Move a delayed message."""
        command = c.Reschedule(
            tag=0,
            queue=queue,
            message_id=str(sequence),
            partition=self.scheduler.partition_of(queue),
            entry=self._entry(queue, sequence),
            deliver_at_ns=deliver_at_ns,
        )
        self.do(command)

    def pause(self, queue: str = QUEUE, *, paused: bool = True) -> None:
        """Stop deliveries, or let them go on."""
        self.do(c.PauseQueue(tag=0, queue=queue, paused=paused))

    def depth(self, queue: str = QUEUE) -> int:
        """How many messages a queue holds."""
        return self.scheduler.summary(queue).depth

    def key(self, name: str, queue: str = QUEUE) -> KeyStats:
        """What is shown of a fairness key."""
        stats = self.scheduler.stats(queue, now_ns=self.now_ns)
        (found,) = (key for key in stats.keys if key.key == name)
        return found

    def stored_sequences(self, queue: str = QUEUE) -> list[int]:
        """What the store has of a queue and its dead-letter queue."""
        assert self.storage is not None
        partition = self.scheduler.partition_of(queue)
        return [entry.sequence for entry, _, _ in self.storage.browse(partition, 0)]

    def _entry(self, queue: str, sequence: int) -> Entry | None:
        assert self.storage is not None
        return self.storage.read_entry(self.scheduler.partition_of(queue), sequence)


def after_ms(driver: Driver, delay_ms: int) -> int:
    """A wall time."""
    return driver.wall_ns + delay_ms * NS_PER_MS


def _snapshot(consumer: int, message: Message, token: int) -> Delivery:
    return Delivery(
        consumer=consumer,
        queue=message.queue.name,
        key=message.spec.fairness_key,
        sequence=message.sequence,
        token=token,
        attempts=message.attempts,
        spec=message.spec,
        message=message,
    )
