"""Everything the scheduler knows, and the pass in progress.

The other modules of the core are functions over this; none of them keeps anything of its own.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from fila.core.consumer import Consumer
from fila.core.effects import (
    DeleteMessages,
    DropKeyWeight,
    Effects,
    PutKeyWeight,
    PutLevels,
    PutPartition,
    PutProgress,
    PutSpecs,
)
from fila.core.message import Message
from fila.core.partition import Partition
from fila.core.queue import Queue
from fila.core.records import KeyWeight, Status
from fila.core.throttle import Throttle
from fila.core.timers import Timers
from fila.errors import QueueNotFoundError

# Below the count of the broker's starts in a lease token: so many leases in one start.
_TOKEN_BITS = 40
_DUE = attrgetter("due_ns")


class State:
    """Mutable, owned by one scheduler."""

    def __init__(self, *, epoch: int, quantum: int) -> None:
        self.epoch = epoch
        self.quantum = quantum
        self.partitions: dict[int, Partition] = {}
        # Those of them that remember producers, which they must forget in time.
        self.remembering: dict[int, Partition] = {}
        self.next_partition = 1
        self.queues: dict[str, Queue] = {}
        self.consumers: dict[int, Consumer] = {}
        self.config: dict[str, str] = {}
        self.throttle = Throttle()
        # Leases and delays, on the clock that never goes back.
        self.steady_timers: Timers[Message] = Timers()
        # Delivery times and times to live, on the wall clock.
        self.wall_timers: Timers[Message] = Timers()
        self.turns = 0
        self.next_sweep_ns = 0
        self._last_token = epoch << _TOKEN_BITS
        # Of the pass in progress.
        self.now_ns = 0
        self.wall_ns = 0
        self.effects = Effects()
        # Queues that may be able to serve now; consumers that have room again.
        self.touched: dict[Queue, None] = {}
        self.freed: dict[Consumer, None] = {}
        self._grown: dict[int, Partition] = {}

    def begin_pass(self, *, now_ns: int, wall_ns: int) -> None:
        """Start collecting effects."""
        self.now_ns = now_ns
        self.wall_ns = wall_ns
        self.effects = Effects()
        self.throttle.begin_pass(now_ns=now_ns, wall_ns=wall_ns)

    def end_pass(self) -> Effects:
        """Everything that the pass wants done."""
        for partition in self._grown.values():
            partition.producers.end_pass()
            if partition.number in self.partitions:
                self.effects.mutations.append(PutPartition(partition.record))
        self._grown.clear()
        levels = self.throttle.end_pass()
        if levels:
            self.effects.mutations.append(PutLevels(levels))
        return self.effects

    def queue(self, name: str) -> Queue:
        """The queue of this name."""
        queue = self.queues.get(name)
        if queue is None:
            raise QueueNotFoundError(name)
        return queue

    def take_sequences(self, partition: Partition, count: int) -> int:
        """Numbers for ids or places; that they are taken is stored with this pass."""
        self._grown[partition.number] = partition
        return partition.take_sequences(count)

    def wake_throttled(self) -> None:
        """Call lanes for which a throttle token has come."""
        self.throttle.wake()
        self.touch_called()

    def touch_called(self) -> None:
        """Look at queues where lanes were called."""
        for queue in self.throttle.called:
            self.touched[queue] = None
        self.throttle.called.clear()

    def take_tokens(self, count: int) -> int:
        """The first of so many lease tokens, never given before, not even before a power cut."""
        first = self._last_token + 1
        self._last_token += count
        return first

    def make_ready(self, message: Message) -> None:
        """Put a message with a past into its lane, at its place."""
        queue = message.queue
        self.put_key_weight(queue.add_ready(message))
        self.touched[queue] = None
        if message.expires_at_ns and not message.delivered:
            self.wall_timers.set(message, message.expires_at_ns)

    def make_delayed(self, message: Message, *, span_ns: int) -> None:
        """Let a message wait on the clock that its `wall_timed` names."""
        message.span_ns = span_ns
        message.due_wall_ns = self.wall_ns + span_ns
        message.queue.add_delayed(message)
        self.set_delay_timer(message, span_ns)

    def set_delay_timer(self, message: Message, remaining_ns: int) -> None:
        """Make a delayed message due."""
        if message.wall_timed:
            message.due_ns = message.due_wall_ns
            self.wall_timers.set(message, message.due_ns)
        else:
            message.due_ns = self.now_ns + remaining_ns
            self.steady_timers.set(message, message.due_ns)

    def renew_place(self, message: Message) -> None:
        """Give a message a place behind all others."""
        message.place = self.take_sequences(message.queue.partition, 1)

    def end_lease(self, message: Message) -> None:
        """A message is not leased any more; its consumer has room again."""
        self.end_leases(message.queue, (message,))

    def end_leases(self, queue: Queue, messages: Sequence[Message]) -> None:
        """The same for messages of one queue."""
        queue.remove_leased(*messages)
        timers, consumers = self.steady_timers, self.consumers
        for due_ns, alike in groupby(messages, _DUE):
            timers.cancel_all(alike, due_ns)
        for message in messages:
            consumer = consumers.get(message.consumer)
            message.consumer = 0
            if consumer is not None:
                consumer.leases.pop(message, None)
                consumer.idle_since_ns = self.now_ns
                self.freed[consumer] = None

    def cancel_timers(self, message: Message) -> None:
        """Nothing falls due for a message any more."""
        if message.status is Status.READY:
            self.wall_timers.cancel(message, message.expires_at_ns)
        elif message.wall_timed and message.status is Status.DELAYED:
            self.wall_timers.cancel(message, message.due_ns)
        else:
            self.steady_timers.cancel(message, message.due_ns)

    def put_progress(self, partition: Partition, messages: list[Message]) -> None:
        """Store what became of messages."""
        if messages:
            self.effects.mutations.append(PutProgress(partition.number, messages))

    def put_specs(
        self,
        partition: Partition,
        messages: list[Message],
        times: dict[int, tuple[int, int]] | None = None,
    ) -> None:
        """Store that messages ask for something else, or are at home elsewhere, than before."""
        if messages:
            self.effects.mutations.append(PutSpecs(partition.number, messages, times or {}))

    def delete(self, partition: Partition, sequences: list[int]) -> None:
        """Store that messages are gone."""
        if sequences:
            self.effects.mutations.append(DeleteMessages(partition.number, sequences))

    def put_key_weight(self, record: KeyWeight | None) -> None:
        """Store or drop a key's weight, if that must change."""
        if record is None:
            return
        if record.place:
            self.effects.mutations.append(PutKeyWeight(record))
        else:
            self.effects.mutations.append(
                DropKeyWeight(record.partition, record.in_dlq, record.fairness_key)
            )
