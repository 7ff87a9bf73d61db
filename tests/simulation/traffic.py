"""The model's side of what clients ask: enqueue, settle, come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fila.core import commands as c
from fila.core.effects import Reply, SettleResult
from fila.errors import InvalidArgumentError
from fila.model import NS_PER_MS, FailureAction, FailureDecision, Outcome
from tests.simulation import operations
from tests.simulation.books import Known, Msg, Part, Shelf
from tests.simulation.model import OUTCOMES_KEPT_NS, Model, Taker, backoff_ms, expect
from tests.simulation.violation import ViolationError, require


def apply(model: Model, command: c.Command, reply: Reply, items: Sequence[int] = ()) -> None:
    """Carry out a command of any kind, and compare the answer. `items` are those of an enqueue."""
    match command:
        case c.Enqueue():
            _enqueue(model, command, reply, items)
        case c.Settle():
            _settle(model, command, reply)
        case c.OpenConsumer():
            model.takers[command.consumer] = Taker(
                command.consumer, command.credit, command.release_on_disconnect
            )
        case c.Subscribe():
            _subscribe(model, command, reply)
        case c.Unsubscribe():
            if command.consumer in model.takers:
                model.takers[command.consumer].queues.discard(command.queue)
            expect(command, reply, None)
        case c.SetCredit():
            if command.consumer in model.takers:
                model.takers[command.consumer].credit = command.credit
        case c.CloseConsumer():
            _close(model, command)
        case _:
            operations.administer(model, command, reply)


def _enqueue(model: Model, command: c.Enqueue, reply: Reply, items: Sequence[int]) -> None:
    shelf = model.known(command, reply)
    if shelf is None:
        return
    part = model.part(command.queue)
    count = len(command.bodies) + len(command.refused)
    earlier = _earlier(model, part, command)
    if earlier is not None and earlier.count != count:
        require(isinstance(reply, InvalidArgumentError), "replies", command, "→", reply)
        return
    if not isinstance(reply, Outcome):
        raise ViolationError("replies", f"an enqueue was answered {reply!r}")
    if earlier is not None:
        if model.now - earlier.at <= OUTCOMES_KEPT_NS:
            same = (reply.id_high, reply.first_seq) == (earlier.id_high, earlier.first_seq)
            require(same, "ledger", "a repeat was accepted anew:", reply, ", first", earlier)
        if reply.first_seq == earlier.first_seq:
            require(tuple(reply.errors) == earlier.errors, "replies", reply, "first", earlier)
            return
    _accept(model, shelf, command, reply, items)


def _earlier(model: Model, part: Part, command: c.Enqueue) -> Known | None:
    if command.producer is None:
        return None
    known = part.outcomes.get(command.producer)
    if known is None and command.known is not None:
        # Looked up before the pass, and the queue was made anew in it.
        first = command.known
        known = Known(first.id_high, first.first_seq, first.count, first.errors, model.now)
    return known


def _accept(
    model: Model, shelf: Shelf, command: c.Enqueue, reply: Outcome, items: Sequence[int]
) -> None:
    part = model.part(shelf.name)
    room = len(command.bodies)
    if shelf.settings.max_depth:
        room = max(0, min(room, shelf.settings.max_depth - shelf.depth))
    refused = {error.index: error.code for error in command.refused}
    count = len(command.bodies) + len(refused)
    accepted = [index for index in range(count) if index not in refused]
    refused.update(dict.fromkeys(accepted[room:], "RESOURCE_EXHAUSTED"))
    told = {error.index: error.code for error in reply.errors}
    require(told == refused, "replies", "refused", told, "expected", refused)
    require((reply.count, reply.at_ns) == (count, model.wall), "replies", reply)
    for index in range(room):
        msg = Msg(
            item=items[index],
            sequence=reply.first_seq + index,
            id_high=reply.id_high,
            queue=shelf.name,
            spec=command.specs[index],
            place=model.books.next_place(),
        )
        id_pair = (msg.id_high, msg.sequence)
        require(id_pair > part.last_id, "ids", id_pair, "after", part.last_id)
        part.last_id = id_pair
        model.homes[msg.item] = part
        model.books.fates.pop(msg.item, None)
        model.fresh.append(msg)
        shelf.put(model.timed(shelf, msg, command.timings.get(index)))
    if command.producer is not None:
        part.outcomes[command.producer] = Known(
            reply.id_high, reply.first_seq, reply.count, reply.errors, model.now
        )


def _settle(model: Model, command: c.Settle, reply: Reply) -> None:
    shelf = model.known(command, reply)
    if shelf is None:
        return
    require(isinstance(reply, SettleResult), "replies", "a settle was answered", reply)
    assert isinstance(reply, SettleResult)
    # What was looked up may be of a queue that was deleted since, and created again.
    replaced = command.partition not in {0, model.part(shelf.name).number}
    live: dict[int, Msg] = {}
    missing: set[int] = set()
    for index, (sequence, token) in enumerate(zip(command.sequences, command.tokens, strict=True)):
        msg = shelf.leased.get(sequence)
        if msg is None or sequence in live or (token != msg.token if token else replaced):
            missing.add(index)
        else:
            live[sequence] = msg
    told = {error.index for error in reply.errors}
    require(missing <= told, "leases", "settled without a live lease:", command, "→", reply)
    require(told <= missing, "replies", "refused a live lease:", command, "→", reply)
    codes = {error.code for error in reply.errors}
    require(codes <= {"NOT_FOUND"}, "replies", command, "→", reply)
    decisions = command.decisions or [None] * len(command.sequences)
    kept = [decision for index, decision in enumerate(decisions) if index not in missing]
    for msg, decision in zip(live.values(), kept, strict=True):
        _settle_one(model, shelf, command, msg, decision)


def _settle_one(
    model: Model, shelf: Shelf, command: c.Settle, msg: Msg, decision: FailureDecision | None
) -> None:
    match command.action:
        case c.Action.ACK:
            model.end_lease(msg)
            model.books.fates[msg.item] = "acked"
        case c.Action.RELEASE:
            model.release(msg)
        case c.Action.EXTEND:
            span = (command.delay_ms or shelf.settings.visibility_timeout_ms) * NS_PER_MS
            shelf.leased[msg.sequence] = msg._replace(
                due=model.now + span, due_wall=model.wall + span, span=span
            )
        case c.Action.NACK:
            _nack(model, shelf, command, msg, decision or FailureDecision())


def _nack(
    model: Model, shelf: Shelf, command: c.Settle, msg: Msg, decision: FailureDecision
) -> None:
    msg = model.end_lease(msg)
    msg = msg._replace(attempts=msg.attempts + 1, last_error=command.error)
    part = model.part(shelf.name)
    if command.dead_letter or decision.action is FailureAction.DEAD_LETTER:
        model.bury(part, msg, "REJECTED")
        return
    if model.used_up(msg):
        model.bury(part, msg, "MAX_ATTEMPTS")
        return
    said = {
        name: getattr(decision, name)
        for name in ("fairness_key", "weight", "throttle_keys", "priority")
        if getattr(decision, name) is not None
    }
    msg = msg._replace(spec=replace(msg.spec, **said))
    delays = (decision.delay_ms, command.delay_ms, backoff_ms(shelf.settings, msg))
    model.retry(shelf, msg, next(delay for delay in delays if delay is not None))


def _subscribe(model: Model, command: c.Subscribe, reply: Reply) -> None:
    if model.known(command, reply) is None:
        return
    expect(command, reply, None)
    if command.consumer in model.takers:
        model.takers[command.consumer].queues.add(command.queue)


def _close(model: Model, command: c.CloseConsumer) -> None:
    taker = model.takers.pop(command.consumer, None)
    if taker is None:
        return
    unsent = list(command.unsent)
    for shelf in model.books.shelves:
        for msg in list(shelf.leased.values()):
            if msg.consumer != taker.number:
                continue
            if taker.release_on_disconnect or (shelf.name, msg.sequence, msg.token) in unsent:
                model.release(msg)
            else:
                shelf.leased[msg.sequence] = msg._replace(consumer=0)
