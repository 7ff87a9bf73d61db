"""What a script may know of a message, as bytes: its headers, and how long its payload is.

It is the serialized item up to where the payload's own bytes begin, so that nothing has to be
encoded for it: fields are serialized in the order of their numbers, headers first.
"""

from collections.abc import Mapping

from fila.wire._pb import service_pb2 as pb
from fila.wire.envelope import length_delimited

_PAYLOAD = pb.EnqueueItem.PAYLOAD_FIELD_NUMBER
_OPTIONS = pb.EnqueueItem.OPTIONS_FIELD_NUMBER


def outline(item: pb.EnqueueItem | pb.EnqueueRequest, body: bytes) -> bytes:
    """The outline of an item with these bytes."""
    end = len(body) - len(item.payload)
    if item.HasField("options"):
        size = item.options.ByteSize()
        end -= len(length_delimited(_OPTIONS, size)) + size
    return body[:end]


def outline_of(headers: Mapping[str, str], payload_size: int) -> bytes:
    """The outline of a message with these headers and a payload of this size."""
    front = pb.EnqueueItem(headers=headers).SerializeToString()
    return front + length_delimited(_PAYLOAD, payload_size) if payload_size else front
