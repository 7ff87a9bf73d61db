"""gRPC's failures as Fila's errors."""

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from fila import errors
from fila.client.failures import is_worth_repeating, may_have_happened, translate
from fila.wire.status import KIND_KEY

ADDRESS = "broker.example:5555"


def failure(code: str, details: str = "", kind: str = "") -> AioRpcError:
    trailing = Metadata((KIND_KEY, kind)) if kind else Metadata()
    return AioRpcError(getattr(grpc.StatusCode, code), Metadata(), trailing, details, None)


@pytest.mark.parametrize(
    ("code", "details", "kind", "expected"),
    [
        ("NOT_FOUND", "queue 'q' ...", "QueueNotFoundError", errors.QueueNotFoundError),
        ("NOT_FOUND", "", "", errors.NotFoundError),
        ("ALREADY_EXISTS", "", "", errors.QueueExistsError),
        ("INVALID_ARGUMENT", "", "", errors.InvalidArgumentError),
        ("FAILED_PRECONDITION", "", "", errors.PreconditionError),
        ("RESOURCE_EXHAUSTED", "full", "", errors.ExhaustedError),
        ("RESOURCE_EXHAUSTED", "Received message larger than max", "", errors.InvalidArgumentError),
        ("UNIMPLEMENTED", "", "", errors.UnsupportedError),
        ("UNAVAILABLE", "", "ShuttingDownError", errors.ShuttingDownError),
        ("UNAVAILABLE", "failed to connect to all addresses", "", errors.UnreachableError),
        ("UNAVAILABLE", "errors resolving no.host:1: [...]", "", errors.UnreachableError),
        ("UNKNOWN", "Failed to create channel to 'ipv4:1'", "", errors.UnreachableError),
        ("UNKNOWN", "Exception iterating", "", errors.StorageError),
        ("UNAVAILABLE", "Socket closed", "", errors.OutcomeUnknownError),
        ("INTERNAL", "Internal error from Core", "", errors.OutcomeUnknownError),
        ("DEADLINE_EXCEEDED", "", "", errors.DeadlineError),
        ("CANCELLED", "", "", errors.OutcomeUnknownError),
        ("INTERNAL", "", "", errors.StorageError),
    ],
)
def test_each_status_is_the_error_that_says_what_to_do(
    code: str, details: str, kind: str, expected: type[errors.FilaError]
) -> None:
    assert type(translate(failure(code, details, kind), ADDRESS)) is expected


def test_the_brokers_own_words_are_kept() -> None:
    error = translate(failure("INVALID_ARGUMENT", "weight is 0"), ADDRESS)

    assert str(error) == "weight is 0"


def test_an_unreachable_broker_is_named_with_what_to_do() -> None:
    text = str(translate(failure("UNAVAILABLE", "failed to connect to all addresses"), ADDRESS))

    assert ADDRESS in text
    assert "fila-server" in text


@pytest.mark.parametrize(
    ("error", "repeat", "doubt"),
    [
        (errors.UnreachableError(""), True, False),
        (errors.ShuttingDownError(), True, False),
        (errors.ExhaustedError(""), True, False),
        (errors.DeadlineError(""), True, True),
        (errors.OutcomeUnknownError(""), True, True),
        (errors.InvalidArgumentError(""), False, False),
        (errors.QueueNotFoundError("q"), False, False),
        (errors.StorageError(""), False, False),
    ],
)
def test_only_what_may_succeed_later_is_repeated(
    error: errors.FilaError, repeat: bool, doubt: bool
) -> None:
    assert is_worth_repeating(error) is repeat
    assert may_have_happened(error) is doubt
