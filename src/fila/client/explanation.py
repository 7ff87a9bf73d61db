"""Why something is not delivered, as `client.admin.explain` answers it: frozen values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TypeAlias

from fila.client.message import DeadLetter, moment
from fila.client.views import ConsumerInfo, MessageState, consumer_info
from fila.wire._pb import admin_pb2 as pb
from fila.wire._pb import messages_pb2


class CauseCode(Enum):
    """What kind of thing stands in the way; `OTHER` is one that this SDK does not know yet."""

    OTHER = 0
    DELIVERABLE = 1
    LEASED = 2
    DELAYED = 3
    PAUSED = 4
    NO_CONSUMER = 5
    NO_CREDIT = 6
    THROTTLED = 7
    WAITING_TURN = 8
    EXPIRING = 9
    DEAD_LETTER = 10
    NOTHING_PENDING = 11
    IN_FLIGHT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFacts:
    """Who has a message. `consumer_id` is 0 when that consumer is not connected any more."""

    consumer_id: int
    consumer_name: str
    peer: str
    leased_at: datetime
    until: datetime
    left_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayFacts:
    """Until when a message waits; `kind` is "deliver_at", "delay" or "retry"."""

    kind: str
    until: datetime
    left_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditFacts:
    """How much the queue's consumers hold; the longest idle are listed first."""

    consumers: Sequence[ConsumerInfo]
    count: int
    credit: int
    held: int
    moving: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFacts:
    """A throttle key's bucket. `next_token_ms` is None for never."""

    key: str
    tokens: float
    rate_per_second: float
    burst: float
    next_token_ms: int | None
    waiting: int
    waiting_before: int
    holds_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleFacts:
    """What limits do; None for never. `likely_ms` is an estimate by who waits now."""

    buckets: Sequence[BucketFacts]
    messages: int
    earliest_ms: int | None
    likely_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """Who is before a message, or before a key's next one."""

    ahead_in_lane: int
    ahead_in_key: int
    ahead_by_priority: int
    keys_before: int
    turns: int
    active_keys: int
    deficit: int
    weight: int
    cost: int
    quantum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryFacts:
    """When a message becomes a dead letter for not having been delivered."""

    expires_at: datetime
    left_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountFacts:
    """So many messages of a key or a queue."""

    messages: int


Facts: TypeAlias = (
    LeaseFacts
    | DelayFacts
    | CreditFacts
    | ThrottleFacts
    | TurnFacts
    | ExpiryFacts
    | CountFacts
    | DeadLetter
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that stands in the way: what it is, what one can do, and what is known of it."""

    code: CauseCode
    text: str
    advice: str
    facts: Facts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFacts:
    """The message that was asked about. `next`: the very next to go when a consumer has room."""

    id: str
    queue: str
    state: MessageState
    fairness_key: str
    weight: int
    priority: int
    cost: int
    throttle_keys: Sequence[str]
    attempts: int
    last_error: str
    enqueued_at: datetime
    next: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFacts:
    """The fairness key that was asked about."""

    key: str
    ready: int
    delayed: int
    throttled: int
    in_flight: int
    weight: int
    deficit: int
    delivered_per_second: float
    share: float
    weight_share: float
    oldest_waiting_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingKey:
    """A key in the list of those that wait longest."""

    key: str
    oldest_waiting_ms: int
    ready: int
    throttled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """The queue that was asked about."""

    ready: int
    delayed: int
    throttled: int
    in_flight: int
    consumers: int
    active_keys: int
    key_count: int
    delivered_per_second: float
    longest_waiting: Sequence[WaitingKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why something is not delivered now: `causes[0]` is what holds it back.

    `at_least`: there was too much to look at each, so what is counted as before it may be more.
    """

    summary: str
    causes: Sequence[Cause]
    deliverable: bool
    at_least: bool
    subject: MessageFacts | KeyFacts | QueueFacts


def explanation(answer: pb.ExplainResponse) -> Explanation:
    """The answer as the broker gave it."""
    return Explanation(
        summary=answer.summary,
        causes=tuple(_cause(cause) for cause in answer.causes),
        deliverable=answer.deliverable,
        at_least=answer.at_least,
        subject=_subject(answer),
    )


def _subject(answer: pb.ExplainResponse) -> MessageFacts | KeyFacts | QueueFacts:
    match answer.WhichOneof("subject"):
        case "message":
            return _message(answer.message)
        case "key":
            return _key(answer.key)
        case _:
            return _queue(answer.queue)


def _message(message: pb.MessageFacts) -> MessageFacts:
    return MessageFacts(
        id=message.id,
        queue=message.queue,
        state=MessageState(message.state),
        fairness_key=message.fairness_key,
        weight=message.weight,
        priority=message.priority,
        cost=message.cost,
        throttle_keys=tuple(message.throttle_keys),
        attempts=message.attempt_count,
        last_error=message.last_error,
        enqueued_at=moment(message.enqueued_at),
        next=message.next,
    )


def _key(key: pb.KeyFacts) -> KeyFacts:
    return KeyFacts(
        key=key.key,
        ready=key.ready,
        delayed=key.delayed,
        throttled=key.throttled,
        in_flight=key.in_flight,
        weight=key.weight,
        deficit=key.deficit,
        delivered_per_second=key.delivered_per_second,
        share=key.share,
        weight_share=key.weight_share,
        oldest_waiting_ms=key.oldest_waiting_ms,
    )


def _queue(queue: pb.QueueFacts) -> QueueFacts:
    return QueueFacts(
        ready=queue.ready,
        delayed=queue.delayed,
        throttled=queue.throttled,
        in_flight=queue.in_flight,
        consumers=queue.consumers,
        active_keys=queue.active_keys,
        key_count=queue.key_count,
        delivered_per_second=queue.delivered_per_second,
        longest_waiting=tuple(
            WaitingKey(
                key=key.key,
                oldest_waiting_ms=key.oldest_waiting_ms,
                ready=key.ready,
                throttled=key.throttled,
            )
            for key in queue.longest_waiting
        ),
    )


def _cause(cause: pb.Cause) -> Cause:
    known = {code.value for code in CauseCode}
    return Cause(
        code=CauseCode(cause.code if cause.code in known else 0),
        text=cause.text,
        advice=cause.advice,
        facts=_facts(cause),
    )


def _facts(cause: pb.Cause) -> Facts | None:
    facts: Facts | None = None
    match cause.WhichOneof("facts"):
        case "lease":
            facts = _lease(cause.lease)
        case "delay":
            delay = cause.delay
            facts = DelayFacts(kind=delay.kind, until=moment(delay.until), left_ms=delay.left_ms)
        case "credit":
            facts = _credit(cause.credit)
        case "throttle":
            facts = _throttle(cause.throttle)
        case "turn":
            facts = _turn(cause.turn)
        case "expiry":
            expiry = cause.expiry
            facts = ExpiryFacts(expires_at=moment(expiry.expires_at), left_ms=expiry.left_ms)
        case "dead_letter":
            facts = _dead_letter(cause.dead_letter)
        case "count":
            facts = CountFacts(messages=cause.count)
    return facts


def _lease(lease: pb.LeaseFacts) -> LeaseFacts:
    return LeaseFacts(
        consumer_id=lease.consumer_id,
        consumer_name=lease.consumer_name,
        peer=lease.peer,
        leased_at=moment(lease.leased_at),
        until=moment(lease.until),
        left_ms=lease.left_ms,
    )


def _credit(credit: pb.CreditFacts) -> CreditFacts:
    return CreditFacts(
        consumers=tuple(consumer_info(consumer) for consumer in credit.consumers),
        count=credit.count,
        credit=credit.credit,
        held=credit.held,
        moving=credit.moving,
    )


def _throttle(throttle: pb.ThrottleFacts) -> ThrottleFacts:
    return ThrottleFacts(
        buckets=tuple(_bucket(bucket) for bucket in throttle.buckets),
        messages=throttle.messages,
        earliest_ms=throttle.earliest_ms if throttle.HasField("earliest_ms") else None,
        likely_ms=throttle.likely_ms if throttle.HasField("likely_ms") else None,
    )


def _bucket(bucket: pb.BucketFacts) -> BucketFacts:
    return BucketFacts(
        key=bucket.key,
        tokens=bucket.tokens,
        rate_per_second=bucket.rate_per_second,
        burst=bucket.burst,
        next_token_ms=bucket.next_token_ms if bucket.HasField("next_token_ms") else None,
        waiting=bucket.waiting,
        waiting_before=bucket.waiting_before,
        holds_back=bucket.holds_back,
    )


def _turn(turn: pb.TurnFacts) -> TurnFacts:
    return TurnFacts(
        ahead_in_lane=turn.ahead_in_lane,
        ahead_in_key=turn.ahead_in_key,
        ahead_by_priority=turn.ahead_by_priority,
        keys_before=turn.keys_before,
        turns=turn.turns,
        active_keys=turn.active_keys,
        deficit=turn.deficit,
        weight=turn.weight,
        cost=turn.cost,
        quantum=turn.quantum,
    )


def _dead_letter(dead: messages_pb2.DeadLetter) -> DeadLetter:
    return DeadLetter(
        reason=dead.reason,
        last_error=dead.last_error,
        source_queue=dead.source_queue,
        dead_at=moment(dead.dead_at),
    )
