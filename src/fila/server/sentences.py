"""An explanation in words: what a cause is, what one can do about it, and the answer in one line.

Names of keys and consumers are shown; payloads, headers and error texts are not.
"""

from typing import NamedTuple, TypeAlias

from fila.core.explanation import (
    Cause,
    Code,
    Count,
    Credit,
    Delay,
    DelayKind,
    Expiry,
    Explanation,
    KeyState,
    Lease,
    MessageState,
    QueueState,
    Throttling,
    Turn,
)
from fila.model import DLQ_SUFFIX, NS_PER_MS, NS_PER_S, DeadLetter, Reason

_MINUTE_NS = 60 * NS_PER_S
_HOUR_NS = 60 * _MINUTE_NS


Subject: TypeAlias = MessageState | KeyState | QueueState


class Sentence(NamedTuple):
    """A cause for a person."""

    text: str
    advice: str


def sentence(cause: Cause, explanation: Explanation) -> Sentence:
    """One cause in words."""
    queue, subject = explanation.queue, explanation.subject
    match cause.facts:
        case Lease():
            found = _lease(cause.facts)
        case Delay():
            found = _delay(cause.facts, queue)
        case Credit():
            found = _credit(cause.facts, queue)
        case Throttling():
            found = _throttling(cause.facts, subject)
        case Turn():
            found = _turn(cause.facts, subject, at_least=not explanation.is_exact)
        case Expiry():
            found = _expiry(cause.facts)
        case DeadLetter():
            found = _dead_letter(cause.facts)
        case Count():
            found = _count(cause.code, cause.facts, queue, subject)
        case None:
            found = _plain(cause.code, queue, subject)
    return found


def summary(explanation: Explanation) -> str:
    """The answer in one line: whom it is about, and the first cause."""
    subject = explanation.subject
    match subject:
        case MessageState():
            about = "this message"
        case KeyState():
            about = f"key {subject.key!r}"
        case QueueState():
            about = f"queue {explanation.queue!r}"
    return f"{about}: {sentence(explanation.causes[0], explanation).text}"


def span(nanoseconds: int) -> str:
    """A time span, in the unit that suits it."""
    if nanoseconds < NS_PER_S:
        return f"{-(-nanoseconds // NS_PER_MS)} ms"
    if nanoseconds < 2 * _MINUTE_NS:
        return f"{nanoseconds / NS_PER_S:.1f} s"
    if nanoseconds < 2 * _HOUR_NS:
        return f"{nanoseconds / _MINUTE_NS:.0f} min"
    hours = nanoseconds / _HOUR_NS
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} d"


def _lease(lease: Lease) -> Sentence:
    if lease.left_ns:
        until = f"for another {span(lease.left_ns)}, unless the lease is renewed"
    else:
        until = "and the lease is over; the message is back with the next pass"
    if not lease.consumer:
        return Sentence(
            f"it is leased to a consumer that is not connected any more, {until}.",
            "It is delivered again when the lease ends. A shorter visibility timeout, or "
            "release_on_disconnect as the SDK has it, brings such messages back sooner.",
        )
    name = f" {lease.name!r}" if lease.name else ""
    return Sentence(
        f"consumer {lease.consumer}{name} at {lease.peer} has it, {until}.",
        "If that consumer is stuck, stop it: what it holds is delivered to another one at once, "
        "or when the lease ends.",
    )


def _delay(delay: Delay, queue: str) -> Sentence:
    left = span(delay.left_ns)
    move = f"`fila message reschedule {queue} ID --delay 0` makes it ready now."
    match delay.kind:
        case DelayKind.DELIVER_AT:
            return Sentence(f"it is to be delivered at a set time, in {left}.", move)
        case DelayKind.DELAY:
            return Sentence(f"it was enqueued with a delay, of which {left} are left.", move)
        case DelayKind.RETRY:
            return Sentence(
                f"its last attempt failed; the next one is due in {left}.",
                f"{move} `fila queue update {queue} --retry-delay MS` changes later retries.",
            )


def _credit(credit: Credit, queue: str) -> Sentence:
    one = credit.count == 1
    who = "the only consumer holds" if one else f"all {credit.count:,} consumers hold"
    much = f"{who} as much as {'it' if one else 'they'} asked for, {_many(credit.held, 'message')}"
    if credit.is_moving:
        return Sentence(
            f"{much}, and work is going on.",
            "That is what a busy queue looks like. If it falls behind, add consumers or raise "
            "their concurrency.",
        )
    slowest = credit.consumers[0]
    name = f" {slowest.name!r}" if slowest.name else ""
    return Sentence(
        f"{much}, and nothing was settled lately; consumer {slowest.number}{name} has been idle "
        f"for {span(slowest.idle_ns)}.",
        f"Find out what the consumers wait for (`fila consumers {queue}`); restart what is stuck, "
        "add consumers or raise their concurrency.",
    )


def _throttling(throttling: Throttling, subject: Subject) -> Sentence:
    views = throttling.buckets
    names = [view.key for view in views if view.holds_back] or [view.key for view in views]
    limits = f"the limit of throttle key {' and '.join(map(repr, names))}"
    waiting = _many(throttling.messages, "ready message")
    what = "it" if isinstance(subject, MessageState) else waiting
    change = f"`fila config set throttle:{names[0]}:rate N`"
    if throttling.earliest_ns is None:
        return Sentence(
            f"{limits} holds {what} back until it is changed: its rate is 0.",
            f"{change} lets N a second go.",
        )
    when = ""
    if isinstance(subject, MessageState):
        when = _when(throttling.earliest_ns, throttling.likely_ns)
    return Sentence(
        f"{limits} holds {what} back{when}.",
        f"The limit does what it is for. {change} changes it at once, also for what waits.",
    )


def _when(earliest_ns: int, likely_ns: int | None) -> str:
    if likely_ns is None or likely_ns <= earliest_ns:
        return f" for another {span(earliest_ns)}" if earliest_ns else ": others are before it"
    return f" for at least {span(earliest_ns)}, an estimated {span(likely_ns)}"


def _turn(turn: Turn, subject: Subject, *, at_least: bool) -> Sentence:
    least = "at least " if at_least else ""
    keys = f"{least}{_many(turn.keys_before, 'other key')}"
    if isinstance(subject, KeyState):
        got = f", and got {subject.share:.0%} of what was served lately" if subject.share else ""
        place = f"{keys} before it in the ring" if turn.keys_before else "its turn is next"
        return Sentence(
            f"it has {subject.weight_share:.0%} of the weight of all keys that wait{got}; {place}.",
            f"If that is too little, enqueue it with a higher weight than {turn.weight}; if all "
            "keys are slow, add consumers.",
        )
    before = []
    ahead = turn.ahead_in_lane + turn.ahead_in_key
    if ahead:
        urgent = f" ({turn.ahead_by_priority:,} by priority)" if turn.ahead_by_priority else ""
        before.append(f"{least}{_many(ahead, 'message')} of its own key{urgent}")
    if turn.keys_before:
        before.append(f"a turn of {keys}")
    if turn.turns > 1:
        before.append(f"about {_many(turn.turns - 1, 'turn')} of its key")
    return Sentence(
        f"it waits its turn, after {_listed(before) or 'what is going on'}.",
        f"Wait, or add consumers. More weight than {turn.weight} makes its key's turns longer; a "
        "higher priority puts a message before others of its key.",
    )


def _expiry(expiry: Expiry) -> Sentence:
    if not expiry.left_ns:
        return Sentence(
            "its time to live is over: it becomes a dead letter at once.",
            "Redrive it if it is still wanted, or enqueue with a longer ttl.",
        )
    return Sentence(
        f"it becomes a dead letter if it is not delivered within {span(expiry.left_ns)}.",
        "Remove what holds it back before then, or redrive it afterwards.",
    )


_REASONS = {
    Reason.REJECTED: "a consumer rejected it",
    Reason.MAX_ATTEMPTS: "all its attempts failed",
    Reason.EXPIRED: "it was not delivered within its time to live",
}


def _dead_letter(dead: DeadLetter) -> Sentence:
    dlq = dead.source_queue + DLQ_SUFFIX
    return Sentence(
        f"it is a dead letter of queue {dead.source_queue!r}: {_REASONS[dead.reason]}.",
        f"When the reason is gone, `fila redrive {dlq}` sends the dead letters back; "
        f"`fila queue browse {dlq}` shows them.",
    )


def _count(code: Code, count: Count, queue: str, subject: Subject) -> Sentence:
    messages = _many(count.messages, "message")
    if code is Code.DELAYED:
        return Sentence(
            f"{messages} delayed until later.",
            f"`fila queue browse {queue}` shows until when; `fila message reschedule` moves one.",
        )
    if isinstance(subject, KeyState) and subject.ready:
        return Sentence(
            f"{messages} of this key fill the consumers: it waits for its own work.",
            "Its handlers are slow, or too few for its load; other keys are not to blame.",
        )
    return Sentence(
        f"{messages} with consumers, and nothing else waits.",
        f"`fila consumers {queue}` shows who holds how much, and for how long.",
    )


def _plain(code: Code, queue: str, subject: Subject) -> Sentence:
    if code is Code.PAUSED:
        return Sentence(
            "the queue is paused.", f"`fila queue resume {queue}` lets deliveries go on."
        )
    if code is Code.NO_CONSUMER:
        return Sentence(
            "nobody consumes the queue.",
            f"Start a worker; `fila consume {queue}` takes messages by hand.",
        )
    if code is Code.NOTHING_PENDING:
        what = "the key" if isinstance(subject, KeyState) else "the queue"
        return Sentence(
            f"{what} has nothing: all is done, or nothing was ever enqueued.",
            f"Is the name right? `fila stats {queue}` shows what there is.",
        )
    return Sentence("nothing stands in the way.", "Nothing to do: deliveries go on at once.")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _listed(parts: list[str]) -> str:
    *first, last = parts or [""]
    return f"{', '.join(first)} and {last}" if first else last
