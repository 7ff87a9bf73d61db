"""What each record's value looks like: packed fields, texts behind their length, a checksum last.

The checksum starts from the table's number, so that a value of one table never passes for
another's. A stored message has none: its bytes are delivered as they lie, and the store below
checks its blocks itself. Whatever does not decode raises `CorruptRecordError`.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from struct import Struct
from zlib import crc32

from fila.core.message import Message
from fila.core.records import (
    BucketLevel,
    Entry,
    KeyWeight,
    PartitionRecord,
    Progress,
    QueueRecord,
    Status,
)
from fila.errors import CorruptRecordError
from fila.model import DeadLetter, ItemError, Outcome, QueueSettings, Reason, Spec
from fila.storage.keys import Table

_CHECKSUM = Struct(">I")
_LENGTH = Struct(">I")
# flags, id_high, accepted_at_ns, deliver_at_ns, expires_at_ns; the spec follows.
_ENTRY = Struct(">BQqqq")
# weight, priority, cost, throttle keys; the fairness key and they follow.
_SPEC = Struct(">HBHH")
# status, flags, place, attempts, due_wall_ns, span_ns, token, leased_at_ns; last_error may follow,
# then the dead letter.
_PROGRESS = Struct(">BBQIqqQq")
# reason, dead_at_ns; last_error and source_queue follow.
_DEAD = Struct(">Bq")
# next_sequence, id_high; the base follows.
_PARTITION = Struct(">QQ")
# weight, place.
_KEY_WEIGHT = Struct(">IQ")
# nano_tokens, at_wall_ns.
_LEVEL = Struct(">Qq")
# id_high, first_seq, count, at_ns, errors; those follow.
_OUTCOME = Struct(">QQIqI")
_INDEX = Struct(">I")
# epoch, next partition.
_COUNTERS = Struct(">QI")

_IN_DLQ = 1
_DELIVERED = 2
_WALL_TIMED = 4
_HAS_ERROR = 8
_IS_DEAD = 16

_pack_progress = _PROGRESS.pack
_pack_checksum = _CHECKSUM.pack
_PROGRESS_TABLE = int(Table.PROGRESS)
_MALFORMED = (struct.error, UnicodeDecodeError, ValueError, TypeError, KeyError, AttributeError)


def seal(table: Table, payload: bytes) -> bytes:
    """A payload with its checksum."""
    return payload + _pack_checksum(crc32(payload, table))


def unseal(table: Table, value: bytes) -> bytes:
    """The payload, if the checksum is right."""
    payload = value[: -_CHECKSUM.size]
    if len(value) < _CHECKSUM.size or value[-_CHECKSUM.size :] != _pack_checksum(
        crc32(payload, table)
    ):
        raise CorruptRecordError("the checksum is wrong")
    return payload


def _text(text: str) -> bytes:
    raw = text.encode()
    return _LENGTH.pack(len(raw)) + raw


class _Reader:
    """Walks through a payload."""

    __slots__ = ("_at", "_payload")

    def __init__(self, payload: bytes, at: int = 0) -> None:
        self._payload = payload
        self._at = at

    def text(self) -> str:
        (length,) = _LENGTH.unpack_from(self._payload, self._at)
        start = self._at + _LENGTH.size
        self._at = start + length
        raw = self._payload[start : self._at]
        if len(raw) != length:
            raise CorruptRecordError("a text is cut short")
        return raw.decode()

    def fields(self, layout: Struct) -> tuple[int, ...]:
        values = layout.unpack_from(self._payload, self._at)
        self._at += layout.size
        return values

    def end(self) -> None:
        if self._at != len(self._payload):
            raise CorruptRecordError("it is longer than its fields")


@lru_cache(maxsize=16_384)
def spec_bytes(spec: Spec) -> bytes:
    """What the scheduler knows of a message, to go into many entries."""
    throttle_keys = spec.throttle_keys
    head = _SPEC.pack(spec.weight, spec.priority, spec.cost, len(throttle_keys))
    packed = head + _text(spec.fairness_key)
    return packed + b"".join(map(_text, throttle_keys)) if throttle_keys else packed


def _read_spec(packed: bytes) -> Spec:
    reader = _Reader(packed)
    weight, priority, cost, count = reader.fields(_SPEC)
    spec = Spec(
        fairness_key=reader.text(),
        weight=weight,
        priority=priority,
        cost=cost,
        throttle_keys=tuple([reader.text() for _ in range(count)]),
    )
    reader.end()
    return spec


def entry_head(*, in_dlq: bool, id_high: int, accepted_at_ns: int, times: tuple[int, int]) -> bytes:
    """What the entries of messages have in common that were accepted together."""
    return _ENTRY.pack(_IN_DLQ if in_dlq else 0, id_high, accepted_at_ns, *times)


def entry_value(head: bytes, spec: Spec) -> bytes:
    """An entry: all but its sequence, so that messages accepted alike share it."""
    return seal(Table.ENTRY, head + spec_bytes(spec))


def pack_entry(entry: Entry) -> bytes:
    """The same from the record."""
    head = entry_head(
        in_dlq=entry.in_dlq,
        id_high=entry.id_high,
        accepted_at_ns=entry.accepted_at_ns,
        times=(entry.deliver_at_ns, entry.expires_at_ns),
    )
    return entry_value(head, entry.spec)


class EntryDecoder:
    """Turns values into entries; equal specs become one object, neighbours alike decode once."""

    def __init__(self) -> None:
        self._specs: dict[bytes, Spec] = {}
        self._value: bytes | None = None
        self._fields: tuple[int, Spec, bool, int, int, int] = (0, Spec(), False, 0, 0, 0)

    def decode(self, sequence: int, value: bytes) -> Entry:
        """The entry of one message."""
        if value != self._value:
            self._fields = self._decode(value)
            self._value = value
        return Entry(sequence, *self._fields)

    def _decode(self, value: bytes) -> tuple[int, Spec, bool, int, int, int]:
        payload = unseal(Table.ENTRY, value)
        try:
            flags, id_high, accepted, deliver, expires = _ENTRY.unpack_from(payload)
            packed = payload[_ENTRY.size :]
            spec = self._specs.get(packed)
            if spec is None:
                spec = self._specs[packed] = _read_spec(packed)
        except _MALFORMED as error:
            raise CorruptRecordError(f"it is no entry: {error}") from error
        return id_high, spec, flags == _IN_DLQ, accepted, deliver, expires


def progress_values(messages: Sequence[Message]) -> list[bytes]:
    """What became of messages, as it is now."""
    values: list[bytes] = []
    add = values.append
    for message in messages:
        flags = message.queue.is_dlq | message.delivered << 1 | message.wall_timed << 2
        tail = b""
        if message.last_error or message.dead is not None:
            more, tail = _progress_tail(message.last_error, message.dead)
            flags |= more
        payload = _pack_progress(
            message.status,
            flags,
            message.place,
            message.attempts,
            message.due_wall_ns,
            message.span_ns,
            message.token,
            message.leased_at_ns,
        )
        if tail:
            payload += tail
        add(payload + _pack_checksum(crc32(payload, _PROGRESS_TABLE)))
    return values


def pack_progress(progress: Progress) -> bytes:
    """The same from the record."""
    flags = progress.in_dlq | progress.delivered << 1 | progress.wall_timed << 2
    more, tail = _progress_tail(progress.last_error, progress.dead)
    head = _pack_progress(
        progress.status,
        flags | more,
        progress.place,
        progress.attempts,
        progress.due_wall_ns,
        progress.span_ns,
        progress.token,
        progress.leased_at_ns,
    )
    return seal(Table.PROGRESS, head + tail)


def _progress_tail(last_error: str, dead: DeadLetter | None) -> tuple[int, bytes]:
    flags, tail = 0, b""
    if last_error:
        flags |= _HAS_ERROR
        tail = _text(last_error)
    if dead is not None:
        flags |= _IS_DEAD
        tail += _DEAD.pack(dead.reason, dead.dead_at_ns)
        tail += _text(dead.last_error) + _text(dead.source_queue)
    return flags, tail


def unpack_progress(value: bytes) -> Progress:
    """What became of a message."""
    payload = unseal(Table.PROGRESS, value)
    try:
        status, flags, place, attempts, due, span, token, leased = _PROGRESS.unpack_from(payload)
        last_error, dead = "", None
        if flags & (_HAS_ERROR | _IS_DEAD) or len(payload) != _PROGRESS.size:
            last_error, dead = _read_progress_tail(flags, _Reader(payload, _PROGRESS.size))
        return Progress(
            _STATUS[status],
            flags & _IN_DLQ != 0,
            place,
            attempts,
            flags & _DELIVERED != 0,
            due,
            span,
            flags & _WALL_TIMED != 0,
            token,
            leased,
            last_error,
            dead,
        )
    except _MALFORMED as error:
        raise CorruptRecordError(f"it is no progress: {error}") from error


# A look-up in a dictionary costs a fifth of the enumeration's own.
_STATUS = {int(status): status for status in Status}


def _read_progress_tail(flags: int, reader: _Reader) -> tuple[str, DeadLetter | None]:
    last_error = reader.text() if flags & _HAS_ERROR else ""
    dead = None
    if flags & _IS_DEAD:
        reason, dead_at_ns = reader.fields(_DEAD)
        dead = DeadLetter(
            reason=Reason(reason),
            dead_at_ns=dead_at_ns,
            last_error=reader.text(),
            source_queue=reader.text(),
        )
    reader.end()
    return last_error, dead


def pack_partition(record: PartitionRecord) -> bytes:
    """A partition; its number is in the key."""
    head = _PARTITION.pack(record.next_sequence, record.id_high)
    return seal(Table.PARTITION, head + _text(record.base))


def unpack_partition(number: int, value: bytes) -> PartitionRecord:
    """A partition."""
    try:
        reader = _Reader(unseal(Table.PARTITION, value))
        next_sequence, id_high = reader.fields(_PARTITION)
        base = reader.text()
        reader.end()
    except _MALFORMED as error:
        raise CorruptRecordError(f"it is no partition: {error}") from error
    return PartitionRecord(number=number, base=base, next_sequence=next_sequence, id_high=id_high)


def pack_queue(record: QueueRecord) -> bytes:
    """A queue, as JSON: rarely written, and a new setting must not change the format."""
    fields = {
        "partition": record.partition,
        "paused": record.paused,
        "settings": asdict(record.settings),
    }
    return seal(Table.QUEUE, json.dumps(fields).encode())


def unpack_queue(name: str, value: bytes) -> QueueRecord:
    """A queue; its name is in the key."""
    try:
        fields = json.loads(unseal(Table.QUEUE, value))
        return QueueRecord(
            name=name,
            partition=int(fields["partition"]),
            paused=bool(fields["paused"]),
            settings=QueueSettings(**fields["settings"]),
        )
    except _MALFORMED as error:
        raise CorruptRecordError(f"it is no queue: {error}") from error


def pack_key_weight(record: KeyWeight) -> bytes:
    """A key's weight; whose it is stands in the key."""
    return seal(Table.KEY_WEIGHT, _KEY_WEIGHT.pack(record.weight, record.place))


def unpack_key_weight(value: bytes) -> tuple[int, int]:
    """Weight and place."""
    try:
        weight, place = _KEY_WEIGHT.unpack(unseal(Table.KEY_WEIGHT, value))
    except _MALFORMED as error:
        raise CorruptRecordError(f"it is no weight: {error}") from error
    return weight, place


def pack_outcome(outcome: Outcome) -> bytes:
    """What an enqueue came to."""
    head = _OUTCOME.pack(
        outcome.id_high, outcome.first_seq, outcome.count, outcome.at_ns, len(outcome.errors)
    )
    errors = [
        _INDEX.pack(item.index) + _text(item.code) + _text(item.message) for item in outcome.errors
    ]
    return seal(Table.OUTCOME, head + b"".join(errors))


def unpack_outcome(value: bytes) -> Outcome:
    """What an enqueue came to."""
    try:
        reader = _Reader(unseal(Table.OUTCOME, value))
        id_high, first_seq, count, at_ns, error_count = reader.fields(_OUTCOME)
        errors = []
        for _ in range(error_count):
            (index,) = reader.fields(_INDEX)
            errors.append(ItemError(index, reader.text(), reader.text()))
        reader.end()
    except _MALFORMED as error:
        raise CorruptRecordError(f"it is no outcome: {error}") from error
    return Outcome(id_high, first_seq, count, at_ns, tuple(errors))


def pack_config(value: str) -> bytes:
    """A runtime setting's value."""
    return seal(Table.CONFIG, value.encode())


def unpack_config(value: bytes) -> str:
    """A runtime setting's value."""
    try:
        return unseal(Table.CONFIG, value).decode()
    except UnicodeDecodeError as error:
        raise CorruptRecordError("it is not text") from error


def pack_level(level: BucketLevel) -> bytes:
    """What a bucket held; its name is in the key."""
    return seal(Table.BUCKET, _LEVEL.pack(level.nano_tokens, level.at_wall_ns))


def unpack_level(name: str, value: bytes) -> BucketLevel:
    """What a bucket held."""
    try:
        nano_tokens, at_wall_ns = _LEVEL.unpack(unseal(Table.BUCKET, value))
    except struct.error as error:
        raise CorruptRecordError(f"it is no level: {error}") from error
    return BucketLevel(name=name, nano_tokens=nano_tokens, at_wall_ns=at_wall_ns)


def pack_counters(epoch: int, next_partition: int) -> bytes:
    """What the store counts: its openings, and the partitions that it ever had."""
    return seal(Table.META, _COUNTERS.pack(epoch, next_partition))


def unpack_counters(value: bytes) -> tuple[int, int]:
    """Openings, and the next partition's number."""
    try:
        epoch, next_partition = _COUNTERS.unpack(unseal(Table.META, value))
    except struct.error as error:
        raise CorruptRecordError(f"it holds no counters: {error}") from error
    return epoch, next_partition
