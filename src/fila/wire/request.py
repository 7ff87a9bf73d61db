"""Requests from the bytes that came in: garbage is the caller's mistake, never ours."""

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from fila.errors import InvalidArgumentError

RequestT = TypeVar("RequestT", bound=Message)


def parse(request_class: type[RequestT], data: bytes) -> RequestT:
    """The request that these bytes are."""
    request = request_class()
    try:
        request.ParseFromString(data)
    except DecodeError as error:
        name = request_class.DESCRIPTOR.full_name
        raise InvalidArgumentError(
            f"the request is not a {name}: malformed protobuf, or text that is not UTF-8"
        ) from error
    return request
