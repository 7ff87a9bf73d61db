"""What the broker answered, decoded: ids, and an error for each item that was refused."""

from collections.abc import Iterable

from fila.errors import FilaError, LeaseNotFoundError
from fila.wire._pb import service_pb2 as pb
from fila.wire.status import CODE_NAMES, error_of

_ID_DIGITS = 32


def item_error(error: pb.ItemError, kind: str = "") -> FilaError:
    """The error of one item, as a call of its own would have raised it."""
    return error_of(CODE_NAMES.get(error.code, "INTERNAL"), error.message, kind)


def lease_error(error: pb.ItemError) -> FilaError:
    """The error of one settled delivery; what is not found is its lease."""
    name = CODE_NAMES.get(error.code, "INTERNAL")
    return item_error(error, LeaseNotFoundError.__name__ if name == "NOT_FOUND" else "")


def outcomes(answer: bytes) -> list[str | FilaError]:
    """One id or error for each item, in order."""
    response = pb.EnqueueBatchResponse.FromString(answer)
    results: list[str | FilaError] = list(id_texts(response.message_ids))
    for error in response.errors:
        results[error.index] = item_error(error)
    return results


def id_texts(packed: bytes) -> Iterable[str]:
    """Ids in their usual form, from 16 bytes each."""
    digits = packed.hex()
    head = ""
    last = ""
    for start in range(0, len(digits), _ID_DIGITS):
        high = digits[start : start + 16]
        if high != last:
            # Mostly once: the ids of a batch share their first half.
            head = f"{high[:8]}-{high[8:12]}-{high[12:]}-"
            last = high
        yield f"{head}{digits[start + 16 : start + 20]}-{digits[start + 20 : start + 32]}"
