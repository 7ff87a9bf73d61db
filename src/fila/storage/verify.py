"""Reading a whole data directory without changing it, to say whether everything in it fits."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from google.protobuf.message import DecodeError

from fila import ids
from fila.core.records import PartitionRecord, QueueRecord
from fila.errors import CorruptRecordError, InvalidArgumentError
from fila.model import DLQ_SUFFIX
from fila.storage import directory, keys, records
from fila.storage.engine import Reader
from fila.storage.keys import Table
from fila.storage.rebuild import without
from fila.storage.rocksdb import RocksEngine
from fila.wire import envelope
from fila.wire._pb import messages_pb2 as pb

# More are counted, but not named.
PROBLEMS_NAMED_MAX = 1000

_EVERYTHING = (b"\x00", b"\xff")


@dataclass(slots=True, kw_only=True)
class VerifyReport:
    """What a data directory holds, and what of it does not fit."""

    format_version: int
    # By the name of the table.
    records: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0

    @property
    def ok(self) -> bool:
        """Whether everything fits."""
        return self.problem_count == 0


def verify(path: Path) -> VerifyReport:
    """Check every record of a data directory that no server uses."""
    report = VerifyReport(format_version=directory.read_format(path))
    lock = directory.Lock(path, shared=True)
    try:
        engine = RocksEngine(path / directory.STORE, read_only=True)
        try:
            _Verification(engine, report).run()
        finally:
            engine.close()
    finally:
        lock.release()
    return report


class _Verification:
    """One reading. A check raises `CorruptRecordError`, with what is wrong."""

    def __init__(self, reader: Reader, report: VerifyReport) -> None:
        self._reader = reader
        self._report = report
        self._next_partition = 0
        self._partitions: dict[int, PartitionRecord] = {}
        self._queues: dict[str, QueueRecord] = {}
        self._entries = records.EntryDecoder()
        self._checks: dict[int, Callable[[bytes, bytes], None]] = {
            Table.META: self._check_counters,
            Table.META_COPY: self._check_counters,
            Table.PARTITION: self._check_partition,
            Table.QUEUE: self._check_queue,
            Table.CONFIG: self._check_config,
            Table.MESSAGE: self._check_message,
            Table.ENTRY: self._check_entry,
            Table.PROGRESS: self._check_progress,
            Table.OUTCOME: self._check_outcome,
            Table.KEY_WEIGHT: self._check_key_weight,
            Table.BUCKET: self._check_bucket,
            Table.SET_ASIDE: self._check_set_aside,
        }

    def run(self) -> None:
        """Each record by itself, then those that belong together."""
        counts: Counter[int] = Counter()
        for key, value in self._reader.scan(*_EVERYTHING):
            counts[key[0]] += 1
            try:
                self._checks.get(key[0], _check_unknown)(key, value)
            except CorruptRecordError as error:
                self._note(f"{keys.describe(key)}: {error}")
        self._report.records = {
            table.name.lower(): counts[table] for table in Table if table in counts
        }
        self._check_halves()
        self._check_partitions()
        for _ in range(self._reader.damage_count):
            self._note("a file of the store is damaged; the log says where")

    def _note(self, problem: str) -> None:
        self._report.problem_count += 1
        if len(self._report.problems) < PROBLEMS_NAMED_MAX:
            self._report.problems.append(problem)

    def _check_halves(self) -> None:
        reader = self._reader
        for key, _ in chain(
            without(reader, Table.MESSAGE, Table.ENTRY),
            without(reader, Table.PROGRESS, Table.ENTRY),
        ):
            self._note(f"{keys.describe(key)}: the message has no entry")
        for key, _ in without(reader, Table.ENTRY, Table.MESSAGE):
            self._note(f"{keys.describe(key)}: the message itself is not there")

    def _check_partitions(self) -> None:
        if not self._next_partition:
            self._note("the store's counters are not there")
        used = {queue.partition for queue in self._queues.values()}
        for number, record in self._partitions.items():
            if number not in used:
                self._note(f"partition {number} ({record.base!r}) belongs to no queue")
            if self._next_partition and number >= self._next_partition:
                self._note(f"partition {number} is not counted")

    def _check_counters(self, _key: bytes, value: bytes) -> None:
        self._next_partition = records.unpack_counters(value)[1]

    def _check_partition(self, key: bytes, value: bytes) -> None:
        number = keys.partition_of(key)
        self._partitions[number] = records.unpack_partition(number, value)

    def _check_queue(self, key: bytes, value: bytes) -> None:
        queue = records.unpack_queue(keys.text_of(key), value)
        self._queues[queue.name] = queue
        partition = self._partition(queue.partition)
        if partition.base != queue.name.removesuffix(DLQ_SUFFIX):
            raise CorruptRecordError(f"its partition is that of {partition.base!r}")

    def _check_config(self, key: bytes, value: bytes) -> None:
        keys.text_of(key)
        records.unpack_config(value)

    def _check_bucket(self, key: bytes, value: bytes) -> None:
        records.unpack_level(keys.text_of(key), value)

    def _check_message(self, key: bytes, value: bytes) -> None:
        number, sequence = self._place(key)
        try:
            stored = pb.Message.FromString(value)
            _, low = ids.parse_id(stored.id)
        except (DecodeError, InvalidArgumentError) as error:
            raise CorruptRecordError(f"it is no message: {error}") from error
        if low != ids.id_low(sequence, number):
            raise CorruptRecordError(f"its id {stored.id} is that of another place")

    def _check_entry(self, key: bytes, value: bytes) -> None:
        number, sequence = self._place(key)
        entry = self._entries.decode(sequence, value)
        message = self._reader.get_many([keys.message(Table.MESSAGE, number, sequence)])[0]
        wanted = envelope.stored_message(
            envelope.stored_head(entry.id_high), ids.id_low(sequence, number), b"", b""
        )
        if message is None:
            return
        if not message.startswith(wanted):
            raise CorruptRecordError("its message has another id")
        try:
            told = envelope.stored_spec(message)
        except DecodeError:
            # It was named with the messages.
            return
        if told != entry.spec:
            raise CorruptRecordError("its message tells consumers something else")

    def _check_progress(self, key: bytes, value: bytes) -> None:
        self._place(key)
        records.unpack_progress(value)

    def _check_outcome(self, key: bytes, value: bytes) -> None:
        self._partition(keys.partition_of(key))
        keys.producer_of(key)
        records.unpack_outcome(value)

    def _check_key_weight(self, key: bytes, value: bytes) -> None:
        self._partition(keys.partition_of(key))
        keys.fairness_key_of(key)
        records.unpack_key_weight(value)

    def _check_set_aside(self, _key: bytes, _value: bytes) -> None:
        raise CorruptRecordError("it could not be read earlier")

    def _place(self, key: bytes) -> tuple[int, int]:
        if not keys.is_message_key(key):
            raise CorruptRecordError("the key is malformed")
        number, sequence = keys.partition_of(key), keys.sequence_of(key)
        if sequence >= self._partition(number).next_sequence:
            raise CorruptRecordError("the partition has not counted so far")
        return number, sequence

    def _partition(self, number: int) -> PartitionRecord:
        try:
            return self._partitions[number]
        except KeyError:
            raise CorruptRecordError(f"there is no partition {number}") from None


def _check_unknown(_key: bytes, _value: bytes) -> None:
    raise CorruptRecordError("no table has such keys")
