"""The model's side of what operators ask: queues, purges, single messages, settings."""

from __future__ import annotations

from dataclasses import replace

from fila.core import commands as c
from fila.core.effects import RedriveResult, Reply
from fila.errors import (
    InvalidArgumentError,
    MessageNotFoundError,
    PreconditionError,
    QueueExistsError,
    QueueNotFoundError,
)
from fila.model import DLQ_SUFFIX, QueueSettings, is_dlq
from tests.simulation.books import Msg, Part, Shelf, Stage
from tests.simulation.clients import Call
from tests.simulation.model import Model, expect
from tests.simulation.violation import require


def administer(model: Model, command: c.Command, reply: Reply) -> None:
    """Carry out a command of an operator, and compare the answer."""
    match command:
        case c.CreateQueue():
            _create(model, command, reply)
        case c.UpdateQueue():
            _update(model, command, reply)
        case c.DeleteQueue():
            _delete(model, command, reply)
        case c.PauseQueue():
            _pause(model, command, reply)
        case c.PurgeQueue():
            _purge(model, command, reply)
        case c.RemoveMessage():
            _remove(model, command, reply)
        case c.Reschedule():
            _reschedule(model, command, reply)
        case c.Redrive():
            _redrive(model, command, reply)
        case c.SetConfig():
            _configure(model, command, reply)


def _create(model: Model, command: c.CreateQueue, reply: Reply) -> None:
    name, settings = command.queue, command.settings
    if model.books.shelf(name) is not None:
        require(isinstance(reply, QueueExistsError), "replies", command, "→", reply)
        return
    expect(command, reply, None)
    dlq = is_dlq(name)
    sibling = name.removesuffix(DLQ_SUFFIX) if dlq else name + DLQ_SUFFIX
    part = model.books.part_of(sibling)
    if part is None or (part.dlq if dlq else part.main) is not None:
        model.serial += 1
        part = Part(model.serial)
        model.books.parts.append(part)
    if dlq:
        part.dlq = Shelf(name, replace(settings, max_attempts=0))
        return
    part.main = Shelf(name, settings, attempts_limit=settings.max_attempts)
    if part.dlq is None:
        dead = QueueSettings(
            visibility_timeout_ms=settings.visibility_timeout_ms,
            max_attempts=0,
            retry_delay_ms=settings.retry_delay_ms,
            retry_backoff=settings.retry_backoff,
            retry_delay_max_ms=settings.retry_delay_max_ms,
            quantum=settings.quantum,
        )
        part.dlq = Shelf(sibling, dead)


def _update(model: Model, command: c.UpdateQueue, reply: Reply) -> None:
    shelf = model.known(command, reply)
    if shelf is None:
        return
    expect(command, reply, None)
    if shelf.is_dlq:
        shelf.settings = replace(command.settings, max_attempts=0)
        return
    shelf.settings = command.settings
    limit = command.settings.max_attempts
    if not limit or not shelf.attempts_limit:
        shelf.attempts_limit = 0
    else:
        shelf.attempts_limit = max(shelf.attempts_limit, limit)


def _delete(model: Model, command: c.DeleteQueue, reply: Reply) -> None:
    shelf = model.known(command, reply)
    if shelf is None:
        return
    part = model.part(command.queue)
    dead = part.dlq.depth if part.dlq else 0
    attached = shelf.is_dlq and part.main is not None
    if attached or (command.keep_dead_letters and dead):
        require(isinstance(reply, PreconditionError), "replies", command, "→", reply)
        return
    expect(command, reply, None)
    for member in part.shelves:
        for msg in list(member.messages()):
            model.drop(member, msg, "deleted")
        for taker in model.takers.values():
            if member.name in taker.queues:
                taker.queues.discard(member.name)
                model.closed.add((taker.number, member.name))
    model.books.parts.remove(part)


def _purge(model: Model, command: c.PurgeQueue, reply: Reply) -> None:
    shelf = model.known(command, reply)
    if shelf is None:
        return
    gone = [
        msg for msg in shelf.messages() if command.include_leased or msg.stage is not Stage.LEASED
    ]
    expect(command, reply, len(gone))
    for msg in gone:
        model.drop(shelf, msg, "purged")


def _waiting(
    model: Model, command: c.RemoveMessage | c.Reschedule, reply: Reply
) -> tuple[Shelf, Msg] | None:
    shelf = model.known(command, reply)
    if shelf is None:
        return None
    msg = shelf.find(command.entry.sequence) if command.entry else None
    # What was looked up may be of a queue that was deleted since, and created again.
    if model.part(shelf.name).number != command.partition:
        msg = None
    if msg is None:
        gone = isinstance(reply, MessageNotFoundError | PreconditionError)
        require(gone, "replies", command, "→", reply)
        return None
    if msg.stage is Stage.LEASED:
        require(isinstance(reply, PreconditionError), "replies", command, "→", reply)
        return None
    return shelf, msg


def _remove(model: Model, command: c.RemoveMessage, reply: Reply) -> None:
    found = _waiting(model, command, reply)
    if found is not None:
        expect(command, reply, None)
        model.drop(*found, "removed")


def _reschedule(model: Model, command: c.Reschedule, reply: Reply) -> None:
    found = _waiting(model, command, reply)
    if found is None:
        return
    shelf, msg = found
    if msg.stage is not Stage.DELAYED:
        require(isinstance(reply, PreconditionError), "replies", command, "→", reply)
        return
    expect(command, reply, None)
    due_wall = max(command.deliver_at_ns, model.wall)
    if msg.expires and not msg.delivered:
        msg = msg._replace(expires=msg.expires + due_wall - msg.due_wall)
    shelf.delayed[msg.sequence] = model.delayed(msg, due_wall - model.wall, by_wall=True)


def _configure(model: Model, command: c.SetConfig, reply: Reply) -> None:
    config = model.books.config
    _, _, limited = command.key.partition("throttle:")
    name, _, which = limited.rpartition(":")
    if limited and command.value and not _is_limit(command.value, burst=which == "burst"):
        require(isinstance(reply, InvalidArgumentError), "replies", command, "→", reply)
        return
    expect(command, reply, command.key in config)
    config.pop(command.key, None)
    if command.value:
        config[command.key] = command.value
    if limited:
        model.books.buckets.follow(name, config, model.age)


def _is_limit(value: str, *, burst: bool) -> bool:
    """Operators here write plain decimals, or what is none."""
    if not all(digit in "0123456789." for digit in value):
        return False
    return not burst or float(value) >= 1


def _pause(model: Model, command: c.PauseQueue, reply: Reply) -> None:
    shelf = model.known(command, reply)
    if shelf is not None:
        shelf.paused = command.paused
        expect(command, reply, None)


def _redrive(model: Model, command: c.Redrive, reply: Reply) -> None:
    if model.books.shelf(command.queue) is None:
        model.known(command, reply)
        return
    part = model.part(command.queue)
    if not is_dlq(command.queue):
        require(isinstance(reply, InvalidArgumentError), "redrive", command.tag, "→", reply)
    elif part.main is None:
        require(isinstance(reply, PreconditionError), "redrive", command.tag, "→", reply)
    elif part.number != command.partition:
        require(isinstance(reply, QueueNotFoundError), "redrive", command.tag, "→", reply)
    else:
        moved = _move(model, part, command)
        limit = part.main.settings.max_depth
        is_full = bool(limit) and part.main.depth >= limit
        expected = RedriveResult(moved, is_full)
        require(reply == expected, "redrive", command.tag, "→", reply, "expected", expected)


def _move(model: Model, part: Part, command: c.Redrive) -> int:
    """Those that wait where they were seen, as many as there is room for; how many that are."""
    assert part.main is not None
    assert part.dlq is not None
    assert isinstance(command.tag, Call)
    room = len(command.entries)
    if part.main.settings.max_depth:
        room = max(0, min(room, part.main.settings.max_depth - part.main.depth))
    moved = 0
    for index, (entry, place) in enumerate(zip(command.entries, command.tag.places, strict=True)):
        msg = part.dlq.find(entry.sequence)
        if moved == room or msg is None or msg.stage is Stage.LEASED or msg.place != place:
            continue
        part.dlq.take(msg)
        anew = Msg(
            item=msg.item,
            sequence=msg.sequence,
            id_high=msg.id_high,
            queue=part.main.name,
            spec=command.specs[index],
            place=msg.place,
        )
        anew = model.timed(part.main, anew, command.timings.get(index))
        if anew.stage is Stage.READY:
            anew = anew._replace(place=model.books.next_place())
        part.main.put(anew)
        moved += 1
    return moved
