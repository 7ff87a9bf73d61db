"""A queue with its dead-letter queue: they share what is counted, and one stretch of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fila import ids
from fila.core.producers import Producers
from fila.core.records import PartitionRecord
from fila.model import NS_PER_MS

if TYPE_CHECKING:
    from fila.core.queue import Queue


class Partition:
    """Numbers for messages and places, never given twice."""

    def __init__(self, record: PartitionRecord) -> None:
        self.number = record.number
        self.base = record.base
        self.main: Queue | None = None
        self.dlq: Queue | None = None
        self.producers = Producers()
        self._next_sequence = record.next_sequence
        self._id_high = record.id_high

    @property
    def record(self) -> PartitionRecord:
        """What is stored of it."""
        return PartitionRecord(
            number=self.number,
            base=self.base,
            next_sequence=self._next_sequence,
            id_high=self._id_high,
        )

    def take_sequences(self, count: int) -> int:
        """The first of so many numbers, for ids or for places."""
        first = self._next_sequence
        self._next_sequence += count
        return first

    def id_high_at(self, wall_ns: int, epoch: int) -> int:
        """The high half of ids given now: it never falls, whatever the clock does."""
        self._id_high = max(self._id_high, ids.id_high(wall_ns // NS_PER_MS, epoch))
        return self._id_high
