"""Ack, nack, release, extend: what a consumer says of its leases."""

from fila.core import letters
from fila.core.commands import Action, Settle
from fila.core.effects import SettleResult
from fila.core.message import Message
from fila.core.queue import Queue
from fila.core.state import State
from fila.errors import LeaseNotFoundError
from fila.model import NS_PER_MS, ItemError, Reason


def settle(state: State, command: Settle) -> SettleResult:
    """Carry out one action for each lease that is live; the others are refused one by one."""
    queue = state.queue(command.queue)
    live, errors = _live(state, queue, command)
    match command.action:
        case Action.ACK:
            _ack(state, queue, live)
        case Action.NACK:
            _nack(state, queue, live, command)
        case Action.RELEASE:
            release(state, queue, live)
        case Action.EXTEND:
            _extend(state, queue, live, command)
    return SettleResult(errors)


def release(state: State, queue: Queue, messages: list[Message]) -> None:
    """Back to their places at once, no attempt counted."""
    for message in messages:
        state.end_lease(message)
        state.make_ready(message)
    state.put_progress(queue.partition, messages)


def _live(
    state: State, queue: Queue, command: Settle
) -> tuple[list[Message], tuple[ItemError, ...]]:
    live: dict[int, Message] = {}
    missing: list[int] = []
    leased = queue.leased
    replaced = command.partition not in {0, queue.partition.number}
    for index, (sequence, token) in enumerate(zip(command.sequences, command.tokens, strict=True)):
        message = leased.get(sequence)
        # A message named twice is settled once; the second time there is no lease any more. One
        # whose time is over is late, also while others that are due are dealt with first.
        if (
            message is None
            or sequence in live
            or message.due_ns <= state.now_ns
            or (token != message.token if token else replaced)
        ):
            missing.append(index)
        else:
            live[sequence] = message
    if not missing:
        return list(live.values()), ()
    text = str(LeaseNotFoundError(queue.name))
    errors = tuple(ItemError(index, LeaseNotFoundError.code, text) for index in missing)
    return list(live.values()), errors


def _ack(state: State, queue: Queue, messages: list[Message]) -> None:
    state.end_leases(queue, messages)
    state.delete(queue.partition, [message.sequence for message in messages])


def _nack(state: State, queue: Queue, messages: list[Message], command: Settle) -> None:
    for message in messages:
        state.end_lease(message)
        message.attempts += 1
        message.last_error = command.error
        if command.dead_letter:
            letters.bury(state, message, Reason.REJECTED)
        elif letters.attempts_used_up(message):
            letters.bury(state, message, Reason.MAX_ATTEMPTS)
        elif command.delay_ms is not None:
            letters.retry(state, message, command.delay_ms)
        else:
            delay_ms = letters.retry_delay_ms(queue.settings, message.attempts)
            letters.retry(state, message, delay_ms)
    state.put_progress(queue.partition, messages)


def _extend(state: State, queue: Queue, messages: list[Message], command: Settle) -> None:
    span_ms = command.delay_ms or queue.settings.visibility_timeout_ms
    for message in messages:
        state.steady_timers.cancel(message, message.due_ns)
        message.span_ns = span_ms * NS_PER_MS
        message.due_ns = state.now_ns + message.span_ns
        message.due_wall_ns = state.wall_ns + message.span_ns
        state.steady_timers.set(message, message.due_ns)
    state.put_progress(queue.partition, messages)
