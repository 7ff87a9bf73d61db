"""From what is stored back to what is known: lanes, places, leases, timers, buckets as before."""

from collections.abc import Iterable
from itertools import groupby

from fila.core import administration, limits
from fila.core.message import Message
from fila.core.partition import Partition
from fila.core.queue import Queue
from fila.core.records import Entry, KeyWeight, Progress, Recovered, Status
from fila.core.state import State
from fila.model import Spec


def restore(state: State, recovered: Recovered) -> None:
    """Fill an empty state. `state.now_ns` and `state.wall_ns` must be set."""
    state.config = dict(recovered.config)
    _restore_limits(state, recovered)
    for record in recovered.partitions:
        state.partitions[record.number] = Partition(record)
    state.next_partition = max([recovered.next_partition, *(n + 1 for n in state.partitions)])
    for queue_record in recovered.queues:
        partition = state.partitions[queue_record.partition]
        queue = Queue(
            queue_record.name,
            partition,
            queue_record.settings,
            quantum=state.quantum,
            throttle=state.throttle,
        )
        queue.paused = queue_record.paused
        administration.attach(state, partition, queue)
    for producer in recovered.producers:
        home = state.partitions.get(producer.partition)
        if home is not None:
            home.producers.note_high(producer.producer, producer.sequence, state.now_ns)
            state.remembering[home.number] = home
    for number, rows in groupby(recovered.entries, key=lambda row: row[0]):
        _restore_messages(state, state.partitions[number], ((e, p) for _, e, p in rows))
    for weight in recovered.key_weights:
        _restore_weight(state, weight)


def _restore_limits(state: State, recovered: Recovered) -> None:
    for throttle_key in limits.limited_keys(state.config):
        administration.apply_limit(state, throttle_key)
    for level in recovered.bucket_levels:
        state.throttle.restore(level)


def _restore_messages(
    state: State, partition: Partition, rows: Iterable[tuple[Entry, Progress | None]]
) -> None:
    moved: list[tuple[Entry, Progress]] = []
    run = _Run(partition)
    for entry, progress in rows:
        if progress is not None:
            moved.append((entry, progress))
        elif entry.expires_at_ns:
            run.end()
            state.make_ready(_message(_home(partition, entry.in_dlq), entry))
        else:
            run.add(entry)
    run.end()
    # In order of place, so that what was ready joins its lane in order.
    for entry, progress in sorted(moved, key=lambda pair: pair[1].place):
        _restore_moved(state, partition, entry, progress)
    for queue in (partition.main, partition.dlq):
        if queue is not None:
            state.touched[queue] = None


class _Run:
    """Messages that wait as they were accepted, alike and in a row, added at once."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._spec: Spec | None = None
        self._in_dlq = False
        self._first = 0
        self._end = 0

    def add(self, entry: Entry) -> None:
        fits = entry.spec is self._spec and entry.in_dlq == self._in_dlq
        if not fits or entry.sequence != self._end:
            self.end()
            self._spec = entry.spec
            self._in_dlq = entry.in_dlq
            self._first = entry.sequence
        self._end = entry.sequence + 1

    def end(self) -> None:
        if self._spec is not None:
            queue = _home(self._partition, self._in_dlq)
            queue.add_fresh(self._spec, range(self._first, self._end))
        self._spec = None


def _restore_moved(state: State, partition: Partition, entry: Entry, progress: Progress) -> None:
    message = _message(_home(partition, progress.in_dlq), entry)
    message.place = progress.place
    message.attempts = progress.attempts
    message.delivered = progress.delivered
    message.span_ns = progress.span_ns
    message.wall_timed = progress.wall_timed
    message.token = progress.token
    message.leased_at_ns = progress.leased_at_ns
    message.last_error = progress.last_error
    message.dead = progress.dead
    message.due_wall_ns = progress.due_wall_ns
    if progress.dead is not None:
        message.expires_at_ns = 0
    # A clock that was set back must not make the rest longer than the whole.
    remaining = max(0, min(progress.due_wall_ns - state.wall_ns, progress.span_ns))
    match progress.status:
        case Status.READY:
            state.make_ready(message)
        case Status.DELAYED:
            message.queue.add_delayed(message)
            state.set_delay_timer(message, remaining)
        case Status.LEASED:
            message.queue.add_leased(message)
            message.due_ns = state.now_ns + remaining
            state.steady_timers.set(message, message.due_ns)


def _message(queue: Queue, entry: Entry) -> Message:
    message = Message(queue, entry.spec, entry.sequence, entry.sequence, Status.READY)
    message.expires_at_ns = entry.expires_at_ns
    return message


def _home(partition: Partition, in_dlq: bool) -> Queue:
    queue = partition.dlq if in_dlq else partition.main
    assert queue is not None, f"partition {partition.number} lacks a queue that has messages"
    return queue


def _restore_weight(state: State, record: KeyWeight) -> None:
    partition = state.partitions.get(record.partition)
    if partition is None:
        return
    queue = partition.dlq if record.in_dlq else partition.main
    key = queue.keys.get(record.fairness_key) if queue else None
    if queue is None or key is None or not (key.ready or key.delayed):
        return
    queue.ring.before_change(key)
    queue.note_weight(key, record.place, record.weight)
    queue.ring.after_change(key)
    key.mixed_weights = True
    key.stored_place = record.place
