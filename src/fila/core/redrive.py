"""Dead letters on their way back: into the source queue as if they were enqueued there now.

Which, and what each of them asks for now, was found out before; here they are moved, as far as they
still wait. A message that moves is stored in its new queue by the same write that takes it out of
the old one.
"""

from fila.core import admission
from fila.core.commands import Redrive
from fila.core.effects import PutTimes, RedriveResult
from fila.core.message import Message
from fila.core.queue import Queue
from fila.core.records import Entry
from fila.core.state import State
from fila.errors import InvalidArgumentError, PreconditionError, QueueNotFoundError
from fila.model import NS_PER_MS, Spec, Timing

_AT_ONCE = Timing()


def source_of(dlq: Queue) -> Queue:
    """Where dead letters of a queue came from, and those go that were enqueued into it directly."""
    if not dlq.is_dlq:
        raise InvalidArgumentError(
            f"{dlq.name!r} is not a dead-letter queue; their names end in .dlq"
        )
    source = dlq.partition.main
    if source is None:
        raise PreconditionError(
            f"{dlq.name!r} has no source queue; create {dlq.partition.base!r}, or consume the "
            "messages and enqueue them elsewhere"
        )
    return source


def redrive(state: State, command: Redrive) -> RedriveResult:
    """Move those that still wait where they were seen, as many as there is room for."""
    dlq = state.queue(command.queue)
    source = source_of(dlq)
    if dlq.partition.number != command.partition:
        # Another queue of this name by now.
        raise QueueNotFoundError(dlq.name)
    room = admission.room_for(source, len(command.entries))
    moved: list[Message] = []
    changed: list[Message] = []
    times: dict[int, tuple[int, int]] = {}
    changed_times: dict[int, tuple[int, int]] = {}
    for index, (entry, place) in enumerate(zip(command.entries, command.places, strict=True)):
        if len(moved) == room:
            break
        message = _take_out(state, dlq, entry, place)
        if message is None:
            continue
        spec, timing = command.specs[index], command.timings.get(index, _AT_ONCE)
        is_changed = spec != message.spec or message.dead is None
        _begin_anew(message, source, spec)
        if is_changed:
            changed.append(message)
        (changed_times if is_changed else times)[message.sequence] = _admit(state, message, timing)
        moved.append(message)
    if times:
        state.effects.mutations.append(PutTimes(source.partition.number, times))
    state.put_specs(source.partition, changed, changed_times)
    state.put_progress(source.partition, moved)
    return RedriveResult(len(moved), is_full=not admission.room_for(source, 1))


def _take_out(state: State, dlq: Queue, entry: Entry, place: int) -> Message | None:
    removed = dlq.remove_pending(entry.spec, entry.sequence, place)
    if removed is None:
        return None
    message, weight = removed
    state.cancel_timers(message)
    state.put_key_weight(weight)
    return message


def _begin_anew(message: Message, source: Queue, spec: Spec) -> None:
    """Nothing is left of what happened to it."""
    message.queue = source
    message.spec = spec
    message.attempts = 0
    message.delivered = False
    message.wall_timed = False
    message.token = 0
    message.leased_at_ns = 0
    message.last_error = ""
    message.dead = None


def _admit(state: State, message: Message, timing: Timing) -> tuple[int, int]:
    """Behind all others, now or when its delay is over; when it is ready, and when it expires."""
    deliver_at_ns, message.expires_at_ns = admission.times_of(state, message.queue, timing)
    if deliver_at_ns:
        state.make_delayed(message, span_ns=timing.delay_ms * NS_PER_MS)
    else:
        state.renew_place(message)
        state.make_ready(message)
    return deliver_at_ns or state.wall_ns, message.expires_at_ns
