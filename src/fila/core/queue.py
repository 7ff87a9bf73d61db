"""One queue in memory: what waits in which lane of which key, what is delayed, what is leased.

Only keeps the books: which message is next, and that every count fits. What happens to a message
and why is decided in `settlement`, `expiry`, `delivery` and `admission`.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from fila.core.key import Key, Source
from fila.core.lane import Lane
from fila.core.message import Message
from fila.core.rate import window_at
from fila.core.records import KeyWeight, QueueRecord, Status
from fila.core.ring import Ring
from fila.model import NS_PER_MS, is_dlq

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fila.core.consumer import Consumer
    from fila.core.line import Line
    from fila.core.partition import Partition
    from fila.core.throttle import Throttle
    from fila.model import QueueSettings, Spec

# So many lanes put aside in one go, which must not hold the loop.
_ASIDE_MAX = 1000
# So many lanes of a key looked at for its oldest message: one for each priority, and some.
LANES_SEEN_MAX = 300


class Queue:
    """One queue."""

    def __init__(
        self,
        name: str,
        partition: Partition,
        settings: QueueSettings,
        *,
        quantum: int,
        throttle: Throttle,
    ) -> None:
        self.name = name
        self.partition = partition
        self.settings = settings
        self.paused = False
        self.is_dlq = is_dlq(name)
        self.ring: Ring[Key] = Ring(settings.quantum or quantum)
        self.throttle = throttle
        # Its lines at the buckets of its messages' throttle keys.
        self.lines: dict[Line, None] = {}
        self.keys: dict[str, Key] = {}
        self.ready_count = 0
        # By sequence.
        self.delayed: dict[int, Message] = {}
        self.leased: dict[int, Message] = {}
        # Subscribed consumers, and those of them that are believed to have room, in turn.
        self.consumers: dict[int, Consumer] = {}
        self.takers: deque[Consumer] = deque()
        # When it last had its turn among the queues, in turns.
        self.served_turn = 0
        self._lanes: dict[Spec, Lane] = {}
        # Ready messages with a past, by place.
        self._noted: dict[int, Message] = {}

    @property
    def depth(self) -> int:
        """Everything it holds."""
        return self.ready_count + len(self.delayed) + len(self.leased)

    @property
    def can_take(self) -> bool:
        """Whether a consumer could be given a message, as far as is known without looking."""
        return bool(self.takers) and not self.paused

    @property
    def can_serve(self) -> bool:
        """Whether a message could go to a consumer now, as far as is known without looking."""
        return len(self.ring) > 0 and self.can_take

    @property
    def throttled_count(self) -> int:
        """Ready messages that wait for a token."""
        return sum(line.throttled_count for line in self.lines)

    @property
    def record(self) -> QueueRecord:
        """What is stored of it."""
        return QueueRecord(
            name=self.name,
            partition=self.partition.number,
            settings=self.settings,
            paused=self.paused,
        )

    def add_fresh(self, spec: Spec, places: range) -> None:
        """Newly accepted messages, alike, behind all others."""
        lane = self._lanes.get(spec)
        if lane is not None and lane.key.weight == spec.weight:
            # Behind others of its kind: the key's next message and its weight stay the same.
            key = lane.key
            lane.fifo.extend(places)
            key.note_weight(places[-1], spec.weight)
            key.ready += len(places)
            self.ready_count += len(places)
            if lane.waiter is not None:
                self.throttle.added(lane, len(places), lane.fifo.peek())
            return
        key = lane.key if lane else self._open_key(spec.fairness_key)
        self.ring.before_change(key)
        if lane is None:
            lane = self._lanes[spec] = Lane(spec, key)
            lane.fifo.extend(places)
            key.source_opened(lane)
        else:
            lane.fifo.extend(places)
            if lane.waiter is not None:
                self.throttle.added(lane, len(places), lane.fifo.peek())
        self.note_weight(key, places[-1], spec.weight)
        self._count_ready(key, len(places))

    def add_ready(self, message: Message) -> KeyWeight | None:
        """A message with a past is ready, at its place; the weight record if that must change."""
        spec = message.spec
        message.status = Status.READY
        self._noted[message.place] = message
        lane = self._lanes.get(spec)
        key = lane.key if lane else self._open_key(spec.fairness_key)
        self.ring.before_change(key)
        if lane is None:
            lane = self._lanes[spec] = Lane(spec, key)
            lane.fifo.add(message.place)
            key.source_opened(lane)
        else:
            first = lane.fifo.peek()
            lane.fifo.add(message.place)
            if lane.waiter is not None:
                self.throttle.added(lane, 1, first)
            elif message.place < first:
                key.front_changed(lane)
        self.note_weight(key, message.place, spec.weight)
        self._count_ready(key, 1)
        return self._weight_record(key)

    def add_delayed(self, message: Message) -> None:
        """A message waits for its time; it is pending, but not ready."""
        message.status = Status.DELAYED
        self.delayed[message.sequence] = message
        self._open_key(message.spec.fairness_key).delayed += 1

    def add_leased(self, message: Message) -> None:
        """A message was leased before a restart, and still is."""
        message.status = Status.LEASED
        self.leased[message.sequence] = message
        key = self._open_key(message.spec.fairness_key)
        key.in_flight += 1
        key.mixed_weights = True

    def remove_delayed(self, message: Message) -> KeyWeight | None:
        """A message is not delayed any more; the key may be forgotten, and its weight record."""
        del self.delayed[message.sequence]
        key = self.keys[message.spec.fairness_key]
        key.delayed -= 1
        return self._settle_key(key)

    def remove_leased(self, *messages: Message) -> None:
        """Messages are not leased any more."""
        leased, keys = self.leased, self.keys
        for message in messages:
            del leased[message.sequence]
            key = keys[message.spec.fairness_key]
            key.in_flight -= 1
            if not (key.in_flight or key.ready or key.delayed):
                del keys[key.name]

    def pick(self, limit: int, *, now_ns: int, records: list[KeyWeight]) -> list[tuple[int, Spec]]:
        """Take the next messages out of their lanes, by place; weights to store are appended."""
        window = window_at(now_ns)
        picked: list[tuple[int, Spec]] = []
        ring = self.ring
        aside = 0
        while limit > 0 and aside < _ASIDE_MAX:
            key = ring.next_key()
            if key is None:
                break
            lane = key.only_lane or key.head()
            spec = lane.spec
            cost = spec.cost
            # Within a turn, what is alike goes in one step.
            if key.deficit < 2 * cost or key.only_lane is None:
                count = 1
            else:
                count = min(limit, key.deficit // cost, len(lane.fifo))
            if spec.throttle_keys:
                count = self.throttle.admit(self, lane, count)
                if not count:
                    aside += 1
                    continue
            if count == 1:
                place = lane.fifo.take_one()
                picked.append((place, spec))
            else:
                places = lane.fifo.take(count)
                place = places[-1]
                picked.extend([(place, spec) for place in places])
            key.deficit -= count * cost
            key.in_flight += count
            key.note_delivery(count, count * cost, window)
            limit -= count
            record = self._took_ready(key, lane, place, count)
            if record is not None:
                records.append(record)
        return picked

    def lease(
        self, picked: list[tuple[int, Spec]], *, now_ns: int, wall_ns: int, token: int
    ) -> list[Message]:
        """Make leased messages of what was picked, with tokens counting up from `token`."""
        span_ns = self.settings.visibility_timeout_ms * NS_PER_MS
        due_ns, due_wall_ns = now_ns + span_ns, wall_ns + span_ns
        noted, leased = self._noted, self.leased
        messages: list[Message] = []
        for place, spec in picked:
            message = noted.pop(place, None) if noted else None
            if message is None:
                message = Message(self, spec, place, place, Status.LEASED)
            else:
                message.status = Status.LEASED
            message.token = token
            message.due_ns = due_ns
            message.due_wall_ns = due_wall_ns
            message.span_ns = span_ns
            message.leased_at_ns = wall_ns
            token += 1
            leased[message.sequence] = message
            messages.append(message)
        return messages

    def find(self, spec: Spec, sequence: int, place: int) -> Message | None:
        """One of its messages, made up for the occasion if it waits as it was accepted."""
        known = self.leased.get(sequence) or self.delayed.get(sequence) or self._noted.get(place)
        if known is not None:
            return known if known.sequence == sequence else None
        lane = self._lanes.get(spec)
        if lane is None or place != sequence or place not in lane.fifo:
            return None
        return Message(self, spec, sequence, place, Status.READY)

    def lane_of(self, spec: Spec) -> Lane | None:
        """The lane of what is alike, if something waits there."""
        return self._lanes.get(spec)

    def sequence_at(self, place: int) -> int:
        """The ready message at a place, by its sequence."""
        message = self._noted.get(place)
        return message.sequence if message else place

    def remove_ready(self, spec: Spec, sequence: int) -> tuple[Message, KeyWeight | None] | None:
        """Take one message out of the middle, if it waits."""
        lane = self._lanes.get(spec)
        if lane is not None and sequence not in self._noted and lane.fifo.remove(sequence):
            message = Message(self, spec, sequence, sequence, Status.READY)
            return message, self._removed_front(lane, sequence)
        for message in self._noted.values():
            if message.sequence == sequence:
                return message, self.remove_noted(message)
        return None

    def remove_pending(
        self, spec: Spec, sequence: int, place: int
    ) -> tuple[Message, KeyWeight | None] | None:
        """Take out one message by the place at which it waits, ready or delayed, if it does."""
        delayed = self.delayed.get(sequence)
        if delayed is not None:
            return (delayed, self.remove_delayed(delayed)) if delayed.place == place else None
        noted = self._noted.get(place)
        if noted is not None:
            return noted, self.remove_noted(noted)
        lane = self._lanes.get(spec)
        if lane is None or not lane.fifo.remove(place):
            return None
        message = Message(self, spec, sequence, place, Status.READY)
        return message, self._removed_front(lane, place)

    def remove_noted(self, message: Message) -> KeyWeight | None:
        """Take a ready message with a past out of its lane."""
        del self._noted[message.place]
        lane = self._lanes[message.spec]
        lane.fifo.remove(message.place)
        return self._removed_front(lane, message.place)

    def clear_pending(self) -> list[Message]:
        """Drop all that waits; those with a past or a time are returned."""
        dropped = [*self._noted.values(), *self.delayed.values()]
        self.throttle.forget_queue(self, self._lanes.values())
        self._noted.clear()
        self._lanes.clear()
        self.delayed.clear()
        self.ready_count = 0
        for key in list(self.keys.values()):
            if key.seat is not None:
                self.ring.leave(key)
            key.ready = key.delayed = 0
            if key.in_flight:
                fresh = self.keys[key.name] = Key(key.name)
                fresh.in_flight = key.in_flight
                fresh.mixed_weights = True
            else:
                del self.keys[key.name]
        return dropped

    def pending_sequences(self) -> Iterator[int]:
        """All that waits, in no order."""
        for lane in self._lanes.values():
            for place in lane.fifo:
                message = self._noted.get(place)
                yield message.sequence if message else place
        yield from self.delayed

    def ready_places(self) -> list[int]:
        """The places of all that is ready, lowest first."""
        noted = self._noted
        places = list(noted)
        if len(places) < self.ready_count:
            # Messages that wait as they were accepted.
            for lane in self._lanes.values():
                places.extend(place for place in lane.fifo if place not in noted)
        places.sort()
        return places

    def call_takers(self, wanted: int) -> list[Consumer]:
        """Consumers with room, first in turn first: as many as are wanted, or more room."""
        called: list[Consumer] = []
        room = 0
        takers = self.takers
        while takers and (room < wanted or len(called) < wanted):
            consumer = takers.popleft()
            if consumer.room > 0 and self.name in consumer.queues:
                called.append(consumer)
                room += consumer.room
            else:
                consumer.enlisted.discard(self.name)
        return called

    def return_takers(self, called: list[Consumer]) -> None:
        """Put those who still have room at the end of the line."""
        for consumer in called:
            if consumer.room > 0:
                self.takers.append(consumer)
            else:
                consumer.enlisted.discard(self.name)

    def oldest_sequence(self, key: Key, lanes_max: int = LANES_SEEN_MAX) -> int:
        """The ready message of a key with the lowest place, by its sequence; 0 for none.

        Of very many lanes only some are looked at: those whose turn is next are among them.
        """
        if not key.ready:
            return 0
        place = min(lane.fifo.peek() for lane in islice(key.some_lanes(), lanes_max))
        return self.sequence_at(place)

    def open_source(self, key: Key, source: Source) -> None:
        """Something of a key may be delivered now."""
        self.ring.before_change(key)
        key.source_opened(source)
        if key.seat is None:
            self.ring.join(key)
        else:
            self.ring.after_change(key)

    def close_source(self, key: Key, source: Source) -> None:
        """Something of a key may not be delivered any more: it is empty, or waits for a token."""
        self.ring.before_change(key)
        key.source_closed(source)
        if key.seat is None:
            return
        if key.is_open:
            self.ring.after_change(key)
        else:
            # What it had left of its turn it keeps; without messages it is taken away later.
            self.ring.leave(key)

    def front_moved(self, key: Key, source: Source) -> None:
        """An open source has another first message."""
        self.ring.before_change(key)
        key.front_changed(source)
        if key.seat is not None:
            self.ring.after_change(key)

    def note_weight(self, key: Key, place: int, weight: int) -> None:
        """Take in the weight of a message that is ready, wherever its key takes turns."""
        if key.note_weight(place, weight):
            for waiter in key.waiters.values():
                waiter.line.reweigh(waiter)

    def set_quantum(self, quantum: int) -> None:
        """Let turns be of another length from now on."""
        for key in self.keys.values():
            self.ring.before_change(key)
        self.ring.quantum = quantum
        for key in self.keys.values():
            self.ring.after_change(key)
        for line in self.lines:
            line.set_quantum(quantum)

    def enlist(self, consumer: Consumer) -> None:
        """Count on a consumer as one with room."""
        if self.name not in consumer.enlisted:
            consumer.enlisted.add(self.name)
            self.takers.append(consumer)

    def key_weight(self, name: str, weight: int = 1, *, place: int) -> KeyWeight:
        """A key's weight record; with place 0, that there is none any more."""
        return KeyWeight(
            partition=self.partition.number,
            in_dlq=self.is_dlq,
            fairness_key=name,
            weight=weight,
            place=place,
        )

    def _open_key(self, name: str) -> Key:
        key = self.keys.get(name)
        if key is None:
            key = self.keys[name] = Key(name)
        return key

    def _count_ready(self, key: Key, count: int) -> None:
        key.ready += count
        self.ready_count += count
        if key.seat is not None:
            self.ring.after_change(key)
        elif key.is_open:
            self.ring.join(key)

    def _removed_front(self, lane: Lane, place: int) -> KeyWeight | None:
        key = lane.key
        self.ring.before_change(key)
        record = self._took_ready(key, lane, place, 1)
        if key.seat is not None:
            self.ring.after_change(key)
        return record

    def _took_ready(self, key: Key, lane: Lane, last: int, count: int) -> KeyWeight | None:
        """So many messages left the front of a lane, the last of them from this place."""
        key.ready -= count
        self.ready_count -= count
        if last == key.newest_place:
            key.newest_gone = True
        if key.only_lane is lane and lane.fifo:
            # Nearly always: what follows has nothing to do then.
            return self._weight_record(key) if key.newest_gone else None
        if not lane.fifo:
            del self._lanes[lane.spec]
        if lane.waiter is not None:
            self.throttle.took(lane, last, count)
        elif lane.fifo:
            key.front_changed(lane)
        else:
            self.throttle.gone(lane)
            self.close_source(key, lane)
        if not key.ready:
            # Only a limit lets a key keep what it has saved up; without work it starts anew.
            key.deficit = 0
        return self._settle_key(key)

    def _settle_key(self, key: Key) -> KeyWeight | None:
        """Forget a key that has nothing pending; else say if its weight must be stored now."""
        if key.ready or key.delayed:
            return self._weight_record(key)
        was_stored = key.stored_place
        key.forget()
        if not key.in_flight:
            del self.keys[key.name]
        return self.key_weight(key.name, place=0) if was_stored else None

    def _weight_record(self, key: Key) -> KeyWeight | None:
        if not key.needs_record:
            return None
        key.stored_place = key.newest_place
        return self.key_weight(key.name, key.weight, place=key.newest_place)
