"""What follows a failed delivery: another attempt, now or later, or the dead-letter queue."""

from functools import lru_cache

from fila.core.message import Message
from fila.core.state import State
from fila.model import NS_PER_MS, DeadLetter, FailureDecision, QueueSettings, Reason, Spec

_NOTHING = (None, None, None, None)


def retry_delay_ms(settings: QueueSettings, attempts: int) -> int:
    """How long before the next attempt, by the queue's backoff."""
    delay = float(settings.retry_delay_ms)
    # Stops at the maximum: a large power would overflow.
    for _ in range(attempts - 1):
        if delay >= settings.retry_delay_max_ms or settings.retry_backoff == 1:
            break
        delay *= settings.retry_backoff
    return min(int(delay), settings.retry_delay_max_ms)


def attempts_used_up(message: Message) -> bool:
    """Whether the queue allows no further delivery."""
    attempts_max = message.queue.settings.max_attempts
    return bool(attempts_max) and message.attempts >= attempts_max


def spec_after(spec: Spec, decision: FailureDecision) -> Spec:
    """What a message asks for once `on_failure` has spoken; its cost stays."""
    given = (decision.fairness_key, decision.weight, decision.throttle_keys, decision.priority)
    return spec if given == _NOTHING else _changed(spec, *given)


@lru_cache(maxsize=16_384)
def _changed(
    spec: Spec,
    fairness_key: str | None,
    weight: int | None,
    throttle_keys: tuple[str, ...] | None,
    priority: int | None,
) -> Spec:
    """The same object each time: a lane's messages share it."""
    return spec.ruled(
        fairness_key=fairness_key, weight=weight, throttle_keys=throttle_keys, priority=priority
    )


def has_expired(state: State, message: Message) -> bool:
    """Whether a message was not delivered within its time."""
    return 0 < message.expires_at_ns <= state.wall_ns and not message.delivered


def retry(state: State, message: Message, delay_ms: int) -> None:
    """Let a message that is out of all books become ready again, behind all others."""
    if delay_ms:
        message.wall_timed = False
        state.make_delayed(message, span_ns=delay_ms * NS_PER_MS)
    else:
        state.renew_place(message)
        state.make_ready(message)


def bury(state: State, message: Message, reason: Reason) -> None:
    """Move a message that is out of all books to the dead-letter queue."""
    source = message.queue
    target = source.partition.dlq
    if target is None or target is source:
        retry(state, message, retry_delay_ms(source.settings, message.attempts))
        return
    message.queue = target
    message.dead = DeadLetter(
        reason=reason,
        last_error=message.last_error,
        source_queue=source.name,
        dead_at_ns=state.wall_ns,
    )
    message.expires_at_ns = 0
    state.renew_place(message)
    state.make_ready(message)
