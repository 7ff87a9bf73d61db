"""Message ids: UUIDv7 whose random bits hold a sequence number, so that an id leads to its record.

    high 64 bits   48 milliseconds of wall time | 4 version | 12 start of the broker, counted
    low  64 bits    2 variant | 44 sequence in the partition | 18 partition

`high` never falls (the broker sees to it), `sequence` never repeats in its partition, partitions
are never numbered twice: ids are unique and ordered by time without an index or randomness.
"""

from collections.abc import Sequence
from struct import Struct

from fila.errors import InvalidArgumentError

SEQUENCE_BITS = 44
PARTITION_BITS = 18
_SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1
_PARTITION_MASK = (1 << PARTITION_BITS) - 1
# All of a low half but its sequence.
_BESIDE_SEQUENCE = 0b11 << 62 | _PARTITION_MASK
_VERSION = 0x7000
_VARIANT = 0b10 << 62
_PAIR = Struct(">QQ")
_HEX_DIGITS = 32


def id_high(wall_ms: int, epoch: int) -> int:
    """The high half of all ids of one moment."""
    return (wall_ms & 0xFFFF_FFFF_FFFF) << 16 | _VERSION | (epoch & 0xFFF)


def id_low(sequence: int, partition: int) -> int:
    """The low half of one id."""
    return _VARIANT | (sequence & _SEQUENCE_MASK) << PARTITION_BITS | (partition & _PARTITION_MASK)


def id_text_high(high: int) -> str:
    """The first 19 characters of every id with this high half, hyphen included."""
    text = f"{high:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:]}-"


def id_text(high: int, low: int) -> str:
    """The usual form of an id."""
    text = f"{low:016x}"
    return f"{id_text_high(high)}{text[:4]}-{text[4:]}"


def id_bytes(high: int, low: int) -> bytes:
    """The 16 bytes of an id."""
    return _PAIR.pack(high, low)


def parse_id(text: str) -> tuple[int, int]:
    """The two halves of an id in its usual form."""
    digits = text.replace("-", "")
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raw = b""
    if len(digits) != _HEX_DIGITS or len(raw) != _PAIR.size:
        raise InvalidArgumentError(f"message id {text[:64]!r} is malformed; expected a UUID")
    high, low = _PAIR.unpack(raw)
    return high, low


def sequence_of(low: int) -> int:
    """The sequence number in an id's low half."""
    return low >> PARTITION_BITS & _SEQUENCE_MASK


def belongs_to(low: int, partition: int) -> bool:
    """Whether an id with this low half can be the partition's."""
    return low >> 62 == 0b10 and low & _PARTITION_MASK == partition & _PARTITION_MASK


def sequences_of(lows: Sequence[int], partition: int) -> list[int]:
    """The sequence numbers of many low halves; 0, nobody's, for one that isn't the partition's."""
    mark = id_low(0, partition)
    return [
        low >> PARTITION_BITS & _SEQUENCE_MASK if low & _BESIDE_SEQUENCE == mark else 0
        for low in lows
    ]


def unpack_ids(blob: bytes) -> Sequence[int]:
    """High and low halves, alternating, of ids packed one after another."""
    count, rest = divmod(len(blob), _PAIR.size)
    if rest:
        raise InvalidArgumentError("message_ids must hold 16 bytes for each id")
    return Struct(f">{2 * count}Q").unpack(blob)
