"""Responses as bytes, where building a message object for each would cost more than the answer."""

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct, pack

from fila import ids
from fila.model import ItemError, Outcome
from fila.wire._pb import service_pb2 as pb
from fila.wire.envelope import length_delimited
from fila.wire.status import CODE_NUMBERS

_PAIR = Struct(">QQ")
_NO_ID = bytes(16)
_SEQUENCE_STEP = 1 << ids.PARTITION_BITS
_MESSAGES_FIELD = 1
_DELIVERIES_FIELD = 6


def item_error(error: ItemError) -> pb.ItemError:
    """The wire form of a refused item."""
    return pb.ItemError(
        index=error.index, code=CODE_NUMBERS.get(error.code, 2), message=error.message
    )


def accepted(outcome: Outcome, partition: int) -> bytes:
    """The `EnqueueBatchResponse` of an outcome."""
    return pb.EnqueueBatchResponse(
        message_ids=_packed_ids(outcome, partition),
        errors=[item_error(error) for error in outcome.errors],
    ).SerializeToString()


def accepted_id(outcome: Outcome, partition: int) -> str:
    """The id of the only message of an outcome."""
    return ids.id_text(outcome.id_high, ids.id_low(outcome.first_seq, partition))


def _packed_ids(outcome: Outcome, partition: int) -> bytes:
    high = outcome.id_high
    low = ids.id_low(outcome.first_seq, partition)
    accepted_count = outcome.count - len(outcome.errors)
    halves = [high] * (2 * accepted_count)
    halves[1::2] = range(low, low + accepted_count * _SEQUENCE_STEP, _SEQUENCE_STEP)
    packed = pack(f">{len(halves)}Q", *halves)
    if not outcome.errors:
        return packed
    return _with_gaps(packed, outcome)


def _with_gaps(packed: bytes, outcome: Outcome) -> bytes:
    refused = {error.index for error in outcome.errors}
    size = _PAIR.size
    each = (packed[start : start + size] for start in range(0, len(packed), size))
    return b"".join(
        _NO_ID if index in refused else next(each, _NO_ID) for index in range(outcome.count)
    )


@lru_cache(maxsize=8192)
def _message_head(size: int) -> bytes:
    return length_delimited(_MESSAGES_FIELD, size)


def embedded(stored: bytes, lease: bytes, token: bytes = b"") -> bytes:
    """A delivered message as field 1: a whole `ConsumeResponse`, or one item of a list."""
    return b"".join((_message_head(len(stored) + len(lease) + len(token)), stored, lease, token))


def work_deliveries(items: Iterable[bytes]) -> bytes:
    """A `WorkResponse` with deliveries, each already `embedded`."""
    body = b"".join(items)
    return length_delimited(_DELIVERIES_FIELD, len(body)) + body
