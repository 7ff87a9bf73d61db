"""What a name may be: queues, headers, keys. Each refusal says which limit it is about."""

import re

from fila.errors import InvalidArgumentError
from fila.model import DLQ_SUFFIX, Limits, is_dlq

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def has_control(name: str) -> bool:
    """Whether the name holds a control character."""
    # Two calls into C settle nearly every name there is.
    if name.isascii() and name.isprintable():
        return False
    return _CONTROL.search(name) is not None


def check_name(what: str, name: str, bytes_max: int, limit: str) -> None:
    """Refuse a name that is empty, too long, or holds control characters."""
    if not name:
        raise InvalidArgumentError(f"{what} must not be empty")
    check_size(what, len(name.encode()), bytes_max, limit)
    if has_control(name):
        raise InvalidArgumentError(f"{what} must not contain control characters")


def check_size(what: str, size: int, bytes_max: int, limit: str) -> None:
    """Refuse what is longer than a limit, and name the limit."""
    if size > bytes_max:
        raise InvalidArgumentError(
            f"{what} has {size} bytes; the limit is {bytes_max} (limits.{limit})"
        )


def check_queue_name(name: str, limits: Limits) -> None:
    """Refuse a name that no queue can have. A dead-letter queue's suffix does not count."""
    base = name[: -len(DLQ_SUFFIX)] if is_dlq(name) else name
    check_name("queue name", base, limits.queue_name_bytes_max, "queue_name_bytes_max")
    if is_dlq(base):
        raise InvalidArgumentError("a dead-letter queue has no dead-letter queue of its own")


def check_key(what: str, key: str, limits: Limits) -> None:
    """Refuse a fairness or throttle key that is empty, too long, or holds control characters."""
    check_name(what, key, limits.key_bytes_max, "key_bytes_max")
