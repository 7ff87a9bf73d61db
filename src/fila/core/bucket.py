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
        "_size",
        "burst",
        "cap",
        "claims",
        "due_ns",
        "full_at",
        "lines",
        "name",
        "noted_at",
        "per_ns",
        "rate",
    )

    def __init__(self, name: str, *, rate: float, burst: float, now_ns: int) -> None:
        self.name = name
        # Its level is not kept, but when it will be full: that changes with a token, not with time.
        # Its time runs in units: so many of them pass in a nanosecond as it gains.
        self.full_at = 0
        # The same of what is written down, which must never be earlier.
        self.noted_at = 0
        self._set_limit(rate, burst)
        self._put(self._size, now_ns)
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
        """What it has to give: nothing while its rate is 0."""
        return self.cap - max(0, self.full_at - now_ns * self.per_ns) if self.cap else 0

    def tokens(self, now_ns: int) -> int:
        """How many whole tokens it holds."""
        return self.level(now_ns) // ONE

    def take(self, now_ns: int) -> bool:
        """Take a token that is known to be there; whether the level must be written down."""
        self.full_at = max(self.full_at, now_ns * self.per_ns) + ONE
        return self.full_at > self.noted_at

    def give_back(self) -> None:
        """A token that was taken at this very time was not used."""
        self.full_at -= ONE

    def ready_in_ns(self, now_ns: int, tokens: int = 1) -> int | None:
        """How long until it holds so many tokens; None for never, as things are."""
        wanted = tokens * ONE
        short = wanted - self.level(now_ns)
        if short <= 0:
            return 0
        if wanted > self.cap or not self.per_ns:
            return None
        return -(-short // self.per_ns)

    def supplies_in_ns(self, now_ns: int, tokens: int) -> int | None:
        """How long until so many tokens can have been taken one by one; None for never."""
        short = tokens * ONE - self.level(now_ns)
        if short <= 0:
            return 0
        return -(-short // self.per_ns) if self.per_ns else None

    def regain_ns(self, now_ns: int) -> int:
        """How long until it holds a token again, if it gives one away now."""
        short = 2 * ONE - self.level(now_ns)
        if short <= 0:
            return 0
        return -(-short // self.per_ns) if self.per_ns else _NO_LIMIT

    def configure(self, *, rate: float, burst: float, now_ns: int) -> None:
        """Change the limit: what is held stays, as far as it fits."""
        level = self._held(now_ns)
        self._set_limit(rate, burst)
        self._put(level, now_ns)

    def restore(self, nano_tokens: int, now_ns: int) -> None:
        """Take up a level from before."""
        self._put(nano_tokens * _NANO, now_ns)

    def note_level(self, now_ns: int) -> int:
        """What to write down, in billionths of a token: no more than it holds."""
        margin = min(self._size, self.per_ns * NS_PER_S) // _MARGIN_SHARE
        nano_tokens = max(0, self._held(now_ns) - margin) // _NANO
        self.noted_at = now_ns * self.per_ns + self._size - nano_tokens * _NANO
        return nano_tokens

    def exact_level(self, now_ns: int) -> int:
        """What it holds, in billionths of a token."""
        return self._held(now_ns) // _NANO

    def is_full(self, now_ns: int) -> bool:
        """Whether it holds all that it can."""
        return self._held(now_ns) == self._size

    def lift(self) -> None:
        """There is no limit any more."""
        self.per_ns = self.full_at = 0
        self.cap = self._size = _NO_LIMIT

    def refilled(self, nano_tokens: int, elapsed_ns: int) -> int:
        """What a level from before has grown to, in billionths of a token."""
        return min(nano_tokens * _NANO + elapsed_ns * self.per_ns, self._size) // _NANO

    def _set_limit(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        # Billionths of a token a second are units a nanosecond. Of the number as it was written,
        # rounded down: its nearest float may be greater.
        self.per_ns = int(Fraction(str(rate)) * NS_PER_S)
        self._size = int(Fraction(str(burst)) * _NANO) * _NANO
        # At rate 0 it keeps to itself what it holds.
        self.cap = self._size if rate else 0

    def _held(self, now_ns: int) -> int:
        """What it holds, whether or not it gives it."""
        return self._size - max(0, self.full_at - now_ns * self.per_ns)

    def _put(self, level: int, now_ns: int) -> None:
        """Hold so much, as far as it fits: what would be full before now is full."""
        self.full_at = now_ns * self.per_ns + self._size - level
        self.noted_at = self.full_at
