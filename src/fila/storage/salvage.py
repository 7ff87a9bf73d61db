"""Queues and partitions whose records are lost, put together again from what is left of them.

A queue's record names its partition, a partition's record names its queue, and each message bears
the name that it was sent to. A record may be unreadable, or gone without a trace with a damaged
block of a file, and most of these records lie in one block. A queue that lost its settings comes
back paused, with default settings: its messages are neither lost nor delivered as nobody wanted.
"""

import logging

from google.protobuf.message import DecodeError

from fila.core.records import PartitionRecord, QueueRecord
from fila.errors import CorruptRecordError
from fila.model import DLQ_SUFFIX, QueueSettings
from fila.storage import keys, records
from fila.storage.aside import Aside
from fila.storage.engine import Reader
from fila.storage.keys import Table
from fila.wire._pb import messages_pb2 as pb

_log = logging.getLogger(__name__)

# A counter that was lost goes on this far behind the last number that is still seen.
_SEQUENCE_GAP = 1 << 20


class Salvage:
    """What one reading of a store found of partitions and queues, and what it must add."""

    def __init__(
        self,
        reader: Reader,
        aside: Aside,
        partitions: list[PartitionRecord],
        queues: list[QueueRecord],
    ) -> None:
        self._reader = reader
        self._aside = aside
        self.partitions = {record.number: record for record in partitions}
        self.queues = {record.name: record for record in queues}

    def run(self, lost_names: list[str]) -> None:
        """Add what is missing; `lost_names` are of queues whose records could not be read."""
        for queue in list(self.queues.values()):
            if queue.partition not in self.partitions:
                self._add_partition(queue.partition, queue.name)
        for number in self._strays():
            name = self._name_in_messages(number)
            if name is not None and not self._is_taken(name):
                self._add_partition(number, name)
        by_base = {record.base: record.number for record in self.partitions.values()}
        for name in lost_names:
            home = by_base.get(_base(name))
            if home is not None:
                self._add_queue(name, home)
        self._add_homes()

    def _add_homes(self) -> None:
        """Each partition has a dead-letter queue, and a queue if there are messages of one."""
        for number, record in self.partitions.items():
            if record.base + DLQ_SUFFIX not in self.queues:
                self._add_queue(record.base + DLQ_SUFFIX, number)
            if record.base not in self.queues and self._has_living(number):
                self._add_queue(record.base, number)

    def _strays(self) -> list[int]:
        """Partitions that have messages, but no record."""
        found = []
        begin, end = keys.table_range(Table.ENTRY)
        while (key := self._reader.first(begin, end)) is not None:
            begin = key + b"\x00"
            if keys.is_message_key(key):
                number = keys.partition_of(key)
                begin = keys.partition_range(Table.ENTRY, number)[1]
                if number not in self.partitions:
                    found.append(number)
        return found

    def _name_in_messages(self, number: int) -> str | None:
        for _, value in self._reader.scan(*keys.partition_range(Table.MESSAGE, number)):
            try:
                name = pb.Message.FromString(value).metadata.queue_id
            except DecodeError:
                continue
            if name:
                return name
        return None

    def _is_taken(self, name: str) -> bool:
        base = _base(name)
        bases = {record.base for record in self.partitions.values()}
        return base in bases or not self.queues.keys().isdisjoint((base, base + DLQ_SUFFIX))

    def _has_living(self, number: int) -> bool:
        """Whether a partition has messages that are not dead letters."""
        decoder = records.EntryDecoder()
        for key, value in self._reader.scan(*keys.partition_range(Table.ENTRY, number)):
            try:
                sequence = keys.sequence_of(key)
                in_dlq = decoder.decode(sequence, value).in_dlq
                became = self._reader.get(keys.message(Table.PROGRESS, number, sequence))
                if became is not None:
                    in_dlq = records.unpack_progress(became).in_dlq
            except CorruptRecordError:
                # It is named when the entries are read.
                continue
            if not in_dlq:
                return True
        return False

    def _add_partition(self, number: int, name: str) -> None:
        """Its counters go on behind everything that is still there."""
        tables = (Table.MESSAGE, Table.ENTRY, Table.PROGRESS)
        last = [self._reader.last(*keys.partition_range(table, number)) for table in tables]
        sequences = [keys.sequence_of(key) for key in last if key is not None]
        record = PartitionRecord(
            number=number,
            base=_base(name),
            next_sequence=max(sequences, default=0) + _SEQUENCE_GAP,
            id_high=self._last_id_high(number),
        )
        self._aside.replace(keys.partition(number), records.pack_partition(record))
        _log.warning("partition %d of queue %r lost its record; it has a new one", number, name)
        self.partitions[number] = record

    def _last_id_high(self, number: int) -> int:
        begin, end = keys.partition_range(Table.ENTRY, number)
        decoder = records.EntryDecoder()
        while (key := self._reader.last(begin, end)) is not None:
            value = self._reader.get_many([key])[0]
            try:
                if value is not None:
                    return decoder.decode(0, value).id_high
            except CorruptRecordError:
                # It is named when the entries are read.
                pass
            end = key
        return 0

    def _add_queue(self, name: str, number: int) -> None:
        if name in self.queues:
            return
        record = QueueRecord(name=name, partition=number, settings=QueueSettings(), paused=True)
        self._aside.replace(keys.queue(name), records.pack_queue(record))
        _log.warning(
            "queue %r lost its settings: it has the defaults now and is paused; "
            "update it, then resume it",
            name,
        )
        self.queues[name] = record


def _base(name: str) -> str:
    return name.removesuffix(DLQ_SUFFIX)
