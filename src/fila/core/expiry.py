"""What time does by itself: leases end, delays are over, messages expire, tokens come."""

from fila.core import letters
from fila.core.effects import DropLevels, DropOutcomes
from fila.core.message import Message
from fila.core.partition import Partition
from fila.core.records import Status
from fila.core.state import State
from fila.model import NS_PER_S, Reason

# So many at once: a pass must not hold the loop. What is left is due again at once.
DUE_MAX = 1000
_SWEEP_EVERY_NS = 60 * NS_PER_S


def expire(state: State) -> None:
    """Carry out what is due on either clock."""
    state.wake_throttled()
    due = state.steady_timers.take_due(state.now_ns, DUE_MAX)
    due += state.wall_timers.take_due(state.wall_ns, DUE_MAX)
    by_partition: dict[Partition, list[Message]] = {}
    for message in due:
        _fall_due(state, message)
        by_partition.setdefault(message.queue.partition, []).append(message)
    for partition, messages in by_partition.items():
        state.put_progress(partition, messages)
    if state.now_ns >= state.next_sweep_ns:
        state.next_sweep_ns = state.now_ns + _SWEEP_EVERY_NS
        _forget_outcomes(state)
        _forget_levels(state)


def _fall_due(state: State, message: Message) -> None:
    match message.status:
        case Status.LEASED:
            _end_lease(state, message)
        case Status.DELAYED:
            state.put_key_weight(message.queue.remove_delayed(message))
            if letters.has_expired(state, message):
                letters.bury(state, message, Reason.EXPIRED)
            else:
                state.renew_place(message)
                state.make_ready(message)
        case Status.READY:
            state.put_key_weight(message.queue.remove_noted(message))
            letters.bury(state, message, Reason.EXPIRED)


def _end_lease(state: State, message: Message) -> None:
    """A lease has run out: one attempt, and the front of its lane again, or the end."""
    state.end_lease(message)
    message.attempts += 1
    if letters.attempts_used_up(message):
        letters.bury(state, message, Reason.MAX_ATTEMPTS)
    else:
        state.make_ready(message)


def _forget_outcomes(state: State) -> None:
    for partition in list(state.remembering.values()):
        for producer, up_to in partition.producers.forget_old(state.now_ns):
            state.effects.mutations.append(DropOutcomes(partition.number, producer, up_to))
        if not len(partition.producers):
            del state.remembering[partition.number]


def _forget_levels(state: State) -> None:
    names = state.throttle.forget_retired()
    if names:
        state.effects.mutations.append(DropLevels(names))
