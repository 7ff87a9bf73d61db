"""A broker and its clients in one deterministic world.

The scheduler, the gate, the records and the recovery are the real ones; the store keeps its bytes
in memory and knows which of them a power cut would take. Passes, syncs, lost replies, crashes and
clocks are drawn from the seed, so a seed is a whole story and tells it the same every time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from random import Random
from unittest.mock import patch

from fila import ids
from fila.core import commands as c
from fila.core import delivery
from fila.core.effects import Delivery
from fila.core.gate import Gate, Released
from fila.core.records import Status
from fila.core.scheduler import Scheduler
from fila.errors import QueueNotFoundError
from fila.model import NS_PER_S
from fila.storage.memory import MemoryStorage
from tests.simulation.books import Stage
from tests.simulation.checkers import item_body
from tests.simulation.clients import Call, Consumer, Held, Producer, ignore
from tests.simulation.judge import Judge
from tests.simulation.operators import DeadLetters, Found, Operator
from tests.simulation.shapes import HOUR_NS, Palette, shape_of
from tests.simulation.violation import ViolationError, require

# 2026-01-01; the steady clock begins anywhere.
_WALL_START_NS = 1_767_225_600 * NS_PER_S
_PASSES_IN_A_ROW_MAX = 3000
_DRAIN_ROUNDS_MAX = 1500


class Broker:
    """One run of the broker's process: what dies in a crash."""

    def __init__(self, storage: MemoryStorage, *, quantum: int) -> None:
        self.storage = storage
        self.scheduler = Scheduler(epoch=storage.epoch, quantum=quantum)
        self.gate = Gate()
        self.inbox: deque[c.Command] = deque()
        # The gate's and the store's mark of the sync that is running, and what was written then.
        self.syncing: tuple[int, int, int] | None = None
        self.streams: dict[int, Consumer] = {}

    def look_up(self, commands: Sequence[c.Command]) -> None:
        """Fetch the outcomes of enqueues that may be repeats."""
        for command in commands:
            if isinstance(command, c.Enqueue) and command.producer is not None:
                try:
                    if self.scheduler.needs_lookup(command.queue, command.producer):
                        partition = self.scheduler.partition_of(command.queue)
                        command.known = self.storage.read_outcome(partition, command.producer)
                except QueueNotFoundError:
                    continue


class World:
    """Everything, from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.shape = shape_of(seed)
        self.palette = Palette(self.rng, self.shape)
        self.now = self.rng.randrange(10**15)
        # The clients' own clock, which no restart of the broker changes.
        self.age = 0
        self.wall = _WALL_START_NS + self.rng.randrange(HOUR_NS)
        self.quantum = self.rng.choice((1, 1, 1, 1000))
        self.broker = Broker(MemoryStorage(), quantum=self.quantum)
        self.judge = Judge(
            self.note,
            self.broker.scheduler,
            self.broker.storage,
            quantum=self.quantum,
            limited=self.shape.limits > 0,
        )
        self.model, self.ledger = self.judge.model, self.judge.ledger
        self.producers = [
            Producer(self, "p", retries=True),
            Producer(self, "o", retries=True),
            Producer(self, "v1", retries=False),
        ]
        self.consumers = [Consumer(self, f"c{index}") for index in range(3)]
        self.operator = Operator(self)
        self.trace: list[str] = []
        self.crashes = 0
        self._digest = blake2b(digest_size=8)
        self._items = 0
        self._streams = 0
        self._calm = False

    # -- the story

    def run(self) -> str:
        """Live through it, let everything end well, and tell the hash of the trace."""
        with patch.object(delivery, "DELIVERIES_MAX", self.shape.deliveries_max):
            try:
                self._begin()
                for _ in range(self.shape.steps):
                    self._step()
                self._drain()
            except ViolationError:
                raise
            except Exception as error:
                # Whatever the broker stumbles over, the seed must be told with it.
                raise ViolationError("crash", f"{type(error).__name__}: {error}") from error
        return self.trace_hash

    @property
    def trace_hash(self) -> str:
        """What two runs of one seed have in common."""
        return self._digest.hexdigest()

    def note(self, text: str) -> None:
        """Append to the trace."""
        self.trace.append(text)
        self._digest.update(text.encode())

    def _begin(self) -> None:
        self.note(f"seed {self.seed}: {self.shape.name}, quantum {self.quantum}")
        for queue in self.shape.queues:
            if not queue.endswith(".dlq") or self.rng.random() < 0.5:
                self.operator.create(queue)
        for name in self.palette.throttle_names:
            self.operator.limit(name)
        self.run_pass()
        for key in self.palette.names:
            for queue in self.broker.scheduler.queue_names():
                count = self.shape.backlog // self.shape.keys
                if count and not queue.endswith(".dlq"):
                    specs = [self.palette.spec(key) for _ in range(count)]
                    self.producers[0].enqueue(queue, specs)
        for consumer in self.consumers:
            self._open(consumer)

    def _step(self) -> None:
        actions = self.shape.actions
        action = self.rng.choices(list(actions), list(actions.values()))[0]
        match action:
            case "pass":
                self.run_passes()
            case "sync":
                self._sync_step()
            case "kill" | "cut":
                self._crash(action)
            case "time" | "due" | "idle" | "jump":
                self._pass_time(action)
            case "enqueue" | "retry" | "producer_crash":
                self._produce(action)
            case "admin":
                self.operator.act()
            case "update":
                self.operator.update()
            case "limit":
                self.operator.limit()
            case _:
                self._consume(action)

    def _produce(self, action: str) -> None:
        producer = self.rng.choice(self.producers)
        if action == "retry":
            producer.retry()
        elif action == "producer_crash":
            producer.crash()
        else:
            count = self.rng.randint(1, self.shape.batch_max)
            specs = [self.palette.spec() for _ in range(count)]
            producer.enqueue(self.rng.choice(self.shape.queues), specs)

    def _consume(self, action: str) -> None:
        consumer = self.rng.choice(self.consumers)
        if consumer.stream is None and action in {"stream", "credit", "transmit"}:
            self._open(consumer)
            return
        match action:
            case "transmit":
                consumer.take_in()
            case "settle":
                consumer.settle()
            case "stale":
                consumer.settle_stale()
            case "credit":
                consumer.set_credit(self.rng.choice((0, *range(1, self.shape.credit_max))))
            case "disconnect":
                consumer.disconnect()
            case "stream":
                queue = self.rng.choice(self.shape.queues) + self.rng.choice(("", ".dlq"))
                if self.rng.random() < 0.3:
                    consumer.unsubscribe(queue)
                else:
                    consumer.subscribe(queue)

    def _open(self, consumer: Consumer) -> None:
        queues = [queue for queue in self.shape.queues if self.rng.random() < 0.8]
        credit = self.rng.randint(1, self.shape.credit_max)
        consumer.open(queues, credit, release=self.rng.random() < 0.5)

    def _pass_time(self, action: str) -> None:
        before = (self.now, self.wall)
        match action:
            case "time":
                self._advance(self.palette.pause_ns())
            case "due":
                wait = self.broker.scheduler.next_due_ns(now_ns=self.now, wall_ns=self.wall)
                self._advance(min(wait or 0, 3 * HOUR_NS) + self.rng.choice((-1, 0, 0, 1, 10**7)))
            case "idle":
                self._advance(self.rng.randrange(2 * HOUR_NS))
            case _:
                self.wall += self.rng.choice((-HOUR_NS, HOUR_NS))
        self.note(f"{action} {self.now - before[0]} {self.wall - before[1]}")

    def _advance(self, span: int) -> None:
        self.age += max(0, span)
        self.now += max(0, span)
        self.wall += max(0, span)

    # -- what clients use

    def new_items(self, count: int) -> list[int]:
        """Numbers for new messages."""
        first = self._items + 1
        self._items += count
        return list(range(first, first + count))

    def submit(self, command: c.Command) -> None:
        """A command arrives at the broker."""
        self.note(f"< {_describe(command)}")
        self.broker.inbox.append(command)

    def attach(self, consumer: Consumer) -> int:
        """Where deliveries of a new stream go."""
        self._streams += 1
        self.broker.streams[self._streams] = consumer
        return self._streams

    def detach(self, number: int) -> None:
        """That stream is over."""
        self.broker.streams.pop(number, None)

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Release what was never sent."""
        by_queue: dict[str, list[Delivery]] = {}
        for each in deliveries:
            by_queue.setdefault(each[0].queue.name, []).append(each)
        for queue, batch in by_queue.items():
            sequences = [message.sequence for message, _ in batch]
            self.submit(
                c.Settle(
                    tag=Call(f"give back {queue} {sequences}", ignore),
                    queue=queue,
                    action=c.Action.RELEASE,
                    sequences=sequences,
                    tokens=[token for _, token in batch],
                )
            )

    def send_delivery(self, each: Delivery) -> Held | None:
        """The stream writes a delivery, unless its lease has ended meanwhile."""
        message, token = each
        if message.token != token or message.status is not Status.LEASED:
            return None
        if message.queue.leased.get(message.sequence) is not message:
            return None
        partition = message.queue.partition.number
        stored = self.broker.storage.read_messages(partition, [message.sequence])[0]
        shelf = self.model.books.shelf(message.queue.name)
        msg = shelf.leased.get(message.sequence) if shelf else None
        if msg is None or stored is None:
            raise ViolationError("ledger", f"sent what is not there: {message.sequence}")
        require(item_body(msg.item) in stored, "ledger", "sent another's bytes:", msg)
        self.judge.durability.delivered(partition, message.sequence)
        self.ledger.seen(msg.item, (msg.id_high, ids.id_low(msg.sequence, partition)))
        self.note(f"> {msg.queue} {msg.item} {token}")
        return Held(msg.queue, partition, msg.sequence, msg.id_high, token, msg.item)

    def known(self, queue: str) -> int:
        """The number of a queue's partition; 0 if there is no such queue."""
        try:
            return self.broker.scheduler.partition_of(queue)
        except QueueNotFoundError:
            return 0

    def is_stored(self, held: Held) -> bool:
        """Whether the id is a message's in full."""
        entry = self.broker.storage.read_entry(held.partition, held.sequence)
        return entry is not None and entry.id_high == held.id_high

    def is_with_another(self, held: Held) -> bool:
        """Whether the message has been leased again since."""
        shelf = self.model.books.shelf(held.queue)
        msg = shelf.leased.get(held.sequence) if shelf else None
        return msg is not None and msg.token != held.token

    def some_message(self, *, delayed: bool = False) -> Found | None:
        """Any message of any queue, looked up as the server does it."""
        shelves = [shelf for shelf in self.model.books.shelves if shelf.depth]
        if not shelves:
            return None
        shelf = self.rng.choice(shelves)
        messages = list(shelf.delayed.values()) if delayed else []
        msg = self.rng.choice(messages or list(shelf.messages()))
        partition = self.known(shelf.name)
        entry = self.broker.storage.read_entry(partition, msg.sequence)
        return Found(shelf.name, msg.sequence, partition, entry)

    def dead_letters(self, queue: str, count: int) -> DeadLetters | None:
        """The oldest of what waits in a dead-letter queue, looked up as the server does it."""
        shelf, number = self.model.books.shelf(queue), self.known(queue)
        if shelf is None or not number:
            return None
        found = self.broker.scheduler.backlog(queue).take(count)
        waiting = {msg.sequence: msg for msg in shelf.messages() if msg.stage is not Stage.LEASED}
        seen = [waiting.pop(sequence, None) for sequence, _ in found]
        places = [msg.place for msg in seen if msg is not None]
        behind = [msg.place for msg in waiting.values()]
        whole = len(places) == min(count, len(places) + len(behind)) == len(found)
        require(whole, "redrive", queue, "has", found, "and", seen)
        for before, after in [
            *pairwise(places),
            *((places[-1], each) for each in behind if places),
        ]:
            require(not after.is_before(before), "order", queue, after, "came after", before)
        entries = self.broker.storage.read_entries(number, [sequence for sequence, _ in found])
        known = [entry for entry in entries if entry is not None]
        require(len(known) == len(found), "disk", queue, "lacks some of", found)
        return DeadLetters(known, [place for _, place in found], places)

    # -- passes and syncs

    def run_passes(self) -> None:
        """A pass, and as many more as are due at once."""
        broker = self.broker
        self.run_pass()
        for _ in range(_PASSES_IN_A_ROW_MAX):
            if self.broker is not broker:
                return
            if self.broker.scheduler.next_due_ns(now_ns=self.now, wall_ns=self.wall) != 0:
                break
            self.run_pass()
        else:
            raise ViolationError("idleness", "the broker spins")
        self.judge.judge_idleness()

    def run_pass(self) -> None:
        """Drain, decide, write, let out: as the broker's runner does."""
        broker, fate = self.broker, self._fate()
        commands = list(broker.inbox)
        broker.inbox.clear()
        broker.look_up(commands)
        effects = broker.scheduler.handle(commands, now_ns=self.now, wall_ns=self.wall)
        if fate == "before the write":
            self._crash("kill")
            return
        if effects.mutations:
            broker.storage.write(effects.mutations)
            self.judge.wrote()
        self.judge.judge_pass(commands, effects, now=self.now, wall=self.wall, age=self.age)
        if fate == "before the release":
            self._crash(self.rng.choice(("kill", "cut")))
            return
        self._let_out(broker.gate.pass_through(effects))

    def _fate(self) -> str:
        """Now and then the broker dies in the middle of a pass."""
        risk = self.shape.actions.get("cut", 0) / 400
        if self._calm or self.rng.random() >= risk:
            return ""
        return self.rng.choice(("before the write", "before the release"))

    def _let_out(self, released: Released) -> None:
        for tag, reply in released.replies:
            assert isinstance(tag, Call)
            self.judge.durability.replied(tag.generation, tag)
            if self._calm or self.rng.random() >= self.shape.lost_replies:
                tag.answer(reply)
            else:
                self.note(f"lost: {tag}")
        for number, deliveries in released.deliveries.items():
            for message, token in deliveries:
                self.judge.durability.delivered(message.queue.partition.number, message.sequence)
                self.judge.tokens.left(number, token)
                self.judge.takes.left(token)
            consumer = self.broker.streams.get(number)
            if consumer is None or consumer.stream is None:
                self.give_back(deliveries)
            else:
                consumer.stream.waiting.extend(deliveries)

    def _sync_step(self) -> None:
        """Begin a sync, or end the one that runs."""
        broker = self.broker
        if broker.syncing is None:
            if broker.gate.needs_sync:
                mark = broker.storage.begin_sync()
                broker.syncing = (broker.gate.begin_sync(), mark, self.judge.durability.written)
                self.note("sync begins")
            return
        generation, mark, written = broker.syncing
        broker.syncing = None
        broker.storage.end_sync(mark)
        self.judge.synced(written)
        if self._fate():
            self._crash("cut")
            return
        self.note("sync ends")
        self._let_out(broker.gate.end_sync(generation))

    # -- crashes

    def _crash(self, how: str) -> None:
        """The process dies, or the power fails; then the broker starts again."""
        self.crashes += 1
        storage, written = self.broker.storage, self.judge.durability.written
        kept = unsynced = storage.unsynced_count
        if how == "cut":
            kept = self.rng.randint(0, unsynced)
            written -= unsynced - kept
            storage = storage.crash(power_cut=True, kept=kept)
        else:
            storage = storage.crash()
        if self.rng.random() < 0.3:
            self.now = self.rng.randrange(10**15)
        self._advance(self.rng.choice((0, self.palette.pause_ns(), self.rng.randrange(HOUR_NS))))
        if self.rng.random() < 0.1:
            self.wall += self.rng.choice((-HOUR_NS, HOUR_NS))
        if self.rng.random() < 0.1:
            self.quantum = self.rng.choice((1, 1000))
        self.note(f"{how}, {kept} of {unsynced} unsynced writes kept")
        self.broker = Broker(storage, quantum=self.quantum)
        self.judge.judge_survival(
            storage,
            written=written,
            quantum=self.quantum,
            now=self.now,
            wall=self.wall,
            age=self.age,
        )
        recovered = storage.recover()
        self.broker.scheduler.restore(recovered, now_ns=self.now, wall_ns=self.wall)
        self.judge.judge_start(self.broker.scheduler)
        for consumer in self.consumers:
            consumer.broker_lost()

    # -- the end

    def _drain(self) -> None:
        """No more faults: everybody gets what was promised, until nothing is left."""
        self._calm = True
        self.note("drain")
        for consumer in self.consumers:
            consumer.disconnect()
        self.operator.resume_all()
        self.operator.lift_all()
        self._settle_down()
        last = self.consumers[0]
        last.held.clear()
        last.open(self.broker.scheduler.queue_names(), 500, release=True)
        for _ in range(_DRAIN_ROUNDS_MAX):
            self._settle_down()
            last.take_in()
            while last.held:
                queue = last.held[0].queue
                mine = [held for held in last.held if held.queue == queue]
                last.held = [held for held in last.held if held.queue != queue]
                last.ack(mine)
            if not any(shelf.depth for shelf in self.model.books.shelves):
                break
            if not (self.broker.inbox or (last.stream and last.stream.waiting)):
                self._advance(self.model.next_due() or 0)
        self._settle_down()
        self.judge.judge_end()

    def _settle_down(self) -> None:
        self.run_passes()
        while self.broker.syncing or self.broker.gate.needs_sync or self.broker.inbox:
            self._sync_step()
            if self.broker.inbox:
                self.run_passes()


def _describe(command: c.Command) -> str:
    if isinstance(command, c.OpenConsumer):
        return f"open {command.consumer} credit {command.credit}"
    if isinstance(command, c.SetCredit):
        return f"credit {command.consumer} {command.credit}"
    if isinstance(command, c.CloseConsumer):
        return f"close {command.consumer} unsent {len(command.unsent)}"
    return str(command.tag)
