"""The error tree, split by what the caller can do about it.

    FilaError
    ├── RejectedError           sending it again unchanged is useless
    │   ├── InvalidArgumentError
    │   │   └── ScriptError
    │   ├── NotFoundError
    │   │   ├── QueueNotFoundError
    │   │   ├── MessageNotFoundError
    │   │   └── LeaseNotFoundError
    │   ├── QueueExistsError
    │   ├── PreconditionError
    │   └── UnsupportedError
    ├── UnavailableError        trying again later may succeed
    │   ├── UnreachableError
    │   ├── ShuttingDownError
    │   ├── DeadlineError
    │   └── ExhaustedError      the broker is up, but full or busy
    ├── OutcomeUnknownError     it may or may not have happened
    ├── StorageError            the broker's disk failed
    │   ├── CorruptRecordError
    │   └── DataDirectoryError
    └── ConfigError             a setting is wrong; nothing was started

`code` names the gRPC status; `fila.wire.status` is the only place that turns one into the other.
"""

from typing import ClassVar


class FilaError(Exception):
    """The root of everything Fila raises on purpose."""

    code: ClassVar[str] = "INTERNAL"

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles keep the text: some kinds make theirs from what they are given."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[FilaError], args: tuple[object, ...]) -> FilaError:
    error = kind.__new__(kind)
    error.args = args
    return error


class RejectedError(FilaError):
    """The broker understood and refused; the same request will be refused again."""

    code = "FAILED_PRECONDITION"


class InvalidArgumentError(RejectedError):
    """A value is malformed or over a limit, which the text names."""

    code = "INVALID_ARGUMENT"


class ScriptError(InvalidArgumentError):
    """A script can't be used: it does not compile, fails when it is loaded, or is too long."""


class NotFoundError(RejectedError):
    """What the request names does not exist."""

    code = "NOT_FOUND"


class QueueNotFoundError(NotFoundError):
    """No queue has this name."""

    queue: str = ""

    def __init__(self, queue: str) -> None:
        super().__init__(f"queue {queue!r} does not exist; create it first")
        self.queue = queue


class MessageNotFoundError(NotFoundError):
    """No message of the queue that could be meant has this id; the text may say where it is."""

    queue: str = ""
    message_id: str = ""

    def __init__(self, queue: str, message_id: str, where: str = "") -> None:
        more = f": {where}" if where else ""
        super().__init__(f"message {message_id} is not waiting in queue {queue!r}{more}")
        self.queue = queue
        self.message_id = message_id


class LeaseNotFoundError(NotFoundError):
    """The message is not leased, or not to this caller: settled already, expired, or unknown."""

    queue: str = ""

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"no live lease for this message in queue {queue!r}: "
            "it was settled already, or the lease ran out"
        )
        self.queue = queue


class QueueExistsError(RejectedError):
    """A queue of this name is there already."""

    code = "ALREADY_EXISTS"

    queue: str = ""

    def __init__(self, queue: str) -> None:
        super().__init__(f"queue {queue!r} already exists; use update to change it")
        self.queue = queue


class PreconditionError(RejectedError):
    """The state of the broker forbids it; the text says what to change first."""


class UnsupportedError(RejectedError):
    """This broker does not know the call."""

    code = "UNIMPLEMENTED"


class UnavailableError(FilaError):
    """Nothing is wrong with the request; trying again later may succeed."""

    code = "UNAVAILABLE"


class UnreachableError(UnavailableError):
    """No broker answered at the address."""


class ShuttingDownError(UnavailableError):
    """The broker is stopping."""

    def __init__(self) -> None:
        super().__init__("the broker is shutting down; try again when it is back")


class DeadlineError(UnavailableError):
    """The broker did not answer in time."""

    code = "DEADLINE_EXCEEDED"


class ExhaustedError(UnavailableError):
    """A limit of the broker is reached: depth, disk, or what waits for the core or a script."""

    code = "RESOURCE_EXHAUSTED"


class OutcomeUnknownError(FilaError):
    """The connection was lost for good before the answer came: it may or may not have happened."""

    code = "UNKNOWN"


class StorageError(FilaError):
    """The broker's disk failed, or holds what it should not."""


class CorruptRecordError(StorageError):
    """A stored record can't be read."""

    code = "DATA_LOSS"


class DataDirectoryError(StorageError):
    """The data directory can't be used: locked, foreign, or newer than this program."""


class ConfigError(FilaError):
    """A setting is wrong; the text names file, key and what is allowed."""

    code = "INVALID_ARGUMENT"
