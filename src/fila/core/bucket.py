"""A token bucket: how much it holds now, and when it will hold more.

Levels are whole numbers of a very small unit, so that nothing is rounded and no limit is passed by
a hair. What is written down of a level may be lower than the level, by a small margin: so a busy
bucket is not written for each token, and what a restart reads back is never too much.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fila.model import NS_PER_S

if TYPE_CHECKING:
    from fila.core.claim import Claim
    from fila.core.line import Line
    from fila.core.queue import Queue

# One token. A rate is kept in billionths of a token per second, which is units per nanosecond.
ONE = 10**18
_RATE_UNITS = NS_PER_S
_NANO = 10**9
# So much of what a bucket holds, or gains in a second, a restart may cost.
_MARGIN_SHARE = 16
# More than anything: the tokens of a bucket whose limit was taken away, the wait at rate 0.
_NO_LIMIT = 1 << 200


class Bucket:
    """One throttle key's tokens, shared by all queues."""

    __slots__ = (
        "_at_ns",
        "_cap",
        "_level",
        "_margin",
        "_per_ns",
        "burst",
        "claims",
        "due_ns",
        "lines",
        "name",
        "rate",
    )

    def __init__(self, name: str, *, rate: float, burst: float, now_ns: int) -> None:
        self.name = name
        self.rate = rate
        self.burst = burst
        self._per_ns = int(rate * _RATE_UNITS)
        self._cap = int(burst * _NANO) * _NANO
        self._level = self._cap
        self._at_ns = now_ns
        # How much lower than the level is what is written down.
        self._margin = 0
        # Who waits for its tokens, and who has first call on one, in turn.
        self.lines: dict[Queue, Line] = {}
        self.claims: deque[Claim] = deque()
        # When it is to be looked at again.
        self.due_ns: int | None = None

    def level(self, now_ns: int) -> int:
        """What it holds."""
        passed = now_ns - self._at_ns
        if passed > 0:
            self._at_ns = now_ns
            level = self._level + passed * self._per_ns
            if level > self._cap:
                # What is written down goes on growing up to the brim.
                self._margin = max(0, self._margin - level + self._cap)
                level = self._cap
            self._level = level
        return self._level

    def tokens(self, now_ns: int) -> int:
        """How many whole tokens it holds."""
        return self.level(now_ns) // ONE

    def take(self) -> bool:
        """Take a token that is known to be there; whether the level must be written down."""
        self._level -= ONE
        self._margin -= ONE
        return self._margin < 0

    def ready_in_ns(self, now_ns: int, tokens: int = 1) -> int | None:
        """How long until it holds so many tokens; None for never, as things are."""
        wanted = tokens * ONE
        short = wanted - self.level(now_ns)
        if short <= 0:
            return 0
        if wanted > self._cap or not self._per_ns:
            return None
        return -(-short // self._per_ns)

    def level_at(self, now_ns: int) -> int:
        """What it will hold at a moment, for those who only look."""
        passed = max(0, now_ns - self._at_ns)
        return min(self._cap, self._level + passed * self._per_ns)

    def supplies_in_ns(self, now_ns: int, tokens: int) -> int | None:
        """How long until so many tokens can have been taken one by one; None for never."""
        short = tokens * ONE - self.level_at(now_ns)
        if short <= 0:
            return 0
        return -(-short // self._per_ns) if self._per_ns else None

    @property
    def interval_ns(self) -> int:
        """How long one token takes to come."""
        return -(-ONE // self._per_ns) if self._per_ns else _NO_LIMIT

    def configure(self, *, rate: float, burst: float, now_ns: int) -> None:
        """Change the limit: what is held stays, as far as it fits."""
        self.level(now_ns)
        self.rate = rate
        self.burst = burst
        self._per_ns = int(rate * _RATE_UNITS)
        self._cap = int(burst * _NANO) * _NANO
        self._level = min(self._level, self._cap)
        self._margin = 0

    def restore(self, nano_tokens: int) -> None:
        """Take up a level from before."""
        self._level = min(nano_tokens * _NANO, self._cap)
        self._margin = 0

    def note_level(self, now_ns: int) -> int:
        """What to write down, in billionths of a token: no more than it holds."""
        level = self.level(now_ns)
        nano_tokens = max(0, level - min(self._cap, self._per_ns * NS_PER_S) // _MARGIN_SHARE)
        nano_tokens //= _NANO
        self._margin = level - nano_tokens * _NANO
        return nano_tokens

    def exact_level(self, now_ns: int) -> int:
        """What it holds, in billionths of a token."""
        return self.level(now_ns) // _NANO

    def lift(self) -> None:
        """There is no limit any more."""
        self._per_ns = 0
        self._cap = self._level = _NO_LIMIT

    def refilled(self, nano_tokens: int, elapsed_ns: int) -> int:
        """What a level from before has grown to, in billionths of a token."""
        return min(nano_tokens * _NANO + elapsed_ns * self._per_ns, self._cap) // _NANO
