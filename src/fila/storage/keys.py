"""Where each record lies: one ordered keyspace, whose first byte is the table.

Whatever belongs to a partition has the partition's number behind the table, big-endian, so that a
partition is one range in each table, and the messages of a partition lie in order of sequence.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from struct import Struct

from fila.errors import CorruptRecordError

_PARTITION = Struct(">BI")
_SEQUENCE = Struct(">Q")
_PRODUCER = Struct(">H")
SEQUENCE_BYTES = _SEQUENCE.size
# The table's byte and the partition's number.
_PREFIX_BYTES = _PARTITION.size
pack_sequence = _SEQUENCE.pack


class Table(IntEnum):
    """The first byte of a key. The numbers are on disk: never change one, never use one again."""

    META = 0
    PARTITION = 1
    QUEUE = 2
    CONFIG = 3
    MESSAGE = 4
    ENTRY = 5
    PROGRESS = 6
    OUTCOME = 7
    KEY_WEIGHT = 8
    BUCKET = 9
    # Another copy of what is in META, far from it on disk.
    META_COPY = 0xF0
    # What could not be read, under the key that it had.
    SET_ASIDE = 0xFE


# What is stored of one message.
MESSAGE_TABLES = (Table.MESSAGE, Table.ENTRY, Table.PROGRESS)
# All that goes when a partition goes.
PARTITION_TABLES = (
    Table.PARTITION,
    *MESSAGE_TABLES,
    Table.OUTCOME,
    Table.KEY_WEIGHT,
)

Range = tuple[bytes, bytes]


def describe(key: bytes) -> str:
    """A key for people: its table, and what it is in there."""
    try:
        table = Table(key[0])
    except (ValueError, IndexError):
        return f"key {key.hex()}"
    name = table.name.lower()
    if table in MESSAGE_TABLES and is_message_key(key):
        return f"{name} of message {sequence_of(key)} in partition {partition_of(key)}"
    if table in PARTITION_TABLES and len(key) >= _PREFIX_BYTES:
        return f"{name} of partition {partition_of(key)}, {key[_PREFIX_BYTES:]!r}"
    return f"{name} {key[1:]!r}"


def prefix(table: Table, partition: int) -> bytes:
    """What the keys of one partition begin with in one table."""
    return _PARTITION.pack(table, partition)


def successor(start: bytes) -> bytes:
    """The first key behind all that begin with `start`, which must not be all 0xFF."""
    stem = start.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,))


def range_of(start: bytes) -> Range:
    """All keys that begin with `start`."""
    return start, successor(start)


def table_range(table: Table) -> Range:
    """All keys of a table."""
    return range_of(bytes((table,)))


def partition_range(table: Table, partition: int) -> Range:
    """All keys of a partition in one table."""
    return range_of(prefix(table, partition))


def partition_ranges(partition: int) -> list[Range]:
    """All keys of a partition, also those set aside."""
    aside = bytes((Table.SET_ASIDE,))
    starts = [prefix(table, partition) for table in PARTITION_TABLES]
    return [range_of(start) for start in starts] + [range_of(aside + start) for start in starts]


def partition_of(key: bytes) -> int:
    """The partition of a key in one of the partition's tables."""
    if len(key) < _PREFIX_BYTES:
        raise CorruptRecordError(f"the key {key.hex()} is too short")
    number: int = _PARTITION.unpack_from(key)[1]
    return number


def message(table: Table, partition: int, sequence: int) -> bytes:
    """The key of a message's record in one of its three tables."""
    return prefix(table, partition) + pack_sequence(sequence)


def sequence_suffixes(sequences: Iterable[int]) -> list[bytes]:
    """What the keys of messages end with."""
    return [pack_sequence(sequence) for sequence in sequences]


def messages(table: Table, partition: int, sequences: Sequence[int]) -> list[bytes]:
    """The keys of many messages' records."""
    start = prefix(table, partition)
    return [start + pack_sequence(sequence) for sequence in sequences]


def sequence_of(key: bytes) -> int:
    """The sequence number at the end of a message's or an outcome's key."""
    sequence: int = _SEQUENCE.unpack(key[-SEQUENCE_BYTES:])[0]
    return sequence


def is_message_key(key: bytes) -> bool:
    """Whether a key of a message's table has the right length."""
    return len(key) == _PREFIX_BYTES + SEQUENCE_BYTES


def meta(name: str) -> bytes:
    """A record about the store itself."""
    return bytes((Table.META,)) + name.encode()


def meta_copy(name: str) -> bytes:
    """Its copy."""
    return bytes((Table.META_COPY,)) + name.encode()


def partition(number: int) -> bytes:
    """A partition's record."""
    return prefix(Table.PARTITION, number)


def queue(name: str) -> bytes:
    """A queue's record."""
    return bytes((Table.QUEUE,)) + name.encode()


def config(key: str) -> bytes:
    """A runtime setting."""
    return bytes((Table.CONFIG,)) + key.encode()


def bucket(throttle_key: str) -> bytes:
    """A throttle key's bucket."""
    return bytes((Table.BUCKET,)) + throttle_key.encode()


def text_of(key: bytes) -> str:
    """The name in the key of a queue, a runtime setting or a bucket."""
    try:
        return key[1:].decode()
    except UnicodeDecodeError as error:
        raise CorruptRecordError(f"the key {key.hex()} is not text") from error


def producer(partition: int, name: bytes) -> bytes:
    """What the keys of a producer's outcomes begin with; its length keeps producers apart."""
    return prefix(Table.OUTCOME, partition) + _PRODUCER.pack(len(name)) + name


def outcome(partition: int, name: bytes, sequence: int) -> bytes:
    """An outcome's record."""
    return producer(partition, name) + pack_sequence(sequence)


def producer_of(key: bytes) -> bytes:
    """The producer in an outcome's key."""
    start = _PREFIX_BYTES + _PRODUCER.size
    name = key[start:-SEQUENCE_BYTES]
    if len(key) < start + SEQUENCE_BYTES or _PRODUCER.pack(len(name)) != key[_PREFIX_BYTES:start]:
        raise CorruptRecordError(f"the key {key.hex()} names no producer")
    return name


def key_weight(partition: int, in_dlq: bool, fairness_key: str) -> bytes:
    """A fairness key's weight."""
    return prefix(Table.KEY_WEIGHT, partition) + bytes((in_dlq,)) + fairness_key.encode()


def fairness_key_of(key: bytes) -> tuple[bool, str]:
    """Whether it is the dead-letter queue's, and the fairness key, in the key of a weight."""
    try:
        return bool(key[_PREFIX_BYTES]), key[_PREFIX_BYTES + 1 :].decode()
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptRecordError(f"the key {key.hex()} names no fairness key") from error


def set_aside(key: bytes) -> bytes:
    """Where a record goes that can't be read."""
    return bytes((Table.SET_ASIDE,)) + key
