"""The storage port over any engine: what is asked and answered is the same for all.

An engine only keeps bytes in order. Turning them into records and back, setting aside what can't
be read, and counting openings and partitions is done here, so that a store in memory goes the way
that the one on disk goes.
"""

import logging
from collections.abc import Iterator, Sequence

from fila.core.effects import (
    DeleteMessages,
    DeletePartition,
    DeleteRanges,
    Mutation,
    PutPartition,
)
from fila.core.records import Entry, Progress, Recovered
from fila.errors import CorruptRecordError
from fila.model import Outcome, ProducerSequence
from fila.storage import keys, records
from fila.storage.aside import Aside
from fila.storage.engine import Batch, Engine
from fila.storage.keys import Table
from fila.storage.mutations import fill
from fila.storage.port import Row
from fila.storage.recovery import Recovery

_log = logging.getLogger(__name__)

_COUNTERS = "counters"
_ROWS_AT_ONCE = 64

_DELETIONS = (DeleteMessages, DeletePartition, DeleteRanges)


class Store:
    """Everything of the port that does not depend on the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._aside = Aside(engine)
        epoch, self._next_partition = self._read_counters()
        self._epoch = epoch + 1
        # Whether anything was deleted whose space was not given back since.
        self._has_garbage = True
        batch = engine.batch()
        self._put_counters(batch)
        engine.apply(batch)
        engine.sync()

    @property
    def epoch(self) -> int:
        """Counts the openings of this store."""
        return self._epoch

    @property
    def unreadable_count(self) -> int:
        """Records set aside since this opening, because they could not be read."""
        return self._aside.count + self._engine.damage_count

    def recover(self) -> Recovered:
        """Everything that was written, for a scheduler to start from."""
        return Recovery(self._engine, self._aside).run(self._next_partition)

    def write(self, mutations: Sequence[Mutation]) -> None:
        """Apply all or none."""
        batch = self._engine.batch()
        fill(batch, mutations, self)
        numbers = [change.record.number for change in mutations if type(change) is PutPartition]
        if numbers and max(numbers) >= self._next_partition:
            self._next_partition = max(numbers) + 1
            self._put_counters(batch)
        self._engine.apply(batch)
        self._has_garbage |= any(type(change) in _DELETIONS for change in mutations)

    def sync(self) -> None:
        """Return when all that was written before the call is on disk."""
        self._engine.sync()

    def read_messages(self, partition: int, sequences: Sequence[int]) -> list[bytes | None]:
        """The stored message bytes."""
        found = self._engine.get_many(keys.messages(Table.MESSAGE, partition, sequences))
        if None in found:
            for sequence, stored in zip(sequences, found, strict=True):
                if stored is None:
                    self._lose_message(partition, sequence)
        return found

    def read_entry(self, partition: int, sequence: int) -> Entry | None:
        """One message's entry."""
        value = self._engine.get(keys.message(Table.ENTRY, partition, sequence))
        return None if value is None else records.EntryDecoder().decode(sequence, value)

    def read_entries(self, partition: int, sequences: Sequence[int]) -> list[Entry | None]:
        """The entries of messages."""
        decode = records.EntryDecoder().decode
        found = self._engine.get_many(keys.messages(Table.ENTRY, partition, sequences))
        return [
            None if value is None else decode(sequence, value)
            for sequence, value in zip(sequences, found, strict=True)
        ]

    def read_progress(self, partition: int, sequence: int) -> Progress | None:
        """What became of one message; None while it waits as it was accepted."""
        value = self._engine.get(keys.message(Table.PROGRESS, partition, sequence))
        return None if value is None else records.unpack_progress(value)

    def read_outcome(self, partition: int, key: ProducerSequence) -> Outcome | None:
        """The first outcome of an enqueue, if it is still kept."""
        value = self._engine.get(keys.outcome(partition, key.producer, key.sequence))
        return None if value is None else records.unpack_outcome(value)

    def browse(self, partition: int, after_sequence: int) -> Iterator[Row]:
        """Messages in order of sequence, both of the queue and of its dead-letter queue."""
        begin = keys.message(Table.ENTRY, partition, after_sequence + 1)
        _, end = keys.partition_range(Table.ENTRY, partition)
        page: list[tuple[int, bytes]] = []
        for key, value in self._engine.scan(begin, end):
            page.append((keys.sequence_of(key), value))
            if len(page) == _ROWS_AT_ONCE:
                yield from self._rows(partition, page)
                page = []
        yield from self._rows(partition, page)

    def _rows(self, partition: int, page: list[tuple[int, bytes]]) -> Iterator[Row]:
        sequences = [sequence for sequence, _ in page]
        get_many, decode = self._engine.get_many, records.EntryDecoder().decode
        messages = get_many(keys.messages(Table.MESSAGE, partition, sequences))
        progress = get_many(keys.messages(Table.PROGRESS, partition, sequences))
        for (sequence, value), stored, became in zip(page, messages, progress, strict=True):
            if stored is None:
                # Deleted since the scan began, or lost; delivery finds out which.
                continue
            try:
                entry = decode(sequence, value)
                yield entry, records.unpack_progress(became) if became else None, stored
            except CorruptRecordError as error:
                _log.warning(
                    "message %d of partition %d can't be shown: %s", sequence, partition, error
                )

    def _lose_message(self, partition: int, sequence: int) -> None:
        """The bytes of a message can't be had: what else is stored of it is of no use."""
        wanted = [keys.message(table, partition, sequence) for table in keys.MESSAGE_TABLES]
        values = self._engine.get_many(wanted)
        if values[1] is None:
            # It was deleted, and someone asked too late.
            return
        found = {k: value for k, value in zip(wanted, values, strict=True) if value is not None}
        self._aside.move(found, "the message that it tells of is not there or can't be read")

    def _read_counters(self) -> tuple[int, int]:
        """From the record or its copy: a store that lost count would give out ids twice."""
        is_new = True
        for key in (keys.meta(_COUNTERS), keys.meta_copy(_COUNTERS)):
            try:
                value = self._engine.get(key)
                if value is not None:
                    return records.unpack_counters(value)
            except CorruptRecordError as error:
                is_new = False
                self._aside.count += 1
                _log.warning("%s can't be read: %s", keys.describe(key), error)
        if is_new:
            return 0, 1
        raise CorruptRecordError(
            "neither the store's counters nor their copy can be read; restore a backup"
        )

    def _put_counters(self, batch: Batch) -> None:
        value = records.pack_counters(self._epoch, self._next_partition)
        batch.put(keys.meta(_COUNTERS), value)
        batch.put(keys.meta_copy(_COUNTERS), value)
