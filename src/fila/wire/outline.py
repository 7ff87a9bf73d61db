"""What a script may know of a message, as bytes: its headers, and how long its payload is.

It is the serialized item up to where the payload's own bytes begin, so that nothing has to be
encoded for it: fields are serialized in the order of their numbers, headers first.
"""

from collections.abc import Mapping

from fila.wire._pb import service_pb2 as pb
from fila.wire._pb.messages_pb2 import MessageOptions
from fila.wire.envelope import length_delimited

_PAYLOAD = pb.EnqueueItem.PAYLOAD_FIELD_NUMBER
_OPTIONS = pb.EnqueueItem.OPTIONS_FIELD_NUMBER


def outline(body: bytes, payload_size: int, options: MessageOptions | None) -> bytes:
    """The outline of an item with these bytes, of which so many are the payload's."""
    end = len(body) - payload_size
    if options is not None:
        size = options.ByteSize()
        end -= len(length_delimited(_OPTIONS, size)) + size
    return body[:end]


def outline_of(headers: Mapping[str, str], payload_size: int) -> bytes:
    """The outline of a message with these headers and a payload of this size."""
    front = pb.EnqueueItem(headers=headers).SerializeToString()
    return front + length_delimited(_PAYLOAD, payload_size) if payload_size else front
