"""What may leave, and when: replies after their commit is on disk, deliveries after their enqueue.

Deliveries that took tokens leave after what their buckets hold is on disk, too. Pure bookkeeping
between the write and the sync; the broker and the simulation run the same one.
"""

from collections import deque
from dataclasses import dataclass, field

from fila.core.commands import Tag
from fila.core.effects import Closed, Delivery, Effects, PutLevels, PutMessages, Reply


@dataclass(slots=True)
class Released:
    """What may leave now, in order."""

    replies: list[tuple[Tag, Reply]] = field(default_factory=list)
    deliveries: dict[int, list[Delivery]] = field(default_factory=dict)
    closed: list[Closed] = field(default_factory=list)

    def add_deliveries(self, deliveries: dict[int, list[Delivery]]) -> None:
        """Append to what each consumer gets."""
        for consumer, batch in deliveries.items():
            self.deliveries.setdefault(consumer, []).extend(batch)


@dataclass(slots=True)
class _Held:
    generation: int
    replies: list[tuple[Tag, Reply]]
    deliveries: dict[int, list[Delivery]]
    closed: list[Closed]


class Gate:
    """Holds the effects of each pass until what they promise is on disk.

    A generation is one write. `pass_through` after the write of a pass, `begin_sync` when a sync
    starts, `end_sync` with its generation when it is done. With `hold_replies=False` (fsync by
    interval or never) nothing waits.
    """

    def __init__(self, *, hold_replies: bool = True) -> None:
        self._hold = hold_replies
        self._written = 0
        self._synced = 0
        self._held: deque[_Held] = deque()
        # By consumer: the generation up to which deliveries of it are held.
        self._holding: dict[int, int] = {}
        # By partition: the greatest sequence accepted up to each generation not yet on disk.
        self._fresh: dict[int, int] = {}
        self._durable: dict[int, int] = {}
        self._accepted: deque[tuple[int, int, int]] = deque()
        # The generation that last wrote what buckets hold.
        self._levels = 0

    @property
    def needs_sync(self) -> bool:
        """Whether something was written that no sync has covered."""
        return self._written > self._synced

    def pass_through(self, effects: Effects) -> Released:
        """Take in one pass, already written; give out what need not wait."""
        if effects.mutations:
            self._written += 1
            if self._hold:
                self._note_accepted(effects)
        if not self._hold or not self.needs_sync:
            return Released(effects.replies, effects.deliveries, effects.closed)
        ready, waiting = self._split(effects.deliveries)
        if effects.replies or waiting or effects.closed:
            held = _Held(self._written, effects.replies, waiting, effects.closed)
            self._held.append(held)
        return Released(deliveries=ready)

    def begin_sync(self) -> int:
        """The generation that a sync starting now will cover."""
        return self._written

    def end_sync(self, generation: int) -> Released:
        """A sync that began at `generation` is done: give out what it covered."""
        self._synced = max(self._synced, generation)
        while self._accepted and self._accepted[0][0] <= generation:
            _, partition, sequence = self._accepted.popleft()
            if self._fresh.get(partition) == sequence:
                del self._fresh[partition]
                self._durable.pop(partition, None)
            else:
                self._durable[partition] = sequence
        released = Released()
        while self._held and self._held[0].generation <= generation:
            held = self._held.popleft()
            for consumer in held.deliveries:
                if self._holding.get(consumer) == held.generation:
                    del self._holding[consumer]
            released.replies.extend(held.replies)
            released.add_deliveries(held.deliveries)
            released.closed.extend(held.closed)
        return released

    def _note_accepted(self, effects: Effects) -> None:
        for mutation in effects.mutations:
            if isinstance(mutation, PutMessages):
                last = mutation.first_sequence + len(mutation.bodies) - 1
                if mutation.partition not in self._fresh:
                    self._durable[mutation.partition] = mutation.first_sequence - 1
                self._fresh[mutation.partition] = last
                self._accepted.append((self._written, mutation.partition, last))
            elif isinstance(mutation, PutLevels):
                self._levels = self._written

    def _split(
        self, deliveries: dict[int, list[Delivery]]
    ) -> tuple[dict[int, list[Delivery]], dict[int, list[Delivery]]]:
        """Those that may leave, and those of a consumer with one that must wait for the disk.

        A consumer's batch waits as a whole, and behind those before it, so that its order stays.
        """
        if not self._fresh and not self._holding and self._levels <= self._synced:
            return deliveries, {}
        ready: dict[int, list[Delivery]] = {}
        waiting: dict[int, list[Delivery]] = {}
        for consumer, batch in deliveries.items():
            if consumer in self._holding or any(map(self._must_wait, batch)):
                self._holding[consumer] = self._written
                waiting[consumer] = batch
            else:
                ready[consumer] = batch
        return ready, waiting

    def _must_wait(self, delivery: Delivery) -> bool:
        message = delivery[0]
        if message.spec.throttle_keys and self._levels > self._synced:
            # A power cut must not give its tokens back.
            return True
        partition = message.queue.partition.number
        if partition not in self._fresh:
            return False
        return message.sequence > self._durable[partition]
