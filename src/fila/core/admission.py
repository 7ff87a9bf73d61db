"""Taking messages in: numbers for them, into their lanes or onto a timer, and the outcome."""

from fila.core.commands import Enqueue
from fila.core.effects import PutMessages, PutOutcome
from fila.core.message import Message
from fila.core.queue import Queue
from fila.core.records import Status
from fila.core.state import State
from fila.errors import InvalidArgumentError
from fila.model import NS_PER_MS, ItemError, Outcome, Timing


def accept(state: State, command: Enqueue) -> Outcome:
    """Accept what there is room for; a repeat is answered with the first outcome."""
    queue = state.queue(command.queue)
    earlier = _earlier(queue, command)
    if earlier is not None:
        return earlier
    room = room_for(queue, len(command.bodies))
    id_high = queue.partition.id_high_at(state.wall_ns, state.epoch)
    first = state.take_sequences(queue.partition, room)
    if room:
        _store(state, queue, command, room=room, id_high=id_high, first=first)
        _place(state, queue, command, room=room, first=first)
        state.touched[queue] = None
    outcome = Outcome(
        id_high=id_high,
        first_seq=first,
        count=len(command.bodies) + len(command.refused),
        at_ns=state.wall_ns,
        errors=_errors(queue, command, room),
    )
    if command.producer is not None:
        queue.partition.producers.note(command.producer, outcome, state.now_ns)
        state.remembering[queue.partition.number] = queue.partition
        state.effects.mutations.append(
            PutOutcome(queue.partition.number, command.producer, outcome)
        )
    return outcome


def room_for(queue: Queue, wanted: int) -> int:
    """How many of so many new messages a queue has room for."""
    depth_max = queue.settings.max_depth
    return max(0, min(wanted, depth_max - queue.depth)) if depth_max else wanted


def times_of(state: State, queue: Queue, timing: Timing) -> tuple[int, int]:
    """When a message becomes ready, 0 for now, and when it expires, 0 for never; wall time."""
    deliver_at = state.wall_ns + timing.delay_ms * NS_PER_MS if timing.delay_ms else 0
    if timing.deliver_at_ns is not None and timing.deliver_at_ns > state.wall_ns:
        deliver_at = timing.deliver_at_ns
    if not timing.ttl_ms or queue.is_dlq:
        return deliver_at, 0
    return deliver_at, (deliver_at or state.wall_ns) + timing.ttl_ms * NS_PER_MS


def _earlier(queue: Queue, command: Enqueue) -> Outcome | None:
    if command.producer is None:
        return None
    earlier = command.known or queue.partition.producers.recent(command.producer)
    if earlier is not None and earlier.count != len(command.bodies) + len(command.refused):
        raise InvalidArgumentError(
            f"producer sequence {command.producer.sequence} was used before for "
            f"{earlier.count} messages; use a new sequence for each new call"
        )
    return earlier


def _errors(queue: Queue, command: Enqueue, room: int) -> tuple[ItemError, ...]:
    """The refused items and those without room, by their index in the caller's batch."""
    wanted = len(command.bodies)
    if room == wanted:
        return command.refused
    refused = {error.index for error in command.refused}
    accepted = [i for i in range(wanted + len(refused)) if i not in refused]
    text = (
        f"queue {queue.name!r} is full: it holds {queue.depth} messages and max_depth is "
        f"{queue.settings.max_depth}; consume some, or raise max_depth"
    )
    full = (ItemError(i, "RESOURCE_EXHAUSTED", text) for i in accepted[room:])
    return tuple(sorted((*command.refused, *full), key=lambda error: error.index))


def _store(
    state: State, queue: Queue, command: Enqueue, *, room: int, id_high: int, first: int
) -> None:
    times = {
        index: times_of(state, queue, timing)
        for index, timing in command.timings.items()
        if index < room
    }
    whole = room == len(command.bodies)
    state.effects.mutations.append(
        PutMessages(
            partition=queue.partition.number,
            queue=queue.name,
            in_dlq=queue.is_dlq,
            id_high=id_high,
            first_sequence=first,
            accepted_at_ns=state.wall_ns,
            bodies=command.bodies if whole else command.bodies[:room],
            specs=command.specs if whole else command.specs[:room],
            times=times,
        )
    )


def _place(state: State, queue: Queue, command: Enqueue, *, room: int, first: int) -> None:
    """Into the lanes, a run of equal specs at a time."""
    specs, timings = command.specs, command.timings
    start = 0
    while start < room:
        if start in timings:
            _place_timed(state, queue, command, index=start, sequence=first + start)
            start += 1
            continue
        spec = specs[start]
        end = start + 1
        while end < room and specs[end] is spec and end not in timings:
            end += 1
        queue.add_fresh(spec, range(first + start, first + end))
        start = end


def _place_timed(
    state: State, queue: Queue, command: Enqueue, *, index: int, sequence: int
) -> None:
    timing = command.timings[index]
    message = Message(queue, command.specs[index], sequence, sequence, Status.READY)
    deliver_at, message.expires_at_ns = times_of(state, queue, timing)
    if not deliver_at:
        state.make_ready(message)
        return
    message.wall_timed = timing.deliver_at_ns is not None
    state.make_delayed(message, span_ns=deliver_at - state.wall_ns)
    state.put_progress(queue.partition, [message])
