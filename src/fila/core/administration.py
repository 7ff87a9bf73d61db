"""What an operator does: queues made, changed, emptied and deleted; single messages; settings."""

from collections.abc import Iterable
from dataclasses import replace

from fila.core import limits, streams
from fila.core.commands import (
    CreateQueue,
    DeleteQueue,
    PauseQueue,
    PurgeQueue,
    RemoveMessage,
    Reschedule,
    SetConfig,
    UpdateQueue,
)
from fila.core.effects import (
    Closed,
    DeletePartition,
    DeleteRanges,
    DropQueue,
    PutConfig,
    PutPartition,
    PutQueue,
    PutTimes,
)
from fila.core.partition import Partition
from fila.core.queue import Queue
from fila.core.records import Entry, PartitionRecord
from fila.core.state import State
from fila.errors import (
    MessageNotFoundError,
    PreconditionError,
    QueueExistsError,
    QueueNotFoundError,
)
from fila.model import DLQ_SUFFIX, QueueSettings, is_dlq


def create_queue(state: State, command: CreateQueue) -> None:
    """Create a queue and its dead-letter queue; one that exists is adopted."""
    if command.queue in state.queues:
        raise QueueExistsError(command.queue)
    partition = _partition_for(state, command.queue)
    if is_dlq(command.queue):
        _add_queue(state, partition, command.queue, replace(command.settings, max_attempts=0))
        return
    _add_queue(state, partition, command.queue, command.settings)
    if partition.dlq is None:
        # Whoever consumes dead letters is given the same time, and the same pauses.
        settings = replace(
            command.settings,
            max_attempts=0,
            max_depth=0,
            on_enqueue_script="",
            on_failure_script="",
        )
        _add_queue(state, partition, command.queue + DLQ_SUFFIX, settings)


def update_queue(state: State, command: UpdateQueue) -> None:
    """Replace a queue's settings; what waits and what is leased stays."""
    queue = state.queue(command.queue)
    queue.settings = replace(command.settings, max_attempts=0) if queue.is_dlq else command.settings
    queue.set_quantum(queue.settings.quantum or state.quantum)
    state.effects.mutations.append(PutQueue(queue.record))


def delete_queue(state: State, command: DeleteQueue) -> None:
    """Delete a queue with its dead-letter queue and all that is in them."""
    queue = state.queue(command.queue)
    partition = queue.partition
    if queue.is_dlq and partition.main is not None:
        raise PreconditionError(
            f"{queue.name!r} belongs to queue {partition.main.name!r}; "
            "delete that queue, or purge this one"
        )
    if command.keep_dead_letters and partition.dlq is not None and partition.dlq.depth:
        raise PreconditionError(
            f"{partition.dlq.name!r} holds {partition.dlq.depth} messages; "
            "redrive or purge them first"
        )
    for member in (partition.main, partition.dlq):
        if member is not None:
            _drop_queue(state, member)
    del state.partitions[partition.number]
    state.remembering.pop(partition.number, None)
    state.effects.mutations.append(DeletePartition(partition.number))


def pause_queue(state: State, command: PauseQueue) -> None:
    """Stop or resume deliveries."""
    queue = state.queue(command.queue)
    queue.paused = command.paused
    state.effects.mutations.append(PutQueue(queue.record))
    state.touched[queue] = None


def purge_queue(state: State, command: PurgeQueue) -> int:
    """Remove what waits, on request also what is leased; how many that were."""
    queue = state.queue(command.queue)
    purged = queue.ready_count + len(queue.delayed)
    if command.include_leased:
        purged += len(queue.leased)
    _store_purge(state, queue, purged, include_leased=command.include_leased)
    weights = [key.name for key in queue.keys.values() if key.stored_place]
    for message in queue.clear_pending():
        state.cancel_timers(message)
    for name in weights:
        state.put_key_weight(queue.key_weight(name, place=0))
    if command.include_leased:
        for message in list(queue.leased.values()):
            state.end_lease(message)
    return purged


def remove_message(state: State, command: RemoveMessage) -> None:
    """Remove one waiting message."""
    queue = state.queue(command.queue)
    entry = _waiting_entry(queue, command)
    delayed = queue.delayed.get(entry.sequence)
    if delayed is not None:
        state.cancel_timers(delayed)
        state.put_key_weight(queue.remove_delayed(delayed))
    else:
        removed = queue.remove_ready(entry.spec, entry.sequence)
        if removed is None:
            raise MessageNotFoundError(queue.name, command.message_id)
        state.cancel_timers(removed[0])
        state.put_key_weight(removed[1])
    state.delete(queue.partition, [entry.sequence])


def reschedule(state: State, command: Reschedule) -> None:
    """Move a delayed message to another time."""
    queue = state.queue(command.queue)
    entry = _waiting_entry(queue, command)
    message = queue.delayed.get(entry.sequence)
    if message is None:
        raise PreconditionError(
            f"message {command.message_id} is not delayed; only a delayed message can be moved"
        )
    state.cancel_timers(message)
    if message.expires_at_ns and not message.delivered:
        message.expires_at_ns += max(command.deliver_at_ns, state.wall_ns) - message.due_wall_ns
        state.effects.mutations.append(
            PutTimes(
                queue.partition.number,
                {message.sequence: (command.deliver_at_ns, message.expires_at_ns)},
            )
        )
    message.wall_timed = True
    message.due_wall_ns = max(command.deliver_at_ns, state.wall_ns)
    message.span_ns = message.due_wall_ns - state.wall_ns
    state.set_delay_timer(message, message.span_ns)
    state.put_progress(queue.partition, [message])


def set_config(state: State, command: SetConfig) -> bool:
    """Store a runtime setting, or delete it; whether it was there."""
    limits.check(command.key, command.value)
    existed = command.key in state.config
    if command.value:
        state.config[command.key] = command.value
    elif existed:
        del state.config[command.key]
    if command.value or existed:
        state.effects.mutations.append(PutConfig(command.key, command.value))
        throttle_key = limits.throttle_key_of(command.key)
        if throttle_key is not None:
            apply_limit(state, throttle_key)
    return existed


def apply_limit(state: State, throttle_key: str) -> None:
    """Limit a throttle key as the runtime config says, also for what waits already."""
    limit = limits.limit_of(state.config, throttle_key)
    if limit is None:
        state.throttle.remove(throttle_key)
        state.touch_called()
    else:
        state.throttle.define(throttle_key, rate=limit.rate, burst=limit.burst)


def attach(state: State, partition: Partition, queue: Queue) -> None:
    """Make a queue known, under its name and in its partition."""
    state.queues[queue.name] = queue
    if queue.is_dlq:
        partition.dlq = queue
    else:
        partition.main = queue


def _partition_for(state: State, name: str) -> Partition:
    base = name.removesuffix(DLQ_SUFFIX)
    sibling = state.queues.get(base if is_dlq(name) else name + DLQ_SUFFIX)
    if sibling is not None and sibling.partition.base == base:
        return sibling.partition
    partition = Partition(PartitionRecord(number=state.next_partition, base=base))
    state.next_partition += 1
    state.partitions[partition.number] = partition
    state.effects.mutations.append(PutPartition(partition.record))
    return partition


def _add_queue(state: State, partition: Partition, name: str, settings: QueueSettings) -> None:
    queue = Queue(name, partition, settings, quantum=state.quantum, throttle=state.throttle)
    attach(state, partition, queue)
    state.effects.mutations.append(PutQueue(queue.record))


def _drop_queue(state: State, queue: Queue) -> None:
    for message in queue.clear_pending():
        state.cancel_timers(message)
    for message in list(queue.leased.values()):
        state.end_lease(message)
    for consumer in list(queue.consumers.values()):
        streams.detach(consumer, queue.name)
        closed = Closed(consumer.number, queue.name, QueueNotFoundError(queue.name))
        state.effects.closed.append(closed)
    for taker in queue.takers:
        taker.enlisted.discard(queue.name)
    queue.takers.clear()
    state.touched.pop(queue, None)
    del state.queues[queue.name]
    state.effects.mutations.append(DropQueue(queue.name))


def _waiting_entry(queue: Queue, command: RemoveMessage | Reschedule) -> Entry:
    message_id, entry = command.message_id, command.entry
    if entry is None or command.partition != queue.partition.number:
        raise MessageNotFoundError(queue.name, message_id)
    if entry.sequence in queue.leased:
        raise PreconditionError(
            f"message {message_id} is with a consumer; it can be settled, or waits again "
            "when its lease ends"
        )
    return entry


def _store_purge(state: State, queue: Queue, purged: int, *, include_leased: bool) -> None:
    """Delete one by one, or all between those that stay: whichever names fewer."""
    partition = queue.partition
    other = partition.main if queue.is_dlq else partition.dlq
    staying = (other.depth if other else 0) + (0 if include_leased else len(queue.leased))
    if purged <= staying:
        sequences = list(queue.pending_sequences())
        if include_leased:
            sequences.extend(queue.leased)
        state.delete(partition, sequences)
        return
    stay: list[int] = [] if include_leased else list(queue.leased)
    if other is not None:
        stay.extend(other.pending_sequences())
        stay.extend(other.leased)
    ranges = list(_gaps(sorted(stay), partition.record.next_sequence))
    state.effects.mutations.append(DeleteRanges(partition.number, ranges))


def _gaps(stay: Iterable[int], end: int) -> Iterable[tuple[int, int]]:
    """The stretches of sequences below `end` between those that stay."""
    first = 1
    for sequence in stay:
        if first < sequence:
            yield first, sequence - 1
        first = sequence + 1
    if first < end:
        yield first, end - 1
