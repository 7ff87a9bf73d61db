"""What each mutation puts and deletes. The same for every store, as is all that is read back.

Puts are grouped by table: neighbours in order go into a sorted table at half the cost.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from fila import ids
from fila.core.effects import (
    DeleteMessages,
    DeletePartition,
    DeleteRanges,
    DropKeyWeight,
    DropLevels,
    DropOutcomes,
    DropQueue,
    Mutation,
    PutConfig,
    PutKeyWeight,
    PutLevels,
    PutMessages,
    PutOutcome,
    PutPartition,
    PutProgress,
    PutQueue,
    PutSpecs,
    PutTimes,
)
from fila.core.records import Entry
from fila.errors import StorageError
from fila.model import Spec
from fila.storage import keys, records
from fila.storage.engine import Batch
from fila.storage.keys import Table
from fila.wire import envelope


class MessageReader(Protocol):
    """What is stored before the batch: a few mutations change a part of a record."""

    def read_entries(self, partition: int, sequences: Sequence[int]) -> list[Entry | None]:
        """The entries of messages."""

    def read_messages(self, partition: int, sequences: Sequence[int]) -> list[bytes | None]:
        """The stored message bytes."""


_LOW_STEP = ids.id_low(2, 0) - ids.id_low(1, 0)


def fill(batch: Batch, mutations: Sequence[Mutation], reader: MessageReader) -> None:
    """Add all mutations to a batch."""
    entries = _Entries(batch, reader)
    for mutation in mutations:
        match mutation:
            case PutMessages():
                _put_messages(batch, mutation)
            case PutProgress():
                _put_progress(batch, mutation)
            case DeleteMessages():
                _delete_messages(batch, mutation)
            case DeleteRanges(partition, ranges):
                _delete_ranges(batch, partition, ranges)
            case PutTimes():
                entries.put_times(mutation)
            case PutSpecs():
                entries.put_specs(mutation)
            case _:
                _put_record(batch, mutation)


def _put_record(batch: Batch, mutation: Mutation) -> None:
    match mutation:
        case DeletePartition(number):
            for begin, end in keys.partition_ranges(number):
                batch.delete_range(begin, end)
        case DropOutcomes(partition, producer, up_to_sequence):
            _drop_outcomes(batch, partition, producer, up_to_sequence)
        case PutPartition(record):
            batch.put(keys.partition(record.number), records.pack_partition(record))
        case PutQueue(queue):
            batch.put(keys.queue(queue.name), records.pack_queue(queue))
        case DropQueue(name):
            batch.delete(keys.queue(name))
        case PutKeyWeight(weight):
            key = keys.key_weight(weight.partition, weight.in_dlq, weight.fairness_key)
            batch.put(key, records.pack_key_weight(weight))
        case DropKeyWeight(partition, in_dlq, fairness_key):
            batch.delete(keys.key_weight(partition, in_dlq, fairness_key))
        case PutOutcome(partition, named, outcome):
            key = keys.outcome(partition, named.producer, named.sequence)
            batch.put(key, records.pack_outcome(outcome))
        case _:
            _put_setting(batch, mutation)


def _put_setting(batch: Batch, mutation: Mutation) -> None:
    """What belongs to no queue."""
    match mutation:
        case PutConfig(name, ""):
            batch.delete(keys.config(name))
        case PutConfig(name, value):
            batch.put(keys.config(name), records.pack_config(value))
        case PutLevels(levels):
            for level in levels:
                batch.put(keys.bucket(level.name), records.pack_level(level))
        case DropLevels(names):
            for name in names:
                batch.delete(keys.bucket(name))
        case _:
            raise AssertionError(f"no store knows {mutation!r}")


def _put_messages(batch: Batch, put: PutMessages) -> None:
    sequences = range(put.first_sequence, put.first_sequence + len(put.bodies))
    suffixes = keys.sequence_suffixes(sequences)
    head = envelope.stored_head(put.id_high)
    low = ids.id_low(put.first_sequence, put.partition)
    accepted_at = envelope.accepted_part(put.accepted_at_ns)
    metadata, queue = envelope.metadata_part, put.queue
    tails = _by_spec(put.specs, lambda spec: metadata(spec, queue) + accepted_at)
    write, stored_message = batch.put, envelope.stored_message
    start = keys.prefix(Table.MESSAGE, put.partition)
    for suffix, body, tail in zip(suffixes, put.bodies, tails, strict=True):
        write(start + suffix, stored_message(head, low, body, tail))
        low += _LOW_STEP
    start = keys.prefix(Table.ENTRY, put.partition)
    for suffix, value in zip(suffixes, _entry_values(put), strict=True):
        write(start + suffix, value)


def _entry_values(put: PutMessages) -> list[bytes]:
    def head(times: tuple[int, int] = (0, 0)) -> bytes:
        return records.entry_head(
            in_dlq=put.in_dlq,
            id_high=put.id_high,
            accepted_at_ns=put.accepted_at_ns,
            times=times,
        )

    plain, value = head(), records.entry_value
    values = _by_spec(put.specs, lambda spec: value(plain, spec))
    for index, times in put.times.items():
        values[index] = value(head(times), put.specs[index])
    return values


def _by_spec(specs: Sequence[Spec], make: Callable[[Spec], bytes]) -> list[bytes]:
    """What is made of each spec, once for each object: hashing one costs more than packing it."""
    if not specs:
        return []
    first = specs[0]
    if specs[-1] is first and all(spec is first for spec in specs):
        return [make(first)] * len(specs)
    different = {id(spec): spec for spec in specs}
    if len(different) == len(specs):
        return [make(spec) for spec in specs]
    made = {number: make(spec) for number, spec in different.items()}
    return [made[id(spec)] for spec in specs]


def _put_progress(batch: Batch, put: PutProgress) -> None:
    start, pack, write = keys.prefix(Table.PROGRESS, put.partition), keys.pack_sequence, batch.put
    values = records.progress_values(put.messages)
    for message, value in zip(put.messages, values, strict=True):
        write(start + pack(message.sequence), value)


def _delete_messages(batch: Batch, gone: DeleteMessages) -> None:
    suffixes = keys.sequence_suffixes(gone.sequences)
    delete = batch.delete
    for table in (Table.MESSAGE, Table.ENTRY, Table.PROGRESS):
        start = keys.prefix(table, gone.partition)
        for suffix in suffixes:
            delete(start + suffix)


def _delete_ranges(batch: Batch, partition: int, ranges: Sequence[tuple[int, int]]) -> None:
    for table in (Table.MESSAGE, Table.ENTRY, Table.PROGRESS):
        for first, last in ranges:
            begin = keys.message(table, partition, first)
            batch.delete_range(begin, keys.message(table, partition, last + 1))


class _Entries:
    """Entries of which a part changes; what one mutation changed is what the next one finds."""

    def __init__(self, batch: Batch, reader: MessageReader) -> None:
        self._batch = batch
        self._reader = reader
        self._changed: dict[tuple[int, int], Entry] = {}

    def put_times(self, put: PutTimes) -> None:
        for entry in self._read(put.partition, list(put.times)):
            deliver_at_ns, expires_at_ns = put.times[entry.sequence]
            moved = entry._replace(deliver_at_ns=deliver_at_ns, expires_at_ns=expires_at_ns)
            self._put(put.partition, moved)

    def put_specs(self, put: PutSpecs) -> None:
        """Both halves: what is scheduled by, and what a consumer sees."""
        partition = put.partition
        found = self._reader.read_messages(partition, [each.sequence for each in put.messages])
        # What is lost was set aside: its next delivery will find that out.
        stored = {
            message.sequence: (message, data)
            for message, data in zip(put.messages, found, strict=True)
            if data is not None
        }
        for entry in self._read(partition, list(stored)):
            message, data = stored[entry.sequence]
            times = put.times.get(entry.sequence, (entry.deliver_at_ns, entry.expires_at_ns))
            changed = entry._replace(
                spec=message.spec,
                in_dlq=message.queue.is_dlq and message.dead is None,
                deliver_at_ns=times[0],
                expires_at_ns=times[1],
            )
            self._put(partition, changed)
            # A dead letter's own bytes still name the queue that it may go back to.
            home = message.dead.source_queue if message.dead else message.queue.name
            data = envelope.with_metadata(data, message.spec, home)
            self._batch.put(keys.message(Table.MESSAGE, partition, entry.sequence), data)

    def _read(self, partition: int, sequences: Sequence[int]) -> Iterator[Entry]:
        for sequence, stored in zip(
            sequences, self._reader.read_entries(partition, sequences), strict=True
        ):
            entry = self._changed.get((partition, sequence), stored)
            if entry is None:
                raise StorageError(
                    f"message {sequence} of partition {partition} can't be changed: "
                    "it is not stored"
                )
            yield entry

    def _put(self, partition: int, entry: Entry) -> None:
        self._changed[partition, entry.sequence] = entry
        key = keys.message(Table.ENTRY, partition, entry.sequence)
        self._batch.put(key, records.pack_entry(entry))


def _drop_outcomes(batch: Batch, partition: int, producer: bytes, up_to_sequence: int) -> None:
    begin = keys.outcome(partition, producer, 0)
    # One byte longer than the last that goes: the first key behind it.
    batch.delete_range(begin, keys.outcome(partition, producer, up_to_sequence) + b"\x00")
