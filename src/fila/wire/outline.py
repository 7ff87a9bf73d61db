"""What a script may know of a message, as bytes: how long its payload is, and its headers.

Four bytes for the length, then the item's own bytes up to where the payload begins: fields are
serialized in the order of their numbers, headers first, so nothing has to be encoded for it.
"""

from collections.abc import Mapping
from functools import lru_cache
from struct import Struct

from fila.wire._pb import service_pb2 as pb
from fila.wire.envelope import length_delimited

_PAYLOAD = pb.EnqueueItem.PAYLOAD_FIELD_NUMBER
_OPTIONS = pb.EnqueueItem.OPTIONS_FIELD_NUMBER
_HEADER_TAG = 0x12
# Lengths below it are one byte.
_SHORT = 0x80
_pack_size = Struct("<I").pack


def headers_size(body: bytes) -> int | None:
    """How many bytes an item begins with are its headers; None where one of them is long."""
    size, at = len(body), 0
    while at < size and body[at] == _HEADER_TAG:
        length = body[at + 1]
        if length >= _SHORT:
            return None
        at += 2 + length
    return at


def outline(
    item: pb.EnqueueItem | pb.EnqueueRequest, body: bytes, head: bytes | None, plain: bool
) -> bytes:
    """The outline of an item with these bytes, and these of its headers where they are short.

    A `plain` item has no options.
    """
    # To ask for the payload is to copy it; how long it is follows from where it begins.
    if plain and head is not None and len(head) < len(body):
        return _field_head(len(body) - len(head)) + head
    return _outline_asked_for(item, body)


@lru_cache(maxsize=4096)
def _field_head(field_bytes: int) -> bytes:
    """The length of a payload, as four bytes, whose field has so many bytes in all."""
    payload_size = field_bytes
    while len(length_delimited(_PAYLOAD, payload_size)) + payload_size > field_bytes:
        payload_size -= 1
    return _pack_size(payload_size)


def _outline_asked_for(item: pb.EnqueueItem | pb.EnqueueRequest, body: bytes) -> bytes:
    """The same for messages of any kind."""
    end, payload_size = len(body), len(item.payload)
    if payload_size:
        end -= len(length_delimited(_PAYLOAD, payload_size)) + payload_size
    if item.HasField("options"):
        size = item.options.ByteSize()
        end -= len(length_delimited(_OPTIONS, size)) + size
    return _pack_size(payload_size) + body[:end]


def outline_of(headers: Mapping[str, str], payload_size: int) -> bytes:
    """The outline of a message with these headers and a payload of this size."""
    return _pack_size(payload_size) + pb.EnqueueItem(headers=headers).SerializeToString()
