"""gRPC's failures as Fila's errors: the one place where they are translated."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from fila.errors import (
    DeadlineError,
    ExhaustedError,
    FilaError,
    InvalidArgumentError,
    OutcomeUnknownError,
    ShuttingDownError,
    UnreachableError,
)
from fila.wire.status import KIND_KEY, error_of

if TYPE_CHECKING:
    # `library` alone decides how it is imported.
    import grpc.aio

# gRPC has one status for "never connected" and "connection lost"; only its words tell.
_NO_CHANNEL = "Failed to create channel"
# What the library says when the connection is lost while it hands over a message to be sent.
_LOST_WHILE_SENDING = "Internal error from Core"
_NEVER_SENT = (
    "failed to connect",
    "errors resolving",
    "DNS resolution failed",
    "Name resolution",
    "no addresses",
    _NO_CHANNEL,
)
_TOO_LARGE = "message larger than max"


def translate(failure: "grpc.aio.AioRpcError", address: str) -> FilaError:
    """The error that a failed call stands for."""
    code: str = failure.code().name
    text: str = failure.details() or ""
    kind = _kind(failure)
    if not kind and (code == "UNAVAILABLE" or _NO_CHANNEL in text or text == _LOST_WHILE_SENDING):
        return _unavailable(text, address)
    if code == "CANCELLED":
        return OutcomeUnknownError(f"the call to {address} was cancelled before its answer came")
    if code == "DEADLINE_EXCEEDED" and not kind:
        return DeadlineError(f"the broker at {address} did not answer in time")
    if code == "RESOURCE_EXHAUSTED" and _TOO_LARGE in text:
        return InvalidArgumentError(f"the request is too large for the broker: {text}")
    if code == "UNKNOWN" and not kind:
        return error_of("INTERNAL", text or "the broker failed without saying why")
    return error_of(code, text, kind)


def _unavailable(text: str, address: str) -> FilaError:
    if any(words in text for words in _NEVER_SENT):
        return UnreachableError(
            f"no broker answers at {address}; start one with fila-server, or check the address"
        )
    return OutcomeUnknownError(
        f"the connection to {address} was lost before the answer came: it may or may not have "
        "happened"
    )


def _kind(failure: "grpc.aio.AioRpcError") -> str:
    metadata = cast("Iterable[tuple[str, str | bytes]]", failure.trailing_metadata() or ())
    kind = dict(metadata).get(KIND_KEY, "")
    return kind if isinstance(kind, str) else ""


def is_worth_repeating(error: FilaError) -> bool:
    """Whether the same request may succeed a little later."""
    return isinstance(
        error,
        UnreachableError | ShuttingDownError | DeadlineError | ExhaustedError | OutcomeUnknownError,
    )


def may_have_happened(error: FilaError) -> bool:
    """Whether the request may have reached the broker and been carried out."""
    return isinstance(error, OutcomeUnknownError | DeadlineError)
