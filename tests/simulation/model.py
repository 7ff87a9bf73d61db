"""What the specification says the broker does, done slowly: the judge of every pass.

It is told what was asked, at what times, what the broker answered and delivered, and objects as
soon as that is not what it would have done. Whom a message goes to and which key comes next is left
open here; the checkers of shares, credit and idleness judge that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fila.core import commands as c
from fila.core.effects import Reply
from fila.errors import (
    QueueNotFoundError,
)
from fila.model import NS_PER_MS, NS_PER_S, QueueSettings, Timing
from tests.simulation.books import Books, Msg, Part, Place, Shelf, Stage
from tests.simulation.violation import ViolationError, require

# Outcomes are kept for so long; later a repeat may be new.
OUTCOMES_KEPT_NS = 600 * NS_PER_S
# The clock that never goes back, and the wall's: what they make ready has no order among itself.
_STEADY, _WALL = 1, 2
# Whose promise is broken when a message is delivered that should have been buried.
_BURIED = {"": "ledger", "REJECTED": "letters", "MAX_ATTEMPTS": "attempts", "EXPIRED": "timers"}


@dataclass(slots=True)
class Taker:
    """A consumer."""

    number: int
    credit: int
    release_on_disconnect: bool
    queues: set[str] = field(default_factory=set)
    held: int = 0


@dataclass(slots=True)
class Dealt:
    """A delivery as the broker announced it."""

    consumer: int
    queue: str
    sequence: int
    token: int
    attempts: int
    reason: str
    source: str
    last_error: str


class Model:
    """The specification at work."""

    def __init__(self) -> None:
        self.books = Books()
        self.takers: dict[int, Taker] = {}
        self.now = 0
        self.wall = 0
        # The clients' clock.
        self.age = 0
        # Of the last pass.
        self.closed: set[tuple[int, str]] = set()
        self.fresh: list[Msg] = []
        # Where each item was accepted last.
        self.homes: dict[int, Part] = {}
        self.serial = 0

    def restart(self, books: Books, *, now: int, wall: int, age: int) -> None:
        """Go on with what survived; leases and delays are anchored to the new clock."""
        self.books = books
        self.age = age
        books.buckets.restart(age, wall - age)
        self.takers = {}
        before, self.now, self.wall = self.now, now, wall
        for shelf in books.shelves:
            for msg in [*shelf.leased.values(), *shelf.delayed.values()]:
                rest = max(0, min(msg.due_wall - wall, msg.span))
                due = msg.due_wall if msg.wall_timed and msg.stage is Stage.DELAYED else now + rest
                kept = shelf.leased if msg.stage is Stage.LEASED else shelf.delayed
                kept[msg.sequence] = msg._replace(due=due, consumer=0)
            for key, messages in shelf.ready.items():
                shelf.spells[key] = 1
                shelf.largest[key] = max(msg.spec.cost for msg in messages.values())
        # Outcomes that were still kept are kept for their whole time again.
        for part in books.parts:
            for name, known in part.outcomes.items():
                still = before - known.at <= OUTCOMES_KEPT_NS
                at = now if still else now - OUTCOMES_KEPT_NS - 1
                part.outcomes[name] = replace(known, at=at)

    def next_due(self) -> int | None:
        """How long until something falls due by itself."""
        clocks = {_STEADY: self.now, _WALL: self.wall}
        waits = [
            at - clocks[clock] for shelf in self.books.shelves for clock, at, _ in _timed(shelf)
        ]
        return max(0, min(waits)) if waits else None

    def begin_pass(self, *, now: int, wall: int, age: int) -> int:
        """Let everything fall due that is due; how much that was."""
        self.now, self.wall, self.age = now, wall, age
        self.books.buckets.offset = wall - age
        self.closed = set()
        self.fresh = []
        due = [each for shelf in self.books.shelves for each in _timed(shelf)]
        clocks = {_STEADY: now, _WALL: wall}
        due = sorted((each for each in due if each[1] <= clocks[each[0]]), key=lambda d: d[:2])
        if due:
            self.books.places += 1
            number = self.books.places
            for clock, at, msg in due:
                self._fall_due(msg, Place(number, clock, at))
        return len(due)

    def _fall_due(self, msg: Msg, place: Place) -> None:
        part = self.part(msg.queue)
        match msg.stage:
            case Stage.LEASED:
                msg = self.end_lease(msg)._replace(attempts=msg.attempts + 1)
                if self.used_up(msg):
                    self.bury(part, msg, "MAX_ATTEMPTS", place)
                else:
                    self.shelf(msg.queue).put(msg._replace(stage=Stage.READY))
            case Stage.DELAYED:
                shelf = self.shelf(msg.queue)
                shelf.take(msg)
                if 0 < msg.expires <= self.wall and not msg.delivered:
                    self.bury(part, msg, "EXPIRED", place)
                else:
                    shelf.put(msg._replace(stage=Stage.READY, place=place))
            case Stage.READY:
                self.shelf(msg.queue).take(msg)
                self.bury(part, msg, "EXPIRED", place)

    def find_ready(self, dealt: Dealt) -> tuple[Shelf, Msg]:
        """The message that the broker leases; it must be there, and be ready."""
        shelf = self.books.shelf(dealt.queue)
        if shelf is None:
            raise ViolationError("ledger", f"delivered from a queue that is gone: {dealt}")
        msg = shelf.find(dealt.sequence)
        if msg is None:
            moved = self.part(dealt.queue).find(dealt.sequence)
            checker = _BURIED[moved.reason] if moved else "ledger"
            raise ViolationError(checker, f"delivered a message that is gone: {dealt}, {moved}")
        require(msg.stage is not Stage.LEASED, "leases", "a second lease:", dealt, ",", msg)
        require(msg.stage is Stage.READY, "timers", "delivered before its time:", dealt, ",", msg)
        return shelf, msg

    def lease(self, shelf: Shelf, msg: Msg, dealt: Dealt) -> None:
        """Lease a message as the broker did."""
        shelf.take(msg)
        span = shelf.settings.visibility_timeout_ms * NS_PER_MS
        shelf.put(
            msg._replace(
                stage=Stage.LEASED,
                token=dealt.token,
                consumer=dealt.consumer,
                delivered=True,
                tries=msg.tries + 1,
                span=span,
                due=self.now + span,
                due_wall=self.wall + span,
            )
        )
        taker = self.takers.get(dealt.consumer)
        if taker is not None:
            taker.held += 1

    def end_lease(self, msg: Msg) -> Msg:
        """Out of the books, and off its consumer's hands."""
        self.shelf(msg.queue).take(msg)
        taker = self.takers.get(msg.consumer)
        if taker is not None:
            taker.held -= 1
        return msg._replace(consumer=0)

    def release(self, msg: Msg) -> None:
        """Back to its place at once, as if it had not been delivered."""
        msg = self.end_lease(msg)
        back = msg._replace(stage=Stage.READY, tries=msg.tries - 1)
        self.shelf(msg.queue).put(back)

    def used_up(self, msg: Msg) -> bool:
        """Whether it had all the attempts that its queue allows."""
        limit = self.shelf(msg.queue).settings.max_attempts
        return bool(limit) and msg.attempts >= limit

    def retry(self, shelf: Shelf, msg: Msg, delay_ms: int, place: Place | None = None) -> None:
        """Another attempt, later or at once, behind all others."""
        if delay_ms:
            shelf.put(self.delayed(msg, delay_ms * NS_PER_MS))
        else:
            place = place or self.books.next_place()
            shelf.put(msg._replace(stage=Stage.READY, place=place))

    def delayed(self, msg: Msg, span: int, *, by_wall: bool = False) -> Msg:
        """A message that waits from now on for so long."""
        return msg._replace(
            stage=Stage.DELAYED,
            due=(self.wall if by_wall else self.now) + span,
            due_wall=self.wall + span,
            span=span,
            wall_timed=by_wall,
        )

    def timed(self, shelf: Shelf, msg: Msg, timing: Timing | None) -> Msg:
        """A new message as its timing has it: delayed or not, with an end or without."""
        if timing is None:
            return msg
        ready_at = self.wall + timing.delay_ms * NS_PER_MS
        if timing.deliver_at_ns is not None:
            ready_at = max(timing.deliver_at_ns, self.wall)
        if timing.ttl_ms and not shelf.is_dlq:
            msg = msg._replace(expires=ready_at + timing.ttl_ms * NS_PER_MS)
        if ready_at == self.wall:
            return msg
        by_wall = timing.deliver_at_ns is not None
        return self.delayed(msg, ready_at - self.wall, by_wall=by_wall)

    def bury(self, part: Part, msg: Msg, reason: str, place: Place | None = None) -> None:
        """To the dead-letter queue; from there it has nowhere to go and is tried again."""
        shelf = self.shelf(msg.queue)
        if shelf.is_dlq:
            self.retry(shelf, msg, backoff_ms(shelf.settings, msg), place)
            return
        require(part.dlq is not None, "replies", msg.queue, "has no dead-letter queue")
        assert part.dlq is not None
        part.dlq.put(
            msg._replace(
                queue=part.dlq.name,
                stage=Stage.READY,
                place=place or self.books.next_place(),
                reason=reason,
                source=msg.queue,
                expires=0,
                tries=0,
            )
        )

    def drop(self, shelf: Shelf, msg: Msg, fate: str) -> None:
        """It is gone, and this is how."""
        if msg.stage is Stage.LEASED:
            self.end_lease(msg)
        else:
            shelf.take(msg)
        self.books.fates[msg.item] = fate

    def known(
        self,
        command: c.Enqueue
        | c.Settle
        | c.Subscribe
        | c.UpdateQueue
        | c.DeleteQueue
        | c.PauseQueue
        | c.PurgeQueue
        | c.RemoveMessage
        | c.Reschedule
        | c.Redrive,
        reply: Reply,
    ) -> Shelf | None:
        """The queue that a command names; if there is none, the answer must say so."""
        shelf = self.books.shelf(command.queue)
        if shelf is None:
            require(isinstance(reply, QueueNotFoundError), "replies", command, "→", reply)
        else:
            gone = isinstance(reply, QueueNotFoundError)
            require(not gone, "replies", command.queue, "is there:", reply)
        return shelf

    def shelf(self, name: str) -> Shelf:
        """A queue that is there."""
        shelf = self.books.shelf(name)
        assert shelf is not None
        return shelf

    def part(self, name: str) -> Part:
        """Where a queue is that is there."""
        part = self.books.part_of(name)
        assert part is not None
        return part


def expect(command: c.Command, reply: Reply, expected: Reply) -> None:
    """The answer must be this one."""
    same = type(reply) is type(expected) and reply == expected
    require(same, "replies", command, "→", reply, "expected", expected)


def backoff_ms(settings: QueueSettings, msg: Msg) -> int:
    """How long a message waits for its next attempt."""
    delay = settings.retry_delay_ms * settings.retry_backoff ** (msg.attempts - 1)
    return int(min(delay, settings.retry_delay_max_ms))


def _timed(shelf: Shelf) -> Iterator[tuple[int, int, Msg]]:
    """What falls due some time: by which clock, when, and what."""
    for msg in shelf.leased.values():
        yield _STEADY, msg.due, msg
    for msg in shelf.delayed.values():
        yield _WALL if msg.wall_timed else _STEADY, msg.due, msg
    for messages in shelf.ready.values():
        for msg in messages.values():
            if msg.expires and not msg.delivered:
                yield _WALL, msg.expires, msg
