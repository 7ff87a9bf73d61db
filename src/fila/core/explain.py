"""Why a message, a key or a queue is not delivered now: what stands in the way, the true one first.

Reads the scheduler's books and changes nothing. Causes stand in the order in which they bind: what
holds back whatever else changes comes before what ends by itself, and a full consumer comes before
the turn of a message only where no consumer is getting on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import nlargest, nsmallest
from itertools import islice
from typing import TypeVar

from fila.core.explanation import (
    Cause,
    Code,
    Count,
    Credit,
    Delay,
    DelayKind,
    Expiry,
    Explanation,
    Facts,
    KeyState,
    Lease,
    MessageState,
    QueueState,
    Throttling,
    WaitingKey,
)
from fila.core.key import Key
from fila.core.looks import Looks
from fila.core.message import Message
from fila.core.queue import Queue
from fila.core.records import Status
from fila.core.shortage import (
    coming_of,
    is_held_back,
    throttling_of,
    throttling_of_key,
    throttling_of_queue,
)
from fila.core.standing import turn_of, turn_of_key
from fila.core.state import State
from fila.core.views import consumer_view
from fila.model import NS_PER_S

# A queue whose consumers were given nothing and settled nothing for this long stands still.
_STILL_NS = 10 * NS_PER_S
_CONSUMERS_SHOWN_MAX = 10
_KEYS_SHOWN_MAX = 5
# Lanes of each key of a queue that are looked at for its oldest message.
_LANES_LOOKED_AT_MAX = 16
# Causes that are worth knowing and hold nothing back.
_NOTES = {Code.DELIVERABLE, Code.DEAD_LETTER, Code.EXPIRING}


T = TypeVar("T")


class Explainer:
    """One question about one queue."""

    def __init__(self, state: State, queue: Queue, *, now_ns: int, wall_ns: int) -> None:
        self._state = state
        self._queue = queue
        self._now_ns = now_ns
        self._wall_ns = wall_ns
        self._looks = Looks()
        self._causes: list[Cause] = []

    # The three questions

    def message(self, message: Message) -> Explanation:
        """Why this message of the queue, or of its dead-letter queue, is not delivered."""
        is_next = False
        if message.dead is not None:
            self._add(Code.DEAD_LETTER, message.dead)
        if message.queue is self._queue:
            match message.status:
                case Status.LEASED:
                    self._add(Code.LEASED, self._lease(message))
                case Status.DELAYED:
                    self._delayed(message)
                case Status.READY:
                    is_next = self._ready(message)
        subject = MessageState(
            queue=message.queue.name,
            status=message.status,
            spec=message.spec,
            attempts=message.attempts,
            last_error=message.last_error,
            is_next=is_next,
        )
        return self._explained(subject, is_deliverable=is_next and not self._is_held_back)

    def key(self, name: str) -> Explanation:
        """Why a fairness key's messages are not delivered, or not faster."""
        key = self._queue.keys.get(name) or Key(name)
        throttling = self._throttling_of(key)
        if key.ready:
            self._add_closed_doors()
            is_throttled = throttling.messages == key.ready
            self._add_room_and_limits(throttling, is_throttled=is_throttled, key=key)
        elif key.delayed:
            self._add(Code.DELAYED, Count(messages=key.delayed))
            self._add_closed_doors()
        elif key.in_flight:
            self._add(Code.IN_FLIGHT, Count(messages=key.in_flight))
        else:
            self._add(Code.NOTHING_PENDING)
        if key.ready and key.delayed:
            self._add(Code.DELAYED, Count(messages=key.delayed))
        return self._explained(
            self._key_state(key, throttling.messages),
            is_deliverable=key.ready > throttling.messages and not self._is_held_back,
        )

    def whole(self) -> Explanation:
        """Why a queue's messages are not delivered, and whose wait longest."""
        queue = self._queue
        throttling = throttling_of_queue(queue, now_ns=self._now_ns, looks=self._looks)
        if queue.ready_count:
            self._add_closed_doors()
            self._add_room_and_limits(throttling, is_throttled=not len(queue.ring))
        elif queue.delayed:
            self._add(Code.DELAYED, Count(messages=len(queue.delayed)))
            self._add_closed_doors()
        elif queue.leased:
            self._add(Code.IN_FLIGHT, Count(messages=len(queue.leased)))
        else:
            self._add(Code.NOTHING_PENDING)
            self._add_closed_doors()
        if queue.ready_count and queue.delayed:
            self._add(Code.DELAYED, Count(messages=len(queue.delayed)))
        return self._explained(
            self._queue_state(throttling.messages),
            is_deliverable=queue.ready_count > throttling.messages and not self._is_held_back,
        )

    # Messages

    def _delayed(self, message: Message) -> None:
        now_ns = self._wall_ns if message.wall_timed else self._now_ns
        left_ns = max(0, message.due_ns - now_ns)
        if message.wall_timed:
            kind = DelayKind.DELIVER_AT
        else:
            kind = DelayKind.RETRY if message.attempts else DelayKind.DELAY
        delay = Delay(kind=kind, until_ns=self._wall_ns + left_ns, left_ns=left_ns)
        self._add(Code.DELAYED, delay)
        self._add_closed_doors()
        throttling = coming_of(self._queue, message.spec.throttle_keys, now_ns=self._now_ns)
        if throttling.earliest_ns is None or throttling.earliest_ns > left_ns:
            self._add(Code.THROTTLED, throttling)
        self._add_expiry(message)

    def _ready(self, message: Message) -> bool:
        """What holds a ready message back; whether it is the very next one to go."""
        queue, looks = self._queue, self._looks
        lane = queue.lane_of(message.spec)
        assert lane is not None
        is_late = 0 < message.expires_at_ns <= self._wall_ns and not message.delivered
        if is_late:
            self._add_expiry(message)
        self._add_closed_doors()
        throttling = throttling_of(queue, lane, message.place, now_ns=self._now_ns, looks=looks)
        turn = turn_of(queue, lane, message.place, looks)
        is_held = is_held_back(queue, lane, self._now_ns)
        if is_held:
            self._add(Code.THROTTLED, throttling)
        credit = self._credit()
        if not credit.is_moving:
            self._add_credit(credit)
        if not (turn.is_next or is_held):
            self._add(Code.WAITING_TURN, turn)
        if credit.is_moving:
            self._add_credit(credit)
        if not is_held and throttling.earliest_ns != 0:
            self._add(Code.THROTTLED, throttling)
        if not is_late:
            self._add_expiry(message)
        return turn.is_next and not (is_held or is_late)

    def _lease(self, message: Message) -> Lease:
        consumer = self._state.consumers.get(message.consumer)
        return Lease(
            consumer=message.consumer,
            name=consumer.name if consumer else "",
            peer=consumer.peer if consumer else "",
            leased_at_ns=message.leased_at_ns,
            until_ns=message.due_wall_ns,
            left_ns=max(0, message.due_ns - self._now_ns),
        )

    def _add_expiry(self, message: Message) -> None:
        if message.expires_at_ns and not message.delivered:
            left_ns = max(0, message.expires_at_ns - self._wall_ns)
            self._add(Code.EXPIRING, Expiry(at_ns=message.expires_at_ns, left_ns=left_ns))

    # Keys

    def _throttling_of(self, key: Key) -> Throttling:
        """What limits hold back of a key, whether it stands in line already or was not tried."""
        lane = key.only_lane
        if lane is None or not is_held_back(self._queue, lane, self._now_ns):
            return throttling_of_key(self._queue, key, now_ns=self._now_ns, looks=self._looks)
        first = throttling_of(
            self._queue, lane, lane.fifo.peek(), now_ns=self._now_ns, looks=self._looks
        )
        return replace(first, messages=key.ready)

    def _key_state(self, key: Key, throttled: int) -> KeyState:
        served = weights = 0.0
        for other in self._some(self._queue.keys.values()):
            served += other.served.per_second(self._now_ns)
            weights += other.weight if other.ready else 0
        mine = key.served.per_second(self._now_ns)
        return KeyState(
            key=key.name,
            ready=key.ready,
            delayed=key.delayed,
            throttled=throttled,
            in_flight=key.in_flight,
            weight=key.weight,
            deficit=key.deficit,
            delivered_per_second=key.delivered.per_second(self._now_ns),
            share=min(1.0, mine / served) if served else 0.0,
            weight_share=min(1.0, key.weight / weights) if weights and key.ready else 0.0,
            oldest_sequence=self._queue.oldest_sequence(key),
        )

    # Queues

    def _queue_state(self, throttled: int) -> QueueState:
        queue = self._queue
        oldest: dict[Key, int] = {}
        delivered = 0.0
        for key in self._some(queue.keys.values()):
            delivered += key.delivered.per_second(self._now_ns)
            place = self._oldest_place(key) if key.ready else None
            if place is not None:
                oldest[key] = place
        longest = nsmallest(_KEYS_SHOWN_MAX, oldest, key=oldest.__getitem__)
        return QueueState(
            ready=queue.ready_count,
            delayed=len(queue.delayed),
            throttled=throttled,
            in_flight=len(queue.leased),
            consumers=len(queue.consumers),
            active_keys=len(queue.ring),
            key_count=len(queue.keys),
            delivered_per_second=delivered,
            longest_waiting=tuple(self._waiting(key, oldest[key]) for key in longest),
        )

    def _waiting(self, key: Key, place: int) -> WaitingKey:
        return WaitingKey(
            key=key.name,
            oldest_sequence=self._queue.sequence_at(place),
            ready=key.ready,
            throttled=self._throttling_of(key).messages,
        )

    # What holds for all of a queue

    def _add_closed_doors(self) -> None:
        """What keeps everything of the queue from going, whoever is next."""
        if self._queue.paused:
            self._add(Code.PAUSED)
        if not self._queue.consumers:
            self._add(Code.NO_CONSUMER)

    def _add_room_and_limits(
        self, throttling: Throttling, *, is_throttled: bool, key: Key | None = None
    ) -> None:
        """What holds back much: limits before all if nothing else may go, the turn of a key."""
        if is_throttled:
            self._add(Code.THROTTLED, throttling)
        credit = self._credit()
        if not credit.is_moving:
            self._add_credit(credit)
        is_open = key is not None and key.is_open and not is_throttled
        if key is not None and is_open and len(self._queue.ring) > 1:
            self._add(Code.WAITING_TURN, turn_of_key(self._queue, key, self._looks))
        if credit.is_moving:
            self._add_credit(credit)
        is_full = any(cause.code is Code.NO_CREDIT for cause in self._causes)
        if is_full and key is not None and key.in_flight * 2 > credit.held:
            self._add(Code.IN_FLIGHT, Count(messages=key.in_flight))
        if throttling.messages and not is_throttled:
            self._add(Code.THROTTLED, throttling)

    def _credit(self) -> Credit:
        consumers = list(self._some(self._queue.consumers.values()))
        slowest = nlargest(_CONSUMERS_SHOWN_MAX, consumers, key=lambda each: -each.idle_since_ns)
        return Credit(
            consumers=tuple(consumer_view(each, now_ns=self._now_ns) for each in slowest),
            count=len(self._queue.consumers),
            credit=sum(each.credit for each in consumers),
            held=sum(len(each.leases) for each in consumers),
            is_moving=any(self._now_ns - each.idle_since_ns < _STILL_NS for each in consumers),
        )

    def _add_credit(self, credit: Credit) -> None:
        consumers = self._queue.consumers.values()
        if consumers and not any(each.room > 0 for each in self._some(consumers)):
            self._add(Code.NO_CREDIT, credit)

    def _oldest_place(self, key: Key) -> int | None:
        """The lowest place of a key's messages, among those that are next; None for no time."""
        lanes = islice(key.some_lanes(), _LANES_LOOKED_AT_MAX)
        return min((lane.fifo.peek() for lane in self._some(lanes)), default=None)

    # The answer

    @property
    def _is_held_back(self) -> bool:
        return any(cause.code not in _NOTES for cause in self._causes)

    def _add(self, code: Code, facts: Facts | None = None) -> None:
        self._causes.append(Cause(code, facts))

    def _some(self, things: Iterable[T]) -> Iterator[T]:
        """As many as there is time to look at."""
        for thing in things:
            if not self._looks.take():
                break
            yield thing

    def _explained(
        self, subject: MessageState | KeyState | QueueState, *, is_deliverable: bool
    ) -> Explanation:
        if is_deliverable:
            self._causes.insert(0, Cause(Code.DELIVERABLE))
        return Explanation(
            queue=self._queue.name,
            subject=subject,
            causes=tuple(self._causes),
            is_deliverable=is_deliverable,
            is_exact=self._looks.is_exact,
        )
