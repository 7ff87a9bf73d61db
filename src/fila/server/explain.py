"""Explain: the question checked, what is asked about found, the answer in words and on the wire."""

from fila import ids
from fila.core.explanation import (
    BucketView,
    Cause,
    Count,
    Credit,
    Delay,
    Expiry,
    Explanation,
    KeyState,
    Lease,
    MessageState,
    QueueState,
    Throttling,
    Turn,
)
from fila.core.message import Message
from fila.core.records import Entry
from fila.errors import InvalidArgumentError, MessageNotFoundError
from fila.model import NS_PER_MS, DeadLetter
from fila.server.boundary import Context
from fila.server.sentences import sentence, summary
from fila.server.shell import Shell
from fila.server.views import STATES, consumer_info, waiting_ms
from fila.wire import envelope
from fila.wire._pb import admin_pb2 as pb
from fila.wire.names import check_key, check_queue_name
from fila.wire.request import parse


class ExplainService:
    """Why something is not delivered now."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def explain(self, data: bytes, _context: Context) -> bytes:
        """Of a message, of a fairness key, or of a queue."""
        request = parse(pb.ExplainRequest, data)
        check_queue_name(request.queue, self._shell.limits)
        if request.message_id and request.fairness_key:
            raise InvalidArgumentError("ask about a message_id or about a fairness_key, not both")
        if request.fairness_key:
            check_key("fairness key", request.fairness_key, self._shell.limits)
        found = self._find(request.queue, request.message_id) if request.message_id else None
        clock = self._shell.runner.clock
        explanation = self._shell.scheduler.explain(
            request.queue,
            message=found[1] if found else None,
            key=request.fairness_key,
            now_ns=clock.now_ns(),
            wall_ns=clock.wall_ns(),
        )
        response = pb.ExplainResponse(
            summary=summary(explanation),
            causes=[_cause(cause, explanation) for cause in explanation.causes],
            deliverable=explanation.is_deliverable,
            at_least=not explanation.is_exact,
        )
        match explanation.subject:
            case MessageState():
                assert found is not None
                _show_message(response.message, request.message_id, found[0], explanation.subject)
            case KeyState():
                self._show_key(response.key, request.queue, explanation.subject)
            case QueueState():
                self._show_queue(response.queue, request.queue, explanation.subject)
        return response.SerializeToString()

    def _find(self, queue: str, message_id: str) -> tuple[Entry, Message]:
        high, low = ids.parse_id(message_id)
        scheduler, storage = self._shell.scheduler, self._shell.storage
        partition, sequence = scheduler.partition_of(queue), ids.sequence_of(low)
        if not ids.belongs_to(low, partition):
            where = "the id is another queue's, or of one that was deleted"
            raise MessageNotFoundError(queue, message_id, where)
        entry = storage.read_entry(partition, sequence)
        if entry is None or entry.id_high != high:
            where = "it was acknowledged or removed, or was never there"
            raise MessageNotFoundError(queue, message_id, where)
        progress = storage.read_progress(partition, sequence)
        return entry, scheduler.find(queue, message_id, entry, progress)

    def _waiting_ms(self, queue: str, sequence: int) -> int:
        return waiting_ms(self._shell, self._shell.scheduler.partition_of(queue), sequence)

    def _show_key(self, shown: pb.KeyFacts, queue: str, key: KeyState) -> None:
        shown.MergeFrom(
            pb.KeyFacts(
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
                oldest_waiting_ms=self._waiting_ms(queue, key.oldest_sequence),
            )
        )

    def _show_queue(self, shown: pb.QueueFacts, queue: str, state: QueueState) -> None:
        shown.MergeFrom(
            pb.QueueFacts(
                ready=state.ready,
                delayed=state.delayed,
                throttled=state.throttled,
                in_flight=state.in_flight,
                consumers=state.consumers,
                active_keys=state.active_keys,
                key_count=state.key_count,
                delivered_per_second=state.delivered_per_second,
            )
        )
        for key in state.longest_waiting:
            shown.longest_waiting.add(
                key=key.key,
                oldest_waiting_ms=self._waiting_ms(queue, key.oldest_sequence),
                ready=key.ready,
                throttled=key.throttled,
            )


def _show_message(
    shown: pb.MessageFacts, message_id: str, entry: Entry, message: MessageState
) -> None:
    spec = message.spec
    shown.MergeFrom(
        pb.MessageFacts(
            id=message_id,
            queue=message.queue,
            state=STATES[message.status],
            fairness_key=spec.fairness_key,
            weight=spec.weight,
            priority=spec.priority,
            cost=spec.cost,
            throttle_keys=spec.throttle_keys,
            attempt_count=message.attempts,
            last_error=message.last_error,
            next=message.is_next,
        )
    )
    envelope.set_time(shown.enqueued_at, entry.accepted_at_ns)


def _cause(cause: Cause, explanation: Explanation) -> pb.Cause:
    text, advice = sentence(cause, explanation)
    shown = pb.Cause(
        code=f"CAUSE_CODE_{cause.code.name}",
        text=text[:1].upper() + text[1:],
        advice=advice,
    )
    match cause.facts:
        case Lease():
            _show_lease(shown.lease, cause.facts)
        case Delay():
            shown.delay.kind = cause.facts.kind.name.lower()
            shown.delay.left_ms = _whole_ms(cause.facts.left_ns)
            envelope.set_time(shown.delay.until, cause.facts.until_ns)
        case Credit():
            shown.credit.CopyFrom(_credit(cause.facts))
        case Throttling():
            shown.throttle.CopyFrom(_throttling(cause.facts))
        case Turn():
            shown.turn.CopyFrom(_turn(cause.facts))
        case Expiry():
            shown.expiry.left_ms = _whole_ms(cause.facts.left_ns)
            envelope.set_time(shown.expiry.expires_at, cause.facts.at_ns)
        case DeadLetter():
            envelope.set_dead_letter(shown.dead_letter, cause.facts)
        case Count():
            shown.count = cause.facts.messages
    return shown


def _show_lease(shown: pb.LeaseFacts, lease: Lease) -> None:
    shown.consumer_id = lease.consumer
    shown.consumer_name = lease.name
    shown.peer = lease.peer
    shown.left_ms = _whole_ms(lease.left_ns)
    envelope.set_time(shown.leased_at, lease.leased_at_ns)
    envelope.set_time(shown.until, lease.until_ns)


def _credit(credit: Credit) -> pb.CreditFacts:
    return pb.CreditFacts(
        consumers=[consumer_info(each) for each in credit.consumers],
        count=credit.count,
        credit=credit.credit,
        held=credit.held,
        moving=credit.is_moving,
    )


def _throttling(throttling: Throttling) -> pb.ThrottleFacts:
    return pb.ThrottleFacts(
        buckets=[_bucket(view) for view in throttling.buckets],
        messages=throttling.messages,
        earliest_ms=_span_ms(throttling.earliest_ns),
        likely_ms=_span_ms(throttling.likely_ns),
    )


def _bucket(view: BucketView) -> pb.BucketFacts:
    return pb.BucketFacts(
        key=view.key,
        tokens=view.tokens,
        rate_per_second=view.rate,
        burst=view.burst,
        next_token_ms=_span_ms(view.next_token_ns),
        waiting=view.waiting,
        waiting_before=view.waiting_before,
        holds_back=view.holds_back,
    )


def _turn(turn: Turn) -> pb.TurnFacts:
    return pb.TurnFacts(
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


def _whole_ms(nanoseconds: int) -> int:
    """Rounded up: what waits for a millisecond more does not wait for none."""
    return -(-nanoseconds // NS_PER_MS)


def _span_ms(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else min(_whole_ms(nanoseconds), 2**63)
