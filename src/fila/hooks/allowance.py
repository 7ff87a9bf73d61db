"""How much memory a call gets at first, and how closely it is watched for that.

What one instruction can cost grows with the memory that the script may fill: a garbage collection
at the brim, the hash of a long string. So the more it may hold, the more often somebody looks at
the clock. A call begins with little. If that is not enough it begins again with more, and so do the
calls after it, until the script is loaded anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_FIRST_BYTES = 128 * 1024
_GROWTH = 4
# Bytes times instructions between two looks, for each millisecond of the time limit.
_WORK_PER_MS = 6_400_000
_EVERY_MAX = 500


@dataclass(frozen=True, slots=True)
class Allowance:
    """One step: the memory of a call, and after how many instructions the clock is looked at."""

    memory_bytes: int
    every: int


def steps(memory_bytes: int, *, held_bytes: int, timeout_ms: int) -> Sequence[Allowance]:
    """The steps up to the limit, for a script that holds so much already."""
    sizes = []
    size = _FIRST_BYTES
    while size < memory_bytes:
        sizes.append(size)
        size *= _GROWTH
    sizes.append(memory_bytes)
    return [Allowance(size, _every(size + held_bytes, timeout_ms)) for size in sizes]


def _every(reach_bytes: int, timeout_ms: int) -> int:
    return min(_EVERY_MAX, max(1, _WORK_PER_MS * timeout_ms // reach_bytes))
