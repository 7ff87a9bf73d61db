"""Ack, nack, release, extend: what a consumer says of its leases."""

from collections.abc import Iterable
from itertools import repeat

from fila.core import letters
from fila.core.commands import Action, Settle
from fila.core.effects import SettleResult
from fila.core.message import Message
from fila.core.queue import Queue
from fila.core.state import State
from fila.errors import LeaseNotFoundError
from fila.model import NS_PER_MS, FailureAction, FailureDecision, ItemError, Reason


def settle(state: State, command: Settle) -> SettleResult:
    """Carry out one action for each lease that is live; the others are refused one by one."""
    queue = state.queue(command.queue)
    live, errors = _live(state, queue, command)
    match command.action:
        case Action.ACK:
            _ack(state, queue, live)
        case Action.NACK:
            _nack(state, queue, live, command, _decisions(command, errors))
        case Action.RELEASE:
            release(state, queue, live)
        case Action.EXTEND:
            _extend(state, queue, live, command)
    return SettleResult(errors)


def live_leases(state: State, command: Settle) -> list[tuple[int, int]]:
    """Which of the leases that are named are live, by index, and how often each was in vain."""
    queue = state.queues.get(command.queue)
    if queue is None:
        return []
    live, errors = _live(state, queue, command)
    missing = {error.index for error in errors}
    indices = (index for index in range(len(command.sequences)) if index not in missing)
    return [(index, message.attempts) for index, message in zip(indices, live, strict=True)]


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


def _decisions(command: Settle, errors: tuple[ItemError, ...]) -> Iterable[FailureDecision | None]:
    """What was decided of each message that is live."""
    if command.decisions is None:
        return repeat(None)
    if not errors:
        return command.decisions
    missing = {error.index for error in errors}
    return [decision for index, decision in enumerate(command.decisions) if index not in missing]


def _nack(
    state: State,
    queue: Queue,
    messages: list[Message],
    command: Settle,
    decisions: Iterable[FailureDecision | None],
) -> None:
    changed: list[Message] = []
    # Without decisions there is an endless row of none.
    for message, decision in zip(messages, decisions, strict=False):
        state.end_lease(message)
        message.attempts += 1
        message.last_error = command.error
        if command.dead_letter or (decision and decision.action is FailureAction.DEAD_LETTER):
            letters.bury(state, message, Reason.REJECTED)
        elif letters.attempts_used_up(message):
            letters.bury(state, message, Reason.MAX_ATTEMPTS)
        else:
            if decision is not None and _respec(message, decision):
                changed.append(message)
            letters.retry(state, message, _delay_ms(queue, message, command, decision))
    state.put_specs(queue.partition, changed)
    state.put_progress(queue.partition, messages)


def _respec(message: Message, decision: FailureDecision) -> bool:
    """Let a message that is in no lane ask for something else; whether that is anything new."""
    spec = letters.spec_after(message.spec, decision)
    if spec == message.spec:
        return False
    message.spec = spec
    return True


def _delay_ms(
    queue: Queue, message: Message, command: Settle, decision: FailureDecision | None
) -> int:
    if decision is not None and decision.delay_ms is not None:
        return decision.delay_ms
    if command.delay_ms is not None:
        return command.delay_ms
    return letters.retry_delay_ms(queue.settings, message.attempts)


def _extend(state: State, queue: Queue, messages: list[Message], command: Settle) -> None:
    span_ms = command.delay_ms or queue.settings.visibility_timeout_ms
    for message in messages:
        state.steady_timers.cancel(message, message.due_ns)
        message.span_ns = span_ms * NS_PER_MS
        message.due_ns = state.now_ns + message.span_ns
        message.due_wall_ns = state.wall_ns + message.span_ns
        state.steady_timers.set(message, message.due_ns)
    state.put_progress(queue.partition, messages)
