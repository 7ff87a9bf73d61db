"""A lane: the waiting messages of one queue that are alike in all that scheduling looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fila.core.fifo import Fifo

if TYPE_CHECKING:
    from fila.core.claim import Claim
    from fila.core.key import Key
    from fila.core.line import Line, Waiter
    from fila.model import Spec


class Lane:
    """Messages of one spec, in order of place."""

    __slots__ = ("claim", "fifo", "key", "limits", "limits_version", "spec", "waiter")

    def __init__(self, spec: Spec, key: Key) -> None:
        self.spec = spec
        self.key = key
        self.fifo = Fifo()
        # Where its throttle keys' buckets keep this queue's line, as of a version of all limits.
        self.limits: tuple[Line, ...] = ()
        self.limits_version = 0
        # Set while it stands in line for a token: it delivers through this then.
        self.waiter: Waiter | None = None
        self.claim: Claim | None = None

    @property
    def is_open(self) -> bool:
        """Whether it may deliver by itself."""
        return self.waiter is None and len(self.fifo) > 0

    def first_place(self) -> int:
        """The place of its next message, 0 if it does not deliver by itself."""
        return self.fifo.peek() if self.waiter is None and len(self.fifo) else 0

    def head(self) -> Lane:
        """The lane of the next message."""
        return self
