"""What the specification says the broker does, done slowly: the judge of every pass.

It is told what was asked, at what times, what the broker answered and delivered, and objects as soon
as that is not what it would have done. Whom a message goes to and which key comes next is left
open here; the checkers of shares, credit and idleness judge that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fila.core import commands as c
from fila.core.effects import Reply, SettleResult
from fila.errors import (
    InvalidArgumentError,
    MessageNotFoundError,
    PreconditionError,
    QueueExistsError,
    QueueNotFoundError,
)
from fila.model import DLQ_SUFFIX, NS_PER_MS, NS_PER_S, Outcome, QueueSettings, Timing, is_dlq
from tests.simulation.books import Books, Known, Msg, Part, Place, Shelf, Stage
from tests.simulation.violation import ViolationError, require

# Outcomes are kept for so long; later a repeat may be new.
OUTCOMES_KEPT_NS = 600 * NS_PER_S
# The clock that never goes back, and the wall's: what they make ready has no order among itself.
_STEADY, _WALL = 1, 2


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
        # Of the last pass.
        self.closed: set[tuple[int, str]] = set()
        self.fresh: list[Msg] = []
        # Where each item was accepted last.
        self.homes: dict[int, Part] = {}
        self._serial = 0

    # -- crashes

    def restart(self, books: Books, *, now: int, wall: int) -> None:
        """Go on with what survived; leases and delays are anchored to the new clock."""
        self.books = books
        self.takers = {}
        self.now, self.wall = now, wall
        for shelf in books.shelves:
            for msg in [*shelf.leased.values(), *shelf.delayed.values()]:
                rest = max(0, min(msg.due_wall - wall, msg.span))
                due = msg.due_wall if msg.wall_timed and msg.stage is Stage.DELAYED else now + rest
                kept = shelf.leased if msg.stage is Stage.LEASED else shelf.delayed
                kept[msg.sequence] = msg._replace(due=due, consumer=0)
            for key, messages in shelf.ready.items():
                shelf.spells[key] = 1
                shelf.largest[key] = max(msg.spec.cost for msg in messages.values())
        # Outcomes are kept for their whole time again.
        for part in books.parts:
            part.outcomes = {key: o._replace(at=now) for key, o in part.outcomes.items()}

    # -- time

    def next_due(self) -> int | None:
        """How long until something falls due by itself."""
        waits = []
        for shelf in self.books.shelves:
            waits.extend(msg.due - self.now for msg in shelf.leased.values())
            for msg in shelf.delayed.values():
                waits.append(msg.due - (self.wall if msg.wall_timed else self.now))
            for messages in shelf.ready.values():
                waits.extend(
                    msg.expires - self.wall
                    for msg in messages.values()
                    if msg.expires and not msg.delivered
                )
        return max(0, min(waits)) if waits else None

    def begin_pass(self, *, now: int, wall: int) -> int:
        """Let everything fall due that is due; how much that was."""
        self.now, self.wall = now, wall
        self.closed = set()
        self.fresh = []
        steady: list[tuple[int, Msg]] = []
        walled: list[tuple[int, Msg]] = []
        for shelf in self.books.shelves:
            steady.extend((m.due, m) for m in shelf.leased.values() if m.due <= now)
            for msg in shelf.delayed.values():
                if msg.wall_timed and msg.due <= wall:
                    walled.append((msg.due, msg))
                elif not msg.wall_timed and msg.due <= now:
                    steady.append((msg.due, msg))
            for messages in shelf.ready.values():
                for msg in messages.values():
                    if msg.expires and not msg.delivered and msg.expires <= wall:
                        walled.append((msg.expires, msg))
        if not steady and not walled:
            return 0
        self.books.places += 1
        number = self.books.places
        for clock, due in ((_STEADY, steady), (_WALL, walled)):
            for at, msg in sorted(due, key=lambda pair: pair[0]):
                self._fall_due(msg, Place(number, clock, at))
        return len(steady) + len(walled)

    def _fall_due(self, msg: Msg, place: Place) -> None:
        part = self._part(msg.queue)
        match msg.stage:
            case Stage.LEASED:
                msg = self._end_lease(msg)._replace(attempts=msg.attempts + 1)
                if self._used_up(msg):
                    self._bury(part, msg, "MAX_ATTEMPTS", place)
                else:
                    self._shelf(msg.queue).put(msg._replace(stage=Stage.READY))
            case Stage.DELAYED:
                shelf = self._shelf(msg.queue)
                shelf.take(msg)
                shelf.put(msg._replace(stage=Stage.READY, place=place))
            case Stage.READY:
                self._shelf(msg.queue).take(msg)
                self._bury(part, msg, "EXPIRED", place)

    # -- commands

    def apply(self, command: c.Command, reply: Reply, items: Sequence[int] = ()) -> None:
        """Carry out a command, and compare the answer. `items` are those of an enqueue."""
        match command:
            case c.Enqueue():
                self._enqueue(command, reply, items)
            case c.Settle():
                self._settle(command, reply)
            case c.OpenConsumer():
                self.takers[command.consumer] = Taker(
                    command.consumer, command.credit, command.release_on_disconnect
                )
            case c.Subscribe():
                self._subscribe(command, reply)
            case c.Unsubscribe():
                if command.consumer in self.takers:
                    self.takers[command.consumer].queues.discard(command.queue)
                _expect(command, reply, None)
            case c.SetCredit():
                if command.consumer in self.takers:
                    self.takers[command.consumer].credit = command.credit
            case c.CloseConsumer():
                self._close(command)
            case _:
                self._administer(command, reply)

    def _administer(self, command: c.Command, reply: Reply) -> None:
        match command:
            case c.CreateQueue():
                self._create(command, reply)
            case c.UpdateQueue():
                self._update(command, reply)
            case c.DeleteQueue():
                self._delete(command, reply)
            case c.PauseQueue():
                shelf = self._known(command, reply)
                if shelf is not None:
                    shelf.paused = command.paused
                    _expect(command, reply, None)
            case c.PurgeQueue():
                self._purge(command, reply)
            case c.RemoveMessage():
                self._remove(command, reply)
            case c.Reschedule():
                self._reschedule(command, reply)
            case c.SetConfig():
                _expect(command, reply, command.key in self.books.config)
                self.books.config.pop(command.key, None)
                if command.value:
                    self.books.config[command.key] = command.value

    def _enqueue(self, command: c.Enqueue, reply: Reply, items: Sequence[int]) -> None:
        shelf = self._known(command, reply)
        if shelf is None:
            return
        part = self._part(command.queue)
        count = len(command.bodies) + len(command.refused)
        earlier = self._earlier(part, command)
        if earlier is not None and earlier.count != count:
            require(isinstance(reply, InvalidArgumentError), "replies", f"{command} → {reply}")
            return
        if not isinstance(reply, Outcome):
            raise ViolationError("replies", f"an enqueue was answered {reply!r}")
        if earlier is not None:
            if self.now - earlier.at <= OUTCOMES_KEPT_NS:
                same = (reply.id_high, reply.first_seq) == (earlier.id_high, earlier.first_seq)
                require(same, "ledger", f"a repeat was accepted anew: {reply}, first {earlier}")
            if reply.first_seq == earlier.first_seq:
                _same_errors(reply, earlier.errors)
                return
        self._accept(part, shelf, command, reply, items)

    def _earlier(self, part: Part, command: c.Enqueue) -> Known | None:
        if command.producer is None:
            return None
        if command.known is not None:
            # Looked up before the pass; the queue may have been made anew since.
            known = command.known
            return Known(known.id_high, known.first_seq, known.count, known.errors, self.now)
        return part.outcomes.get(command.producer)

    def _accept(
        self, part: Part, shelf: Shelf, command: c.Enqueue, reply: Outcome, items: Sequence[int]
    ) -> None:
        room = len(command.bodies)
        if shelf.settings.max_depth:
            room = max(0, min(room, shelf.settings.max_depth - shelf.depth))
        refused = {error.index: error.code for error in command.refused}
        count = len(command.bodies) + len(refused)
        accepted = [index for index in range(count) if index not in refused]
        refused.update(dict.fromkeys(accepted[room:], "RESOURCE_EXHAUSTED"))
        told = {error.index: error.code for error in reply.errors}
        require(told == refused, "replies", f"refused {told}, expected {refused}")
        require((reply.count, reply.at_ns) == (count, self.wall), "replies", f"{reply}")
        for index in range(room):
            msg = Msg(
                item=items[index],
                sequence=reply.first_seq + index,
                id_high=reply.id_high,
                queue=shelf.name,
                spec=command.specs[index],
                place=self.books.next_place(),
            )
            id_pair = (msg.id_high, msg.sequence)
            require(id_pair > part.last_id, "ids", f"{id_pair} after {part.last_id}")
            part.last_id = id_pair
            self.homes[msg.item] = part
            self.fresh.append(msg)
            shelf.put(self._timed(shelf, msg, command.timings.get(index)))
        if command.producer is not None:
            part.outcomes[command.producer] = Known(
                reply.id_high, reply.first_seq, reply.count, reply.errors, self.now
            )

    def _timed(self, shelf: Shelf, msg: Msg, timing: Timing | None) -> Msg:
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
        return self._delayed(msg, ready_at - self.wall, by_wall=by_wall)

    def _delayed(self, msg: Msg, span: int, *, by_wall: bool = False) -> Msg:
        return msg._replace(
            stage=Stage.DELAYED,
            due=(self.wall if by_wall else self.now) + span,
            due_wall=self.wall + span,
            span=span,
            wall_timed=by_wall,
        )

    def _settle(self, command: c.Settle, reply: Reply) -> None:
        shelf = self._known(command, reply)
        if shelf is None:
            return
        require(isinstance(reply, SettleResult), "replies", f"a settle was answered {reply!r}")
        assert isinstance(reply, SettleResult)
        live: dict[int, Msg] = {}
        missing: set[int] = set()
        for index, (sequence, token) in enumerate(
            zip(command.sequences, command.tokens, strict=True)
        ):
            msg = shelf.leased.get(sequence)
            if msg is None or sequence in live or (token and token != msg.token):
                missing.add(index)
            else:
                live[sequence] = msg
        told = {error.index for error in reply.errors}
        require(missing <= told, "leases", f"settled without a live lease: {command} → {reply}")
        require(told <= missing, "replies", f"refused a live lease: {command} → {reply}")
        codes = {error.code for error in reply.errors}
        require(codes <= {"NOT_FOUND"}, "replies", f"{command} → {reply}")
        for msg in live.values():
            self._settle_one(shelf, command, msg)

    def _settle_one(self, shelf: Shelf, command: c.Settle, msg: Msg) -> None:
        match command.action:
            case c.Action.ACK:
                self._end_lease(msg)
                self.books.fates[msg.item] = "acked"
            case c.Action.RELEASE:
                self._release(msg)
            case c.Action.EXTEND:
                span = (command.delay_ms or shelf.settings.visibility_timeout_ms) * NS_PER_MS
                shelf.leased[msg.sequence] = msg._replace(
                    due=self.now + span, due_wall=self.wall + span, span=span
                )
            case c.Action.NACK:
                self._nack(shelf, command, msg)

    def _nack(self, shelf: Shelf, command: c.Settle, msg: Msg) -> None:
        msg = self._end_lease(msg)
        msg = msg._replace(attempts=msg.attempts + 1, last_error=command.error)
        part = self._part(shelf.name)
        if command.dead_letter:
            self._bury(part, msg, "REJECTED")
        elif self._used_up(msg):
            self._bury(part, msg, "MAX_ATTEMPTS")
        else:
            delay = command.delay_ms
            self._retry(shelf, msg, _backoff_ms(shelf.settings, msg) if delay is None else delay)

    def _release(self, msg: Msg) -> None:
        msg = self._end_lease(msg)
        back = msg._replace(stage=Stage.READY, tries=msg.tries - 1)
        self._shelf(msg.queue).put(back)

    def _end_lease(self, msg: Msg) -> Msg:
        self._shelf(msg.queue).take(msg)
        taker = self.takers.get(msg.consumer)
        if taker is not None:
            taker.held -= 1
        return msg._replace(consumer=0)

    def _used_up(self, msg: Msg) -> bool:
        limit = self._shelf(msg.queue).settings.max_attempts
        return bool(limit) and msg.attempts >= limit

    def _retry(
        self, shelf: Shelf, msg: Msg, delay_ms: int, place: Place | None = None
    ) -> None:
        if delay_ms:
            shelf.put(self._delayed(msg, delay_ms * NS_PER_MS))
        else:
            place = place or self.books.next_place()
            shelf.put(msg._replace(stage=Stage.READY, place=place))

    def _bury(self, part: Part, msg: Msg, reason: str, place: Place | None = None) -> None:
        """To the dead-letter queue; from there it has nowhere to go and is tried again."""
        shelf = self._shelf(msg.queue)
        if shelf.is_dlq:
            self._retry(shelf, msg, _backoff_ms(shelf.settings, msg), place)
            return
        require(part.dlq is not None, "replies", f"{msg.queue} has no dead-letter queue")
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

    def _subscribe(self, command: c.Subscribe, reply: Reply) -> None:
        if self._known(command, reply) is None:
            return
        _expect(command, reply, None)
        if command.consumer in self.takers:
            self.takers[command.consumer].queues.add(command.queue)

    def _close(self, command: c.CloseConsumer) -> None:
        taker = self.takers.pop(command.consumer, None)
        if taker is None:
            return
        unsent = list(command.unsent)
        for shelf in self.books.shelves:
            for msg in list(shelf.leased.values()):
                if msg.consumer != taker.number:
                    continue
                if taker.release_on_disconnect or (shelf.name, msg.sequence, msg.token) in unsent:
                    self._release(msg)
                else:
                    shelf.leased[msg.sequence] = msg._replace(consumer=0)

    def _create(self, command: c.CreateQueue, reply: Reply) -> None:
        name, settings = command.queue, command.settings
        if self.books.shelf(name) is not None:
            require(isinstance(reply, QueueExistsError), "replies", f"{command} → {reply!r}")
            return
        _expect(command, reply, None)
        dlq = is_dlq(name)
        sibling = name.removesuffix(DLQ_SUFFIX) if dlq else name + DLQ_SUFFIX
        part = self.books.part_of(sibling)
        if part is None or (part.dlq if dlq else part.main) is not None:
            self._serial += 1
            part = Part(self._serial)
            self.books.parts.append(part)
        if dlq:
            part.dlq = Shelf(name, replace(settings, max_attempts=0))
            return
        part.main = Shelf(name, settings, attempts_limit=settings.max_attempts)
        if part.dlq is None:
            timeout = settings.visibility_timeout_ms
            part.dlq = Shelf(
                sibling, QueueSettings(visibility_timeout_ms=timeout, max_attempts=0)
            )

    def _update(self, command: c.UpdateQueue, reply: Reply) -> None:
        shelf = self._known(command, reply)
        if shelf is None:
            return
        _expect(command, reply, None)
        if shelf.is_dlq:
            shelf.settings = replace(command.settings, max_attempts=0)
            return
        shelf.settings = command.settings
        limit = command.settings.max_attempts
        if not limit or not shelf.attempts_limit:
            shelf.attempts_limit = 0
        else:
            shelf.attempts_limit = max(shelf.attempts_limit, limit)

    def _delete(self, command: c.DeleteQueue, reply: Reply) -> None:
        shelf = self._known(command, reply)
        if shelf is None:
            return
        part = self._part(command.queue)
        dead = part.dlq.depth if part.dlq else 0
        attached = shelf.is_dlq and part.main is not None
        if attached or (command.keep_dead_letters and dead):
            require(isinstance(reply, PreconditionError), "replies", f"{command} → {reply!r}")
            return
        _expect(command, reply, None)
        for member in part.shelves:
            for msg in list(member.messages()):
                self._drop(member, msg, "deleted")
            for taker in self.takers.values():
                if member.name in taker.queues:
                    taker.queues.discard(member.name)
                    self.closed.add((taker.number, member.name))
        self.books.parts.remove(part)

    def _purge(self, command: c.PurgeQueue, reply: Reply) -> None:
        shelf = self._known(command, reply)
        if shelf is None:
            return
        gone = [
            msg
            for msg in shelf.messages()
            if command.include_leased or msg.stage is not Stage.LEASED
        ]
        _expect(command, reply, len(gone))
        for msg in gone:
            self._drop(shelf, msg, "purged")

    def _drop(self, shelf: Shelf, msg: Msg, fate: str) -> None:
        if msg.stage is Stage.LEASED:
            self._end_lease(msg)
        else:
            shelf.take(msg)
        self.books.fates[msg.item] = fate

    def _waiting(
        self, command: c.RemoveMessage | c.Reschedule, reply: Reply
    ) -> tuple[Shelf, Msg] | None:
        shelf = self._known(command, reply)
        if shelf is None:
            return None
        msg = shelf.find(command.entry.sequence) if command.entry else None
        if msg is None or command.entry is None or msg.id_high != command.entry.id_high:
            gone = isinstance(reply, MessageNotFoundError | PreconditionError)
            require(gone, "replies", f"{command} → {reply!r}")
            return None
        if msg.stage is Stage.LEASED:
            require(isinstance(reply, PreconditionError), "replies", f"{command} → {reply!r}")
            return None
        return shelf, msg

    def _remove(self, command: c.RemoveMessage, reply: Reply) -> None:
        found = self._waiting(command, reply)
        if found is not None:
            _expect(command, reply, None)
            self._drop(*found, "removed")

    def _reschedule(self, command: c.Reschedule, reply: Reply) -> None:
        found = self._waiting(command, reply)
        if found is None:
            return
        shelf, msg = found
        if msg.stage is not Stage.DELAYED:
            require(isinstance(reply, PreconditionError), "replies", f"{command} → {reply!r}")
            return
        _expect(command, reply, None)
        due_wall = max(command.deliver_at_ns, self.wall)
        if msg.expires and not msg.delivered:
            msg = msg._replace(expires=msg.expires + due_wall - msg.due_wall)
        shelf.delayed[msg.sequence] = self._delayed(msg, due_wall - self.wall, by_wall=True)

    # -- deliveries

    def find_ready(self, dealt: Dealt) -> tuple[Shelf, Msg]:
        """The message that the broker leases; it must be there, and be ready."""
        shelf = self.books.shelf(dealt.queue)
        if shelf is None:
            raise ViolationError("ledger", f"delivered from a queue that is gone: {dealt}")
        msg = shelf.find(dealt.sequence)
        if msg is None:
            raise ViolationError("ledger", f"delivered a message that is gone: {dealt}")
        require(msg.stage is not Stage.LEASED, "leases", f"a second lease: {dealt}, {msg}")
        require(msg.stage is Stage.READY, "timers", f"delivered before its time: {dealt}, {msg}")
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

    # -- look-ups

    def _known(
        self,
        command: c.Enqueue
        | c.Settle
        | c.Subscribe
        | c.UpdateQueue
        | c.DeleteQueue
        | c.PauseQueue
        | c.PurgeQueue
        | c.RemoveMessage
        | c.Reschedule,
        reply: Reply,
    ) -> Shelf | None:
        shelf = self.books.shelf(command.queue)
        if shelf is None:
            require(isinstance(reply, QueueNotFoundError), "replies", f"{command} → {reply!r}")
        else:
            gone = isinstance(reply, QueueNotFoundError)
            require(not gone, "replies", f"{command.queue} is there: {reply!r}")
        return shelf

    def _shelf(self, name: str) -> Shelf:
        shelf = self.books.shelf(name)
        assert shelf is not None
        return shelf

    def _part(self, name: str) -> Part:
        part = self.books.part_of(name)
        assert part is not None
        return part


def _expect(command: c.Command, reply: Reply, expected: Reply) -> None:
    same = type(reply) is type(expected) and reply == expected
    require(same, "replies", f"{command} → {reply!r}, expected {expected!r}")


def _same_errors(reply: Outcome, errors: Sequence[object]) -> None:
    require(tuple(reply.errors) == tuple(errors), "replies", f"{reply}, first with {errors}")


def _backoff_ms(settings: QueueSettings, msg: Msg) -> int:
    delay = settings.retry_delay_ms * settings.retry_backoff ** (msg.attempts - 1)
    return int(min(delay, settings.retry_delay_max_ms))
