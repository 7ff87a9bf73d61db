"""The bytes of a `fila.v1.Message`, put together from parts that were encoded once.

Protobuf merges concatenated messages: an accepted item's own bytes, an id in front and a tail
behind them are the stored message; a second tail makes it the delivered one. Nothing is parsed or
encoded again on the way, and the parts that a batch shares are built once for the batch.
"""

from functools import lru_cache
from struct import Struct

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from fila import ids
from fila.model import NS_PER_S, DeadLetter, Spec
from fila.wire._pb import messages_pb2 as pb

# Field 1, 36 characters.
_ID_FIELD = b"\x0a\x24"
_ID_END = 38
_METADATA_FIELD = 4
# Field 21, nine bytes: field 1, fixed64.
_TOKEN_FIELD = b"\xaa\x01\x09\x09"
_pack_token = Struct("<4sQ").pack
# The last twelve digits of an id.
_ID_TAIL_BITS = 48
_ID_TAIL_MASK = (1 << _ID_TAIL_BITS) - 1


def stored_head(id_high: int) -> bytes:
    """What the stored bytes of every message of one moment begin with."""
    return _ID_FIELD + ids.id_text_high(id_high).encode()


def stored_message(head: bytes, low: int, body: bytes, tail: bytes) -> bytes:
    """One stored message."""
    digits = b"%04x-%012x" % (low >> _ID_TAIL_BITS, low & _ID_TAIL_MASK)
    return b"".join((head, digits, body, tail))


def read_stored(stored: bytes | None) -> pb.Message | None:
    """A stored message, if its bytes are there, and are a message's."""
    try:
        return None if stored is None else pb.Message.FromString(stored)
    except DecodeError:
        return None


@lru_cache(maxsize=16_384)
def metadata_part(spec: Spec, queue: str) -> bytes:
    """What scheduling knows of a message: with `accepted_part`, what follows its own bytes."""
    metadata = pb.MessageMetadata(
        fairness_key=spec.fairness_key,
        weight=spec.weight,
        throttle_keys=spec.throttle_keys,
        priority=spec.priority,
        cost=spec.cost,
        queue_id=queue,
    ).SerializeToString()
    return length_delimited(_METADATA_FIELD, len(metadata)) + metadata


def stored_spec(stored: bytes) -> Spec:
    """What a consumer is told that scheduling knows of a stored message."""
    metadata = pb.Message.FromString(stored).metadata
    return Spec(
        fairness_key=metadata.fairness_key,
        weight=metadata.weight,
        throttle_keys=tuple(metadata.throttle_keys),
        priority=metadata.priority,
        cost=metadata.cost,
    )


def with_metadata(stored: bytes, spec: Spec, queue: str) -> bytes:
    """A stored message that scheduling knows otherwise by now.

    Parsed and written again: a second tail could not take a throttle key away.
    """
    message = pb.Message.FromString(stored)
    message.ClearField("id")
    message.ClearField("metadata")
    return b"".join((stored[:_ID_END], message.SerializeToString(), metadata_part(spec, queue)))


def accepted_part(accepted_at_ns: int) -> bytes:
    """When a message was accepted."""
    message = pb.Message()
    set_time(message.timestamps.enqueued_at, accepted_at_ns)
    return message.SerializeToString()


@lru_cache(maxsize=1024)
def _attempts_part(attempts: int) -> bytes:
    return pb.Message(metadata=pb.MessageMetadata(attempt_count=attempts)).SerializeToString()


def dead_letter_part(queue: str, dead: DeadLetter) -> bytes:
    """What a dead letter's bytes gain: its new queue and why it is there."""
    message = pb.Message(metadata=pb.MessageMetadata(queue_id=queue))
    set_dead_letter(message.dead_letter, dead)
    return message.SerializeToString()


def set_dead_letter(shown: pb.DeadLetter, dead: DeadLetter) -> None:
    """Why a message is a dead letter."""
    shown.reason = dead.reason.label
    shown.last_error = dead.last_error
    shown.source_queue = dead.source_queue
    set_time(shown.dead_at, dead.dead_at_ns)


def attempts_part(attempts: int) -> bytes:
    """The attempt count, nothing for none."""
    return _attempts_part(attempts) if attempts else b""


@lru_cache(maxsize=256)
def lease_part(attempts: int, leased_at_ns: int, expires_at_ns: int) -> bytes:
    """What deliveries of one moment add to a stored message, but for the token."""
    message = pb.Message()
    set_time(message.timestamps.leased_at, leased_at_ns)
    set_time(message.delivery.lease_expires_at, expires_at_ns)
    return attempts_part(attempts) + message.SerializeToString()


def token_part(token: int) -> bytes:
    """The token of one delivery."""
    return _pack_token(_TOKEN_FIELD, token)


def length_delimited(field_number: int, size: int) -> bytes:
    """The tag and length that precede an embedded message."""
    return _varint(field_number << 3 | 2) + _varint(size)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def set_time(stamp: Timestamp, at_ns: int) -> None:
    """Fill a protobuf timestamp from nanoseconds."""
    stamp.seconds, stamp.nanos = divmod(at_ns, NS_PER_S)


def time_ns(stamp: Timestamp) -> int:
    """Nanoseconds of a protobuf timestamp."""
    return stamp.seconds * NS_PER_S + stamp.nanos
