"""A token bucket: how much it holds now, and when it will hold more.

Levels are whole numbers of a very small unit, so that nothing is rounded and no limit is passed by
a hair. What is written down of a level may be lower than the level, by a small margin: so a busy
bucket is not written for each token, and what a restart reads back is never too much.
"""

from __future__ import annotations

from collections import OrderedDict
from fractions import Fraction
from typing import TYPE_CHECKING

from fila.model import NS_PER_S

if TYPE_CHECKING:
    from fila.core.claim import Claim
    from fila.core.line import Line
    from fila.core.queue import Queue

# One token.
ONE = 10**18
_NANO = 10**9
# This share of what a bucket holds, or gains in a second if that is less, a restart may cost. To
# start takes about as long as it takes to gain that again.
_MARGIN_SHARE = 2
# More than anything: the tokens of a bucket whose limit was taken away, the wait at rate 0.
_NO_LIMIT = 1 << 200


class Bucket:
    """One throttle key's tokens, shared by all queues."""

    __slots__ = (
        "_cap",
        "_per_ns",
        "_withheld",
        "at_ns",
        "burst",
        "claims",
        "due_ns",
        "held",
        "lines",
        "margin",
        "name",
        "rate",
    )

    def __init__(self, name: str, *, rate: float, burst: float, now_ns: int) -> None:
        self.name = name
        self._set_limit(rate, burst)
        # What it had to give at a time, and what it keeps to itself while its rate is 0.
        self.held = 0
        self.at_ns = now_ns
        self._withheld = 0
        self._put(self._cap)
        # How much lower than the level is what is written down.
        self.margin = 0
        # Who waits for its tokens, and who has first call on one, in turn.
        self.lines: dict[Queue, Line] = {}
        self.claims: OrderedDict[Claim, None] = OrderedDict()
        # When it is to be looked at again.
        self.due_ns: int | None = None

    @property
    def first_claim(self) -> Claim | None:
        """Who has first call on a token."""
        return next(iter(self.claims), None)

    def level(self, now_ns: int) -> int:
        """What it has to give."""
        passed = now_ns - self.at_ns
        if passed <= 0:
            return self.held
        self.at_ns = now_ns
        level = self.held + passed * self._per_ns
        over = level - self._cap
        if over > 0:
            # What is written down goes on growing up to the brim.
            self.margin = self.margin - over if self.margin > over else 0
            level = self._cap
        self.held = level
        return level

    def shown(self, now_ns: int) -> float:
        """How many tokens it has to give, for people; changes nothing."""
        passed = max(0, now_ns - self.at_ns)
        return min(self._cap, self.held + passed * self._per_ns) / ONE

    def tokens(self, now_ns: int) -> int:
        """How many whole tokens it holds."""
        return self.level(now_ns) // ONE

    def take(self) -> bool:
        """Take a token that is known to be there; whether the level must be written down."""
        self.held -= ONE
        self.margin -= ONE
        return self.margin < 0

    def give_back(self) -> None:
        """A token that was taken at this very time was not used."""
        self.held += ONE
        self.margin += ONE

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
        passed = max(0, now_ns - self.at_ns)
        return min(self._cap, self.held + passed * self._per_ns)

    def supplies_in_ns(self, now_ns: int, tokens: int) -> int | None:
        """How long until so many tokens can have been taken one by one; None for never."""
        short = tokens * ONE - self.level_at(now_ns)
        if short <= 0:
            return 0
        return -(-short // self._per_ns) if self._per_ns else None

    def regain_ns(self, now_ns: int) -> int:
        """How long until it holds a token again, if it gives one away now."""
        short = 2 * ONE - self.level(now_ns)
        if short <= 0:
            return 0
        return -(-short // self._per_ns) if self._per_ns else _NO_LIMIT

    def configure(self, *, rate: float, burst: float, now_ns: int) -> None:
        """Change the limit: what is held stays, as far as it fits."""
        level = self.level(now_ns) + self._withheld
        self._set_limit(rate, burst)
        self._put(level)

    def restore(self, nano_tokens: int) -> None:
        """Take up a level from before."""
        self._put(nano_tokens * _NANO)

    def note_level(self, now_ns: int) -> int:
        """What to write down, in billionths of a token: no more than it holds."""
        level = self.level(now_ns) + self._withheld
        nano_tokens = max(0, level - min(self._cap, self._per_ns * NS_PER_S) // _MARGIN_SHARE)
        nano_tokens //= _NANO
        self.margin = level - nano_tokens * _NANO
        return nano_tokens

    def exact_level(self, now_ns: int) -> int:
        """What it holds, in billionths of a token."""
        return (self.level(now_ns) + self._withheld) // _NANO

    def is_full(self, now_ns: int) -> bool:
        """Whether it holds all that it can."""
        return self.level(now_ns) + self._withheld == self._cap

    def lift(self) -> None:
        """There is no limit any more."""
        self._per_ns = self._withheld = 0
        self._cap = self.held = _NO_LIMIT

    def refilled(self, nano_tokens: int, elapsed_ns: int) -> int:
        """What a level from before has grown to, in billionths of a token."""
        return min(nano_tokens * _NANO + elapsed_ns * self._per_ns, self._cap) // _NANO

    def _set_limit(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        # Billionths of a token a second are units a nanosecond. Of the number as it was written,
        # rounded down: its nearest float may be greater.
        self._per_ns = int(Fraction(str(rate)) * NS_PER_S)
        self._cap = int(Fraction(str(burst)) * _NANO) * _NANO

    def _put(self, level: int) -> None:
        """Hold so much, as far as it fits; at rate 0 it keeps what it holds to itself."""
        level = min(level, self._cap)
        self.held, self._withheld = (level, 0) if self.rate else (0, level)
        self.margin = 0
