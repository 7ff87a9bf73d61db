"""What the broker asks of a store. Memory and RocksDB answer alike; one contract suite says so."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from fila.core.effects import Mutation
from fila.core.records import Entry, Progress, Recovered
from fila.model import Outcome, ProducerSequence

# What browse yields: the entry, what became of it, and the stored `fila.v1.Message` bytes.
Row: TypeAlias = tuple[Entry, Progress | None, bytes]


class Storage(Protocol):
    """One broker's disk. Called from one thread, but for `sync`."""

    @property
    def epoch(self) -> int:
        """Counts the openings of this store; on disk before this one returned."""

    @property
    def unreadable_count(self) -> int:
        """Records set aside since this opening, because they could not be read."""

    def recover(self) -> Recovered:
        """Everything that was written, for a scheduler to start from."""

    def write(self, mutations: Sequence[Mutation]) -> None:
        """Apply all or none; visible to reads at once, on disk after the next `sync`."""

    def sync(self) -> None:
        """Return when all that was written before is on disk. May run in another thread."""

    def read_messages(self, partition: int, sequences: Sequence[int]) -> list[bytes | None]:
        """The stored `fila.v1.Message` bytes."""

    def read_entry(self, partition: int, sequence: int) -> Entry | None:
        """One message's entry."""

    def read_entries(self, partition: int, sequences: Sequence[int]) -> list[Entry | None]:
        """The entries of messages."""

    def read_progress(self, partition: int, sequence: int) -> Progress | None:
        """What became of one message; None while it waits as it was accepted."""

    def read_outcome(self, partition: int, key: ProducerSequence) -> Outcome | None:
        """The first outcome of an enqueue, if it is still kept."""

    def browse(self, partition: int, after_sequence: int) -> Iterator[Row]:
        """Messages in order of sequence, both of the queue and of its dead-letter queue."""

    def free_bytes(self) -> int:
        """What may still be written before the disk is full."""

    def reclaim(self) -> None:
        """Give back the space of what was deleted since the last call. May run in a thread."""

    def checkpoint(self, target: Path) -> None:
        """Write a consistent copy into a folder that does not exist yet. May run in a thread."""

    def close(self) -> None:
        """Sync and let go."""
