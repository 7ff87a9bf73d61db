"""Errors ↔ gRPC status codes, in both directions, and nowhere else."""

from fila import errors

# The numbers are gRPC's.
CODE_NUMBERS = {
    "UNKNOWN": 2,
    "INVALID_ARGUMENT": 3,
    "DEADLINE_EXCEEDED": 4,
    "NOT_FOUND": 5,
    "ALREADY_EXISTS": 6,
    "RESOURCE_EXHAUSTED": 8,
    "FAILED_PRECONDITION": 9,
    "UNIMPLEMENTED": 12,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
    "DATA_LOSS": 15,
}
CODE_NAMES = {number: name for name, number in CODE_NUMBERS.items()}


_BY_CODE: dict[str, type[errors.FilaError]] = {
    "INVALID_ARGUMENT": errors.InvalidArgumentError,
    "DEADLINE_EXCEEDED": errors.DeadlineError,
    "NOT_FOUND": errors.NotFoundError,
    "ALREADY_EXISTS": errors.QueueExistsError,
    "RESOURCE_EXHAUSTED": errors.ExhaustedError,
    "FAILED_PRECONDITION": errors.PreconditionError,
    "UNIMPLEMENTED": errors.UnsupportedError,
    "UNAVAILABLE": errors.UnavailableError,
    "UNKNOWN": errors.OutcomeUnknownError,
}


# Trailing metadata of a refused call: the class, where the status alone says less.
KIND_KEY = "fila-error"
_BY_KIND: dict[str, type[errors.FilaError]] = {
    kind.__name__: kind
    for kind in (
        errors.QueueNotFoundError,
        errors.MessageNotFoundError,
        errors.LeaseNotFoundError,
        errors.ShuttingDownError,
    )
}


def error_of(code: str, text: str, kind: str = "") -> errors.FilaError:
    """The error that a status stands for, as a client raises it, in the broker's own words."""
    error_class = _BY_KIND.get(kind) or _BY_CODE.get(code, errors.StorageError)
    error = error_class.__new__(error_class)
    Exception.__init__(error, text)
    return error
