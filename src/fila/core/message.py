"""A message that is more than a number in a lane: leased, delayed, or ready with a past.

A message that waits as it was accepted has no object; its place in a lane says all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fila.core.records import Status

if TYPE_CHECKING:
    from fila.core.queue import Queue
    from fila.model import DeadLetter, Spec


@dataclass(slots=True, eq=False)
class Message:
    """Mutable; owned by one queue."""

    queue: Queue
    spec: Spec
    sequence: int
    place: int
    status: Status
    attempts: int = 0
    delivered: bool = False
    # On the clock that `wall_timed` names: end of the lease, or when the delay is over.
    due_ns: int = 0
    due_wall_ns: int = 0
    span_ns: int = 0
    wall_timed: bool = False
    expires_at_ns: int = 0
    token: int = 0
    # 0: nobody's stream.
    consumer: int = 0
    leased_at_ns: int = 0
    last_error: str = ""
    dead: DeadLetter | None = None
