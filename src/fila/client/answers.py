"""What the broker answered, decoded: ids, and an error for each item that was refused."""

from functools import lru_cache

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
    results: list[str | FilaError] = [*id_texts(response.message_ids)]
    for error in response.errors:
        results[error.index] = item_error(error)
    return results


def id_texts(packed: bytes) -> list[str]:
    """Ids in their usual form, from 16 bytes each."""
    digits = packed.hex()
    return [
        f"{_head(digits[at : at + 16])}{digits[at + 16 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, len(digits), _ID_DIGITS)
    ]


@lru_cache(maxsize=256)
def _head(high: str) -> str:
    """The first half of an id; those of a batch share it."""
    return f"{high[:8]}-{high[8:12]}-{high[12:]}-"
