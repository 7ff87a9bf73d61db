"""The bench: the model and all checkers, and what each is asked when.

The world tells what happened; nothing here makes anything happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from fila.core import commands as c
from fila.core.effects import Effects, Reply
from fila.core.scheduler import Scheduler
from fila.errors import FilaError
from fila.model import Outcome
from fila.storage.port import Storage
from tests.simulation import traffic
from tests.simulation.books import Books, Msg
from tests.simulation.buckets import Takes
from tests.simulation.checkers import (
    Counts,
    Disk,
    Durability,
    Idleness,
    Ledger,
    Rules,
    Timeliness,
    Tokens,
)
from tests.simulation.clients import Call
from tests.simulation.model import Dealt, Model
from tests.simulation.scarcity import Scarcity
from tests.simulation.shares import Shares
from tests.simulation.violation import require

# Everything that is stored and shown is compared after each of so many passes, and at each start.
_LOOK_CLOSELY_EVERY = 16


class Judge:
    """Follows one world from beginning to end, through all runs of its broker."""

    def __init__(
        self,
        note: Callable[[str], None],
        scheduler: Scheduler,
        storage: Storage,
        *,
        quantum: int,
        limited: bool,
    ) -> None:
        self.scheduler = scheduler
        self.storage = storage
        self.model = Model()
        self.ledger = Ledger()
        self.tokens = Tokens()
        self.durability = Durability()
        self.rules = Rules()
        self.idleness = Idleness()
        self.timeliness = Timeliness()
        self.counts = Counts()
        self.disk = Disk()
        # Limits make keys come and go in a way that only the broker knows: shares are judged where
        # there are none, and where there are, the shares of the tokens.
        self.shares = Shares(quantum)
        self.scarcity = Scarcity()
        self.takes = Takes()
        self.passes = 0
        self._quantum = quantum
        self._limited = limited
        self._note = note
        # By how much was written: the books then, until a sync covers it.
        self._snapshots: dict[int, Books] = {0: Books()}

    # -- what happens

    def wrote(self) -> None:
        """A batch was written."""
        self.durability.written += 1

    def synced(self, written: int) -> None:
        """A sync is done that began when this much had been written."""
        self.durability.synced = written
        self.takes.synced(written)
        for count in [count for count in self._snapshots if count < written]:
            del self._snapshots[count]

    def judge_survival(
        self, storage: Storage, *, written: int, quantum: int, now: int, wall: int, age: int
    ) -> None:
        """The broker is about to start again from what survived: so many of the writes."""
        self.storage, self._quantum = storage, quantum
        books = self._snapshots[written]
        self._snapshots = {written: books}
        self.durability.survived(written)
        books = books.copy()
        self.takes.survive(books.buckets, written)
        self.model.restart(books, now=now, wall=wall, age=age)
        self.shares.restart(quantum)
        self.scarcity.restart()
        self.disk.judge(self.model, storage)

    def judge_start(self, scheduler: Scheduler) -> None:
        """It has started."""
        self.scheduler = scheduler
        self.model.books.buckets.judge_levels(scheduler, self.model.now)
        self.counts.judge_all(self.model, scheduler, self._quantum)
        self.timeliness.judge_next(self.model, scheduler)

    def judge_pass(
        self,
        commands: Sequence[c.Command],
        effects: Effects,
        *,
        now: int,
        wall: int,
        age: int,
    ) -> None:
        """One pass, written but not let out."""
        model, scheduler = self.model, self.scheduler
        due = model.begin_pass(now=now, wall=wall, age=age)
        replies = deque(effects.replies)
        for command in commands:
            self._judge_command(command, replies)
        require(not replies, "replies", "replies that nobody asked for:", list(replies))
        closed = {(each.consumer, each.queue) for each in effects.closed}
        require(closed == model.closed, "replies", "closed", closed, "expected", model.closed)
        self._judge_deliveries(effects)
        self._number_parts()
        for msg in model.fresh:
            self.durability.accepted(model.homes[msg.item].number, msg.sequence)
        snapshot = self._snapshots.setdefault(self.durability.written, model.books.copy())
        snapshot.buckets.offset = model.books.buckets.offset
        self.passes += 1
        dealt = sum(map(len, effects.deliveries.values()))
        self._note(f"pass {len(commands)} due {due} dealt {dealt}")
        if due:
            self.timeliness.judge(model, scheduler)
        self.timeliness.judge_next(model, scheduler)
        if self.passes % _LOOK_CLOSELY_EVERY:
            self.counts.judge(model, scheduler)
        else:
            self.judge_all()

    def _judge_command(self, command: c.Command, replies: deque[tuple[object, Reply]]) -> None:
        if isinstance(command, c.OpenConsumer | c.SetCredit | c.CloseConsumer):
            traffic.apply(self.model, command, None)
            return
        require(replies, "replies", "no reply to", command)
        tag, reply = replies.popleft()
        call = command.tag
        assert isinstance(call, Call)
        require(tag is call, "replies", "the reply to", tag, "where", call, "was asked")
        call.generation = self.durability.written
        self._note(f"= {call} → {_short(reply)}")
        traffic.apply(self.model, command, reply, call.items)
        if isinstance(command, c.Enqueue) and call.items:
            # The first outcome's, if this is a repeat and the queue is another by now.
            again = command.known is not None
            home = self.model.homes.get(call.items[0])
            call.part = home if again else self.model.books.part_of(command.queue)

    def _judge_deliveries(self, effects: Effects) -> None:
        model = self.model
        # Tokens count up, so they tell in which order the broker chose.
        dealt = sorted(
            (
                Dealt(
                    consumer=consumer,
                    queue=message.queue.name,
                    sequence=message.sequence,
                    token=token,
                    attempts=message.attempts,
                    reason=message.dead.reason.name if message.dead else "",
                    source=message.dead.source_queue if message.dead else "",
                    last_error=message.last_error,
                )
                for consumer, batch in effects.deliveries.items()
                for message, token in batch
            ),
            key=lambda each: each.token,
        )
        self._narrow_weights()
        if not self._limited:
            self.shares.begin_deliveries(model.books.shelves)
        for each in dealt:
            self.tokens.given(each)
            shelf, msg = model.find_ready(each)
            self.rules.judge(shelf, msg, model.takers.get(each.consumer), each)
            self._judge_tokens(msg, each)
            if not self._limited:
                self.shares.served(shelf, msg.spec.fairness_key, msg.spec.cost)
            model.lease(shelf, msg, each)
            if not self._limited:
                self.shares.left(shelf, msg.spec.fairness_key)

    def _judge_tokens(self, msg: Msg, dealt: Dealt) -> None:
        names = msg.spec.throttle_keys
        self.model.books.buckets.take(names, self.model.age, dealt)
        self.takes.taken(self.durability.written, self.model.age, names, dealt.token)
        self.scarcity.dealt(msg)

    def _narrow_weights(self) -> None:
        """Where two clocks made messages ready in one pass, only the broker knows the newest."""
        for shelf in self.model.books.shelves:
            open_keys = [key for key in shelf.newest if len(shelf.weights(key)) > 1]
            if open_keys:
                stats = self.scheduler.stats(shelf.name, now_ns=self.model.now)
                told = {key.key: key.weight for key in stats.keys if key.pending}
                for key in open_keys:
                    if told.get(key) in shelf.weights(key):
                        shelf.narrow(key, told[key])

    def _number_parts(self) -> None:
        for part in self.model.books.parts:
            if not part.number:
                part.number = self.scheduler.partition_of(part.shelves[0].name)
        self.ledger.partitions = {part.number for part in self.model.books.parts}

    def judge_idleness(self) -> None:
        """The broker has nothing to do at once."""
        books = self.model.books
        free = [taker for taker in self.model.takers.values() if taker.credit > taker.held]
        able = [
            shelf
            for shelf in books.shelves
            if shelf.ready
            and not shelf.paused
            and any(shelf.name in taker.queues for taker in free)
        ]
        self.idleness.judge(able, books.buckets, self.model.age)
        if self._limited:
            self.scarcity.judge(books.shelves, able, books.buckets, self._quantum)

    def judge_all(self) -> None:
        """Compare everything that is shown and stored."""
        self.disk.judge(self.model, self.storage)
        self.counts.judge_all(self.model, self.scheduler, self._quantum)

    def judge_end(self) -> None:
        """All is over."""
        left = sum(shelf.depth for shelf in self.model.books.shelves)
        require(not left, "ledger", left, "messages never came")
        self.judge_all()
        self.ledger.close(self.model.books.fates)
        require(self.storage.unreadable_count == 0, "disk", "unreadable records")


def _short(reply: Reply) -> str:
    if isinstance(reply, FilaError):
        return type(reply).__name__
    if isinstance(reply, Outcome):
        return f"{reply.first_seq}+{reply.count}-{len(reply.errors)}"
    return str(reply)
