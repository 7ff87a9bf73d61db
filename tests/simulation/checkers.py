"""Who watches what: each class keeps its own small notes and objects by name.

`Ledger` and `Tokens` know only what clients were told. `Durability` knows what has been written and
synced. `Rules` judges single deliveries, `Idleness` and `Timeliness` what is left after a pass, and
`Counts` and `Disk` compare the broker's figures and its storage with the model's books. Shares have
a module of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from fila import ids
from fila.core.records import Entry, Progress, Status
from fila.core.scheduler import Scheduler
from fila.model import is_dlq
from fila.storage.port import Storage
from fila.wire.envelope import metadata_part
from tests.simulation.books import Msg, Part, Place, Shelf, Stage
from tests.simulation.buckets import Buckets
from tests.simulation.model import Dealt, Model, Taker
from tests.simulation.violation import ViolationError, require


@dataclass(slots=True)
class _Item:
    """What clients know of one message."""

    id: tuple[int, int] | None = None
    acknowledged: bool = False


class Ledger:
    """Nothing answered is lost, nothing acknowledged returns, no enqueue appears twice."""

    def __init__(self) -> None:
        self._items: dict[int, _Item] = {}
        self._by_id: dict[tuple[int, int], int] = {}
        self.answered: set[int] = set()
        # The numbers of the partitions there are.
        self.partitions: set[int] = set()
        self.ack_asked: set[int] = set()
        self.delivered = 0
        self.acknowledged = 0

    def accepted(self, item: int, message_id: tuple[int, int] | None) -> None:
        """A client was told that its message is safe, under this id if it can be known."""
        if message_id is not None:
            self._identify(item, message_id)
        self.answered.add(item)

    def seen(self, item: int, message_id: tuple[int, int]) -> None:
        """A client was given a message."""
        self.delivered += 1
        self._identify(item, message_id)
        require(
            not self._items[item].acknowledged, "ledger", "item", item, "returned after its ack"
        )

    def acked(self, item: int) -> None:
        """A client was told that its ack is safe."""
        self.acknowledged += 1
        self._items[item].acknowledged = True

    def close(self, fates: dict[int, str]) -> None:
        """All is over: every message that was promised must have had an end that was asked for."""
        for item in sorted(self.answered):
            fate = fates.get(item)
            require(fate is not None, "ledger", "item", item, "was accepted, and is lost")
            asked = fate != "acked" or item in self.ack_asked
            require(asked, "ledger", "item", item, "counts as acknowledged, and nobody did")

    def _identify(self, item: int, message_id: tuple[int, int]) -> None:
        high, low = message_id
        uuid7 = high >> 12 & 0xF == 7 and low >> 62 == 0b10
        require(uuid7, "ids", ids.id_text(high, low), "is not a UUIDv7")
        known = self._items.setdefault(item, _Item())
        if known.id not in {None, message_id} and partition_of(known.id) not in self.partitions:
            # Its queue was deleted, and a repeat came to one that was created since.
            known.id, known.acknowledged = None, False
        if known.id is None:
            known.id = message_id
        require(known.id == message_id, "ledger", "item", item, "is there twice:", known.id)
        owner = self._by_id.setdefault(message_id, item)
        require(owner == item, "ids", "items", owner, "and", item, "share an id")


class Tokens:
    """Lease tokens are never given twice, whatever happens to the broker, and count up."""

    def __init__(self) -> None:
        self._given: set[int] = set()
        # By consumer: the last that left.
        self._left: dict[int, int] = {}

    def given(self, dealt: Dealt) -> None:
        """A delivery was announced."""
        require(dealt.token, "leases", "a delivery without a token:", dealt)
        require(dealt.token not in self._given, "leases", "token repeated:", dealt)
        self._given.add(dealt.token)

    def left(self, consumer: int, token: int) -> None:
        """A delivery leaves: behind those that were announced to this consumer before."""
        before = self._left.get(consumer, 0)
        require(token > before, "order", "delivery", token, "to", consumer, "overtook", before)
        self._left[consumer] = token


class Durability:
    """What leaves the broker promises nothing that a power cut could take back."""

    def __init__(self) -> None:
        self.written = 0
        self.synced = 0
        self._accepted: dict[tuple[int, int], int] = {}

    def accepted(self, partition: int, sequence: int) -> None:
        """A message is in the batch written last."""
        self._accepted[partition, sequence] = self.written

    def survived(self, written: int) -> None:
        """After a crash, what is there is safe."""
        self.written = self.synced = written
        self._accepted.clear()

    def replied(self, generation: int, what: object) -> None:
        """A reply leaves that was decided when this much had been written."""
        safe = generation <= self.synced
        require(safe, "durability", "a reply overtook its sync:", what)

    def delivered(self, partition: int, sequence: int) -> None:
        """A delivery leaves."""
        generation = self._accepted.get((partition, sequence), 0)
        text = f"message {sequence} of partition {partition} left before it was synced"
        require(generation <= self.synced, "durability", text)


class Rules:
    """What must hold for each single delivery."""

    def judge(self, shelf: Shelf, msg: Msg, taker: Taker | None, dealt: Dealt) -> None:
        """Before the books know of it."""
        require(not shelf.paused, "rules", "delivered from a paused queue:", dealt)
        if taker is None or shelf.name not in taker.queues:
            raise ViolationError("rules", f"delivered to nobody who asked: {dealt}")
        room = taker.credit - taker.held
        require(room > 0, "credit", "delivered beyond the credit of", taker, dealt)
        self._judge_order(shelf, msg)
        self._judge_attempts(shelf, msg, dealt)
        letter = (dealt.reason, dealt.source) == (msg.reason, msg.source)
        require(letter, "letters", dealt, "of", msg)
        require(dealt.last_error == msg.last_error, "letters", dealt, "of", msg)

    def _judge_order(self, shelf: Shelf, msg: Msg) -> None:
        for other in shelf.ready[msg.spec.fairness_key].values():
            # One with other throttle keys may be held back where this one is not.
            alike = other.spec.throttle_keys == msg.spec.throttle_keys
            if alike and other.goes_before(msg):
                raise ViolationError("order", f"{shelf.name}: {msg} overtook {other}")

    def _judge_attempts(self, shelf: Shelf, msg: Msg, dealt: Dealt) -> None:
        require(dealt.attempts == msg.attempts, "attempts", dealt, "of", msg)
        limit = shelf.attempts_limit
        within = not limit or msg.tries < limit
        require(within, "attempts", msg, "is delivered more than", limit, "times")


class Idleness:
    """An eligible message and a consumer with room never both wait."""

    def judge(self, able: list[Shelf], buckets: Buckets, age: int) -> None:
        """After a pass that left nothing for the next; consumers of `able` queues have room."""
        for shelf in able:
            for messages in shelf.ready.values():
                for msg in messages.values():
                    idle = buckets.could_go(msg, able, age)
                    require(not idle, "idleness", msg, "and a consumer both wait;", buckets.pails)


class Timeliness:
    """What falls due does so in the first pass after its time, and the broker wakes for it."""

    def judge(self, model: Model, scheduler: Scheduler) -> None:
        """After a pass."""
        for shelf in model.books.shelves:
            stats = scheduler.stats(shelf.name, now_ns=model.now)
            told = (stats.ready, stats.delayed, stats.summary.in_flight)
            expected = (shelf.ready_count, len(shelf.delayed), len(shelf.leased))
            require(told == expected, "timers", shelf.name, told, "expected", expected)
        self.judge_next(model, scheduler)

    def judge_next(self, model: Model, scheduler: Scheduler) -> None:
        """The broker does not mean to sleep through anything."""
        expected = model.next_due()
        if expected is not None:
            told = scheduler.next_due_ns(now_ns=model.now, wall_ns=model.wall)
            awake = told is not None and told <= expected
            require(awake, "timers", "next due is", told, "expected", expected)


class Counts:
    """The figures that the broker shows are the books' figures."""

    def judge(self, model: Model, scheduler: Scheduler) -> None:
        """The short figures, after every pass."""
        shelves = model.books.shelves
        names = sorted(shelf.name for shelf in shelves)
        require(scheduler.queue_names() == names, "counts", "queues", names)
        for shelf in shelves:
            told = scheduler.summary(shelf.name)
            subscribed = sum(shelf.name in taker.queues for taker in model.takers.values())
            expected = (shelf.depth, len(shelf.leased), shelf.paused, subscribed)
            shown = (told.depth, told.in_flight, told.paused, told.consumers)
            require(shown == expected, "counts", shelf.name, shown, "expected", expected)

    def judge_all(self, model: Model, scheduler: Scheduler, server_quantum: int) -> None:
        """Everything that can be seen."""
        self.judge(model, scheduler)
        require(scheduler.config == model.books.config, "counts", "config", scheduler.config)
        for shelf in model.books.shelves:
            self._judge_queue(shelf, model, scheduler, server_quantum)
        told = {view.number: view for view in scheduler.consumers(None, now_ns=model.now)}
        require(told.keys() == model.takers.keys(), "counts", "consumers", told)
        for number, taker in model.takers.items():
            view = told[number]
            shown = (view.credit, view.held, set(view.queues))
            expected = (taker.credit, taker.held, taker.queues)
            require(shown == expected, "counts", "consumer", number, ":", shown, expected)

    def _judge_queue(
        self, shelf: Shelf, model: Model, scheduler: Scheduler, server_quantum: int
    ) -> None:
        require(scheduler.settings(shelf.name) == shelf.settings, "counts", shelf.name, "is set")
        stats = scheduler.stats(shelf.name, now_ns=model.now)
        quantum = shelf.settings.quantum or server_quantum
        shown = (stats.ready, stats.delayed, stats.quantum)
        expected = (shelf.ready_count, len(shelf.delayed), quantum)
        require(shown == expected, "counts", shelf.name, shown, "expected", expected)
        # Those whose messages a limit holds back, or held back a moment ago, are not active.
        limited = any(msg.spec.throttle_keys for msg in shelf.messages())
        active, keys = stats.active_keys, len(shelf.ready)
        right = active <= keys if limited else active == keys
        require(right, "counts", shelf.name, active, "active keys, expected", keys)
        told = {key.key: key for key in stats.keys}
        for name in {msg.spec.fairness_key for msg in shelf.messages()}:
            require(name in told, "counts", shelf.name, "key", name, "is not shown")
            key = told[name]
            pending = shelf.pending(name)
            in_flight = sum(m.spec.fairness_key == name for m in shelf.leased.values())
            figures = (key.pending, key.in_flight) == (pending, in_flight)
            require(figures, "counts", shelf.name, key, ",", pending, "pending,", in_flight, "out")
            if pending:
                weights = shelf.weights(name)
                known = key.weight in weights
                require(known, "weights", shelf.name, name, "has", key.weight, ", not", weights)


class Disk:
    """Storage holds what the books hold, no more and no less."""

    def judge(self, model: Model, storage: Storage) -> None:
        """Read everything back."""
        recovered = storage.recover()
        told = {queue.name: queue.partition for queue in recovered.queues}
        expected = {shelf.name: part.number for part in model.books.parts for shelf in part.shelves}
        require(told == expected, "disk", "queues", told, "expected", expected)
        numbers = {record.number for record in recovered.partitions}
        require(numbers == set(told.values()), "disk", "partitions", numbers, "of", told)
        for part in model.books.parts:
            self._judge_part(part, storage)

    def _judge_part(self, part: Part, storage: Storage) -> None:
        expected = {msg.sequence: msg for shelf in part.shelves for msg in shelf.messages()}
        places: dict[tuple[str, str], list[tuple[int, Place]]] = {}
        found: set[int] = set()
        for entry, progress, stored in storage.browse(part.number, 0):
            msg = expected.get(entry.sequence)
            if msg is None:
                raise ViolationError("disk", f"partition {part.number} has a ghost: {entry}")
            found.add(entry.sequence)
            self._judge_row(part, msg, entry, progress)
            whole = item_body(msg.item) in stored
            require(whole, "disk", "the bytes of", msg, "are another's")
            tells = metadata_part(msg.spec, _home(part, msg)) in stored
            require(tells, "disk", "the bytes of", msg, "tell something else")
            if msg.stage is Stage.READY:
                place = progress.place if progress else entry.sequence
                lane = (msg.queue, msg.spec.fairness_key)
                places.setdefault(lane, []).append((place, msg.place))
        lost = expected.keys() - found
        require(not lost, "disk", "partition", part.number, "lacks", [expected[s] for s in lost])
        for lane, pairs in places.items():
            pairs.sort()
            for (_, before), (_, after) in pairwise(pairs):
                require(not after.is_before(before), "disk", lane, after, "after", before)

    def _judge_row(self, part: Part, msg: Msg, entry: Entry, progress: Progress | None) -> None:
        require((entry.id_high, entry.spec) == (msg.id_high, msg.spec), "disk", entry, "of", msg)
        if msg.expires and not msg.delivered:
            require(entry.expires_at_ns == msg.expires, "disk", entry, "of", msg)
        if progress is None:
            fresh = msg.stage is Stage.READY and not msg.attempts and not msg.reason
            home = entry.in_dlq == (part.dlq is not None and msg.queue == part.dlq.name)
            require(fresh and home and not msg.delivered, "disk", "no progress of", msg)
            return
        stage = {Status.READY: Stage.READY, Status.DELAYED: Stage.DELAYED}.get(
            progress.status, Stage.LEASED
        )
        queue = part.dlq if progress.in_dlq else part.main
        told = (queue.name if queue else "", stage, progress.attempts, progress.delivered)
        expected = (msg.queue, msg.stage, msg.attempts, msg.delivered)
        require(told == expected, "disk", progress, "of", msg)
        reason = progress.dead.reason.name if progress.dead else ""
        require((reason, progress.last_error) == (msg.reason, msg.last_error), "disk", msg)
        if msg.stage is Stage.LEASED:
            lease = (progress.token, progress.due_wall_ns) == (msg.token, msg.due_wall)
            require(lease, "disk", progress, "of", msg)
        if msg.stage is Stage.DELAYED:
            delay = (progress.wall_timed, progress.due_wall_ns) == (msg.wall_timed, msg.due_wall)
            require(delay, "disk", progress, "of", msg)


def _home(part: Part, msg: Msg) -> str:
    """The queue that a message belongs to, also while it is dead."""
    shelf = part.dlq if part.main is None or (is_dlq(msg.queue) and not msg.reason) else part.main
    return shelf.name if shelf else ""


def partition_of(message_id: tuple[int, int] | None) -> int:
    """The number of the partition that gave an id."""
    return message_id[1] & ((1 << ids.PARTITION_BITS) - 1) if message_id else 0


def item_body(item: int) -> bytes:
    """An item's own bytes, which no other item's bytes contain."""
    return b"\x1a" + bytes([len(b"<%d>" % item)]) + b"<%d>" % item
