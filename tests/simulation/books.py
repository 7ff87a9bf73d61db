"""The model's own books: messages and queues as the specification describes them, kept plainly.

Nothing of the broker's core is used here. Messages are values and dictionaries are small, so that
a copy of everything, one for each write that a power cut may undo, costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from fila.model import ItemError, ProducerSequence, QueueSettings, Spec, is_dlq
from tests.simulation.buckets import Buckets


class Stage(Enum):
    """Where a message is."""

    READY = "ready"
    DELAYED = "delayed"
    LEASED = "leased"


class Place(NamedTuple):
    """A place in the order. What two clocks make ready in one pass has no order among itself."""

    number: int
    clock: int = 0
    rank: int = 0

    def is_before(self, other: Place) -> bool:
        """Whether this place is certainly the earlier one."""
        if self.number != other.number:
            return self.number < other.number
        return self.clock == other.clock and self.rank < other.rank


class Msg(NamedTuple):
    """One message."""

    # Which of the items that clients sent it is; the body says so.
    item: int
    sequence: int
    id_high: int
    queue: str
    spec: Spec
    place: Place
    stage: Stage = Stage.READY
    attempts: int = 0
    # Deliveries in this queue, but for those that were released.
    tries: int = 0
    delivered: bool = False
    # End of the lease or of the delay, on the clock that `wall_timed` names.
    due: int = 0
    due_wall: int = 0
    span: int = 0
    wall_timed: bool = False
    expires: int = 0
    token: int = 0
    consumer: int = 0
    last_error: str = ""
    reason: str = ""
    source: str = ""

    def goes_before(self, other: Msg) -> bool:
        """Whether this must be delivered before another ready message of the same key."""
        if self.spec.priority != other.spec.priority:
            return self.spec.priority > other.spec.priority
        return self.place.is_before(other.place)


@dataclass(frozen=True, slots=True)
class Known:
    """What an enqueue came to, and on the steady clock when."""

    id_high: int
    first_seq: int
    count: int
    errors: tuple[ItemError, ...]
    at: int


# The newest ready messages that a key has had since it was last empty: place and weight. Several
# only where their order is open.
Newest = tuple[tuple[Place, int], ...]


@dataclass(slots=True)
class Shelf:
    """One queue."""

    name: str
    settings: QueueSettings
    paused: bool = False
    ready: dict[str, dict[int, Msg]] = field(default_factory=dict)
    delayed: dict[int, Msg] = field(default_factory=dict)
    leased: dict[int, Msg] = field(default_factory=dict)
    newest: dict[str, Newest] = field(default_factory=dict)
    # The greatest limit that was ever set; 0 for none.
    attempts_limit: int = 0
    # Not part of what survives: how often each key became active, and its largest cost since.
    spells: dict[str, int] = field(default_factory=dict)
    largest: dict[str, int] = field(default_factory=dict)

    @property
    def is_dlq(self) -> bool:
        """Whether it is a dead-letter queue."""
        return is_dlq(self.name)

    @property
    def ready_count(self) -> int:
        """How many are ready."""
        return sum(map(len, self.ready.values()))

    @property
    def depth(self) -> int:
        """How many it holds."""
        return self.ready_count + len(self.delayed) + len(self.leased)

    def copy(self) -> Shelf:
        """The same again; spells start anew, as they do in a broker that starts."""
        return Shelf(
            self.name,
            self.settings,
            self.paused,
            {key: dict(messages) for key, messages in self.ready.items()},
            dict(self.delayed),
            dict(self.leased),
            dict(self.newest),
            self.attempts_limit,
        )

    def messages(self) -> Iterator[Msg]:
        """Everything it holds."""
        for messages in self.ready.values():
            yield from messages.values()
        yield from self.delayed.values()
        yield from self.leased.values()

    def find(self, sequence: int) -> Msg | None:
        """One message, wherever it is."""
        found = self.leased.get(sequence) or self.delayed.get(sequence)
        if found is not None:
            return found
        for messages in self.ready.values():
            if sequence in messages:
                return messages[sequence]
        return None

    def pending(self, key: str) -> int:
        """How many messages of a key wait."""
        delayed = sum(1 for msg in self.delayed.values() if msg.spec.fairness_key == key)
        return len(self.ready.get(key, ())) + delayed

    def weights(self, key: str) -> set[int]:
        """What a key's weight may be."""
        return {weight for _, weight in self.newest.get(key, ())} or {1}

    def narrow(self, key: str, weight: int) -> None:
        """The order that was open is known: the newest message had this weight."""
        self.newest[key] = tuple(pair for pair in self.newest[key] if pair[1] == weight)

    def put(self, msg: Msg) -> None:
        """Keep a message where its stage says."""
        match msg.stage:
            case Stage.READY:
                self._put_ready(msg)
            case Stage.DELAYED:
                self.delayed[msg.sequence] = msg
            case Stage.LEASED:
                self.leased[msg.sequence] = msg

    def take(self, msg: Msg) -> None:
        """Take a message out; what nothing waits for is forgotten."""
        key = msg.spec.fairness_key
        if msg.stage is Stage.LEASED:
            del self.leased[msg.sequence]
            return
        if msg.stage is Stage.DELAYED:
            del self.delayed[msg.sequence]
        else:
            del self.ready[key][msg.sequence]
            if not self.ready[key]:
                del self.ready[key]
                self.largest.pop(key, None)
        if key in self.newest and not self.pending(key):
            del self.newest[key]

    def _put_ready(self, msg: Msg) -> None:
        key = msg.spec.fairness_key
        if key not in self.ready:
            self.ready[key] = {}
            self.spells[key] = self.spells.get(key, 0) + 1
        self.ready[key][msg.sequence] = msg
        self.largest[key] = max(self.largest.get(key, 0), msg.spec.cost)
        known = self.newest.get(key, ())
        mine = (msg.place, msg.spec.weight)
        if mine in known or any(msg.place.is_before(place) for place, _ in known):
            return
        kept = tuple(pair for pair in known if not pair[0].is_before(msg.place))
        self.newest[key] = (*kept, mine)


@dataclass(slots=True)
class Part:
    """A queue with its dead-letter queue, from creation to deletion."""

    # Counts the parts that ever were, in the model.
    serial: int
    main: Shelf | None = None
    dlq: Shelf | None = None
    # The broker's number for it, for looking into its storage.
    number: int = 0
    outcomes: dict[ProducerSequence, Known] = field(default_factory=dict)
    # Of the message accepted last: the high half of its id, and its sequence.
    last_id: tuple[int, int] = (0, 0)

    def copy(self) -> Part:
        """The same again."""
        return Part(
            self.serial,
            self.main.copy() if self.main else None,
            self.dlq.copy() if self.dlq else None,
            self.number,
            dict(self.outcomes),
            self.last_id,
        )

    @property
    def shelves(self) -> list[Shelf]:
        """Its queues."""
        return [shelf for shelf in (self.main, self.dlq) if shelf is not None]

    def find(self, sequence: int) -> Msg | None:
        """One message, in whichever queue."""
        for shelf in self.shelves:
            found = shelf.find(sequence)
            if found is not None:
                return found
        return None


@dataclass(slots=True)
class Books:
    """Everything that survives a crash."""

    parts: list[Part] = field(default_factory=list)
    config: dict[str, str] = field(default_factory=dict)
    # How items ended.
    fates: dict[int, str] = field(default_factory=dict)
    places: int = 0
    buckets: Buckets = field(default_factory=Buckets)

    def copy(self) -> Books:
        """The same again."""
        return Books(
            [part.copy() for part in self.parts],
            dict(self.config),
            dict(self.fates),
            self.places,
            self.buckets.copy(),
        )

    def next_place(self) -> Place:
        """A place behind all others."""
        self.places += 1
        return Place(self.places)

    def part_of(self, name: str) -> Part | None:
        """Where a queue is."""
        for part in self.parts:
            if any(shelf.name == name for shelf in part.shelves):
                return part
        return None

    def shelf(self, name: str) -> Shelf | None:
        """A queue."""
        for part in self.parts:
            for shelf in part.shelves:
                if shelf.name == name:
                    return shelf
        return None

    @property
    def shelves(self) -> list[Shelf]:
        """All queues."""
        return [shelf for part in self.parts for shelf in part.shelves]
