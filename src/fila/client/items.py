"""What a program sends, as bytes: each message is encoded once, whatever becomes of its batch."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from fila.client.message import NewMessage
from fila.errors import InvalidArgumentError
from fila.model import DELAY_MAX_MS
from fila.wire._pb import messages_pb2
from fila.wire.envelope import length_delimited

# What the broker takes.
_DURATION_MAX_S = DELAY_MAX_MS / 1000
_FREQUENT_CHARS_MAX = 64
# EnqueueBatchRequest.items; of an item: headers, payload, options; of a header: name, value.
_ITEM, _HEADERS, _PAYLOAD, _OPTIONS, _NAME, _VALUE = 2, 2, 3, 20, 1, 2

# Tag and length. Sizes repeat: a look-up is cheaper than the arithmetic.
_framed = lru_cache(maxsize=4096)(length_delimited)


def encode_item(
    payload: bytes | bytearray | memoryview,
    headers: Mapping[str, str] | None = None,
    options: messages_pb2.MessageOptions | None = None,
) -> bytes:
    """One item of an `EnqueueBatchRequest`, tag and length included.

    Put together by hand: a message object would cost three times as much.
    """
    if not isinstance(payload, bytes):
        payload = _as_bytes(payload)
    # The first part is the item's own tag and length, known last.
    parts = [b"", *_headers(headers)] if headers else [b""]
    parts += (_framed(_PAYLOAD, len(payload)), payload)
    if options is not None:
        content = options.SerializeToString()
        parts += (_framed(_OPTIONS, len(content)), content)
    parts[0] = _framed(_ITEM, sum(map(len, parts)))
    return b"".join(parts)


def encode_new(message: NewMessage) -> bytes:
    """One item from a `NewMessage`."""
    options = encode_options(
        fairness_key=message.fairness_key,
        weight=message.weight,
        throttle_keys=message.throttle_keys,
        priority=message.priority,
        cost=message.cost,
        delay=message.delay,
        deliver_at=message.deliver_at,
        ttl=message.ttl,
    )
    return encode_item(message.payload, message.headers, options)


def _headers(headers: Mapping[str, str]) -> list[bytes]:
    try:
        return [
            _frequent_header(name, value)
            if len(value) <= _FREQUENT_CHARS_MAX
            else _header(name, value)
            for name, value in headers.items()
        ]
    except (AttributeError, TypeError) as error:
        raise TypeError("headers must map str to str") from error
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"a header can't be sent: {error.reason}") from error


def _header(name: str, value: str) -> bytes:
    key, content = name.encode(), value.encode()
    entry = b"".join((_framed(_NAME, len(key)), key, _framed(_VALUE, len(content)), content))
    return _framed(_HEADERS, len(entry)) + entry


# A tenant's name comes again and again.
_frequent_header = lru_cache(maxsize=1024)(_header)


def check_text(what: str, text: str) -> None:
    """Refuse what can't travel as a string before anything is sent."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be str, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{what} can't be sent: {error.reason}") from error


def _as_bytes(payload: bytearray | memoryview) -> bytes:
    if isinstance(payload, bytearray | memoryview):
        return bytes(payload)
    # Whoever does not check types comes here.
    raise TypeError(f"payload must be bytes, not {type(payload).__name__}; encode it first")


def encode_options(
    *,
    fairness_key: str | None = None,
    weight: int | None = None,
    throttle_keys: Sequence[str] | None = None,
    priority: int | None = None,
    cost: int | None = None,
    delay: float | None = None,
    deliver_at: datetime | None = None,
    ttl: float | None = None,
) -> messages_pb2.MessageOptions | None:
    """The options that are set, None where none is."""
    if (
        fairness_key is None
        and weight is None
        and throttle_keys is None
        and priority is None
        and cost is None
        and delay is None
        and deliver_at is None
        and ttl is None
    ):
        return None
    if isinstance(throttle_keys, str):
        raise TypeError("throttle_keys must be a sequence of str, not one str")
    try:
        options = messages_pb2.MessageOptions(
            fairness_key=fairness_key,
            weight=weight,
            throttle_keys=throttle_keys,
            priority=priority,
            cost=cost,
            delay_ms=milliseconds("delay", delay),
            ttl_ms=milliseconds("ttl", ttl),
        )
    except ValueError as error:
        raise InvalidArgumentError(f"the options can't be sent: {error}") from error
    if deliver_at is not None:
        check_aware(deliver_at)
        options.deliver_at.FromDatetime(deliver_at)
    return options


def milliseconds(name: str, seconds: float | None) -> int | None:
    """A duration for the wire, rounded up so that something stays something."""
    if seconds is None:
        return None
    if not 0 <= seconds <= _DURATION_MAX_S:
        raise InvalidArgumentError(f"{name} is {seconds}; it must be seconds, from 0 to a century")
    return math.ceil(seconds * 1000)


def check_aware(deliver_at: datetime) -> None:
    """Refuse a time that could be anywhere."""
    if deliver_at.tzinfo is None:
        raise InvalidArgumentError("deliver_at has no time zone; give an aware datetime")
