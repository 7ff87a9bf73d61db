"""Reading everything back at start: each record on its own, so that a bad one costs only itself.

A message without a readable entry is set aside as a whole. One without readable progress waits
again as it was accepted. What becomes of queues without readable records is `salvage`'s business.
"""

import logging
import struct
from collections.abc import Callable, Iterator
from typing import TypeVar

from fila.core.records import (
    BucketLevel,
    Entry,
    KeyWeight,
    PartitionRecord,
    ProducerHigh,
    Progress,
    QueueRecord,
    Recovered,
)
from fila.errors import CorruptRecordError
from fila.storage import keys, records
from fila.storage.aside import Aside
from fila.storage.engine import Reader
from fila.storage.keys import Table
from fila.storage.salvage import Salvage

_log = logging.getLogger(__name__)

Pending = tuple[int, Entry, Progress | None]
T = TypeVar("T")

_unpack_key = struct.Struct(">BIQ").unpack
# Behind every key.
_NOTHING = (b"\xff" * 16, b"")


class Recovery:
    """One reading of a store."""

    def __init__(self, reader: Reader, aside: Aside) -> None:
        self._reader = reader
        self._aside = aside
        self._strays: set[int] = set()

    def run(self, next_partition: int) -> Recovered:
        """Everything, the messages lazily."""
        salvaged = self._salvaged()
        known = set(salvaged.partitions)
        weights, _ = self._table(Table.KEY_WEIGHT, _key_weight)
        config, _ = self._table(Table.CONFIG, _setting)
        levels, _ = self._table(Table.BUCKET, _level)
        return Recovered(
            partitions=sorted(salvaged.partitions.values(), key=lambda each: each.number),
            queues=sorted(salvaged.queues.values(), key=lambda each: each.name),
            entries=self._entries(known),
            key_weights=[weight for weight in weights if weight.partition in known],
            bucket_levels=levels,
            producers=[high for number in sorted(known) for high in self._producers(number)],
            next_partition=max(next_partition, *(number + 1 for number in known), 1),
            config=dict(config),
        )

    def _table(
        self, table: Table, decode: Callable[[bytes, bytes], T]
    ) -> tuple[list[T], list[bytes]]:
        """What can be read of a table, and the keys of what can't."""
        found: list[T] = []
        lost: list[bytes] = []
        for key, value in self._reader.scan(*keys.table_range(table)):
            try:
                found.append(decode(key, value))
            except CorruptRecordError as error:
                lost.append(key)
                self._aside.move({key: value}, str(error))
        return found, lost

    def _salvaged(self) -> Salvage:
        """Partitions and queues, also those whose records are lost."""
        partitions, _ = self._table(Table.PARTITION, _partition)
        queues, lost_queues = self._table(Table.QUEUE, _queue)
        salvage = Salvage(self._reader, self._aside, partitions, queues)
        salvage.run(list(_readable_names(lost_queues)))
        return salvage

    def _producers(self, number: int) -> Iterator[ProducerHigh]:
        """The greatest sequence of each, by leaping from one to the next."""
        begin, end = keys.partition_range(Table.OUTCOME, number)
        while (key := self._reader.first(begin, end)) is not None:
            try:
                name = keys.producer_of(key)
            except CorruptRecordError as error:
                self._aside.move({key: self._reader.get_many([key])[0]}, str(error))
                begin = key + b"\x00"
                continue
            mine = keys.range_of(keys.producer(number, name))
            high = self._producer(number, name, mine)
            if high is not None:
                yield high
            begin = mine[1]

    def _producer(self, number: int, name: bytes, mine: keys.Range) -> ProducerHigh | None:
        begin, end = mine
        while (key := self._reader.last(begin, end)) is not None:
            value = self._reader.get_many([key])[0]
            try:
                if value is not None:
                    at_ns = records.unpack_outcome(value).at_ns
                    return ProducerHigh(
                        partition=number,
                        producer=name,
                        sequence=keys.sequence_of(key),
                        at_ns=at_ns,
                    )
            except CorruptRecordError as error:
                self._aside.move({key: value}, str(error))
            end = key
        return None

    def _entries(self, known: set[int]) -> Iterator[Pending]:
        decode = records.EntryDecoder().decode
        for key, value, became in self._paired():
            try:
                _, number, sequence = _unpack_key(key)
                entry = decode(sequence, value)
            except (CorruptRecordError, struct.error) as error:
                self._lose_message(key, value, str(error))
                continue
            if number not in known:
                self._note_stray(number)
            elif became is None:
                yield number, entry, None
            else:
                yield number, entry, self._progress(*became)

    def _paired(self) -> Iterator[tuple[bytes, bytes, tuple[bytes, bytes] | None]]:
        """Entries with their progress: two tables in the same order, read side by side."""
        all_progress = self._reader.scan(*keys.table_range(Table.PROGRESS))
        became = next(all_progress, _NOTHING)
        for key, value in self._reader.scan(*keys.table_range(Table.ENTRY)):
            where = key[1:]
            while became[0][1:] < where:
                self._aside.move(dict([became]), "the message that it tells of has no entry")
                became = next(all_progress, _NOTHING)
            if became[0][1:] == where:
                yield key, value, became
                became = next(all_progress, _NOTHING)
            else:
                yield key, value, None
        while became is not _NOTHING:
            self._aside.move(dict([became]), "the message that it tells of has no entry")
            became = next(all_progress, _NOTHING)

    def _progress(self, key: bytes, value: bytes) -> Progress | None:
        try:
            return records.unpack_progress(value)
        except CorruptRecordError as error:
            self._aside.move({key: value}, f"{error}; the message waits again as it was accepted")
            return None

    def _lose_message(self, key: bytes, value: bytes, why: str) -> None:
        """Without its entry nobody knows whose turn a message is."""
        found: dict[bytes, bytes | None] = {key: value}
        if keys.is_message_key(key):
            others = [bytes((table,)) + key[1:] for table in (Table.MESSAGE, Table.PROGRESS)]
            values = self._reader.get_many(others)
            found |= {k: v for k, v in zip(others, values, strict=True) if v is not None}
        self._aside.move(found, why)

    def _note_stray(self, number: int) -> None:
        if number not in self._strays:
            self._strays.add(number)
            self._aside.count += 1
            _log.warning(
                "partition %d has messages but no record; they stay where they are", number
            )


def _readable_names(lost: list[bytes]) -> Iterator[str]:
    for key in lost:
        try:
            yield keys.text_of(key)
        except CorruptRecordError:
            # It names no queue. It is set aside, and named as such.
            continue


def _partition(key: bytes, value: bytes) -> PartitionRecord:
    return records.unpack_partition(keys.partition_of(key), value)


def _queue(key: bytes, value: bytes) -> QueueRecord:
    return records.unpack_queue(keys.text_of(key), value)


def _key_weight(key: bytes, value: bytes) -> KeyWeight:
    in_dlq, fairness_key = keys.fairness_key_of(key)
    weight, place = records.unpack_key_weight(value)
    return KeyWeight(
        partition=keys.partition_of(key),
        in_dlq=in_dlq,
        fairness_key=fairness_key,
        weight=weight,
        place=place,
    )


def _setting(key: bytes, value: bytes) -> tuple[str, str]:
    return keys.text_of(key), records.unpack_config(value)


def _level(key: bytes, value: bytes) -> BucketLevel:
    return records.unpack_level(keys.text_of(key), value)
