"""How many unsettled messages a consumer should hold.

Enough that it never waits, and no more than about five milliseconds of work: what is buffered here
can't be given to anyone else, and a quiet tenant's message would wait behind it.
"""

WINDOW_S = 0.005
CREDIT_MAX = 2048
# A handler that takes so many windows is slow, whatever the ones before it were.
_STALL_WINDOWS = 4


class CreditPolicy:
    """Watches how fast one consumer works. `fixed` is a credit that the program chose."""

    __slots__ = ("_busy", "_count", "_handed_at", "credit", "fixed")

    def __init__(self, fixed: int | None = None) -> None:
        self.fixed = fixed
        self.credit = fixed or 1
        self._busy = 0.0
        self._count = 0
        # None: the consumer waits for us, not we for it.
        self._handed_at: float | None = None

    def asked(self, now: float, in_hand: int) -> None:
        """The program wants the next message; it has not settled `in_hand` of those before."""
        if self._handed_at is not None:
            took = now - self._handed_at
            if took >= WINDOW_S:
                # The fast ones before it say nothing about what comes now.
                self._busy, self._count = 0.0, 0
            self._busy += took
            self._count += 1
            self._handed_at = None
        if self.fixed is None:
            if self._count >= self.credit or self._busy >= WINDOW_S:
                self._adapt(in_hand)
            elif in_hand >= self.credit:
                self.credit = min(in_hand + 1, CREDIT_MAX)

    def handed(self, now: float) -> None:
        """The program has it."""
        self._handed_at = now

    def stalled(self, now: float) -> bool:
        """Whether the message in hand takes so long that nothing may wait behind it.

        There is no credit then, until the program asks for the next.
        """
        if self.fixed is not None or self._handed_at is None:
            return False
        if now - self._handed_at < _STALL_WINDOWS * WINDOW_S:
            return False
        self.credit = 0
        return True

    def _adapt(self, in_hand: int) -> None:
        fitting = int(WINDOW_S * self._count / self._busy) if self._busy > 0 else CREDIT_MAX
        # A power of two: the credit then moves seldom.
        ahead = 1 << max(0, fitting.bit_length() - 1)
        wanted = min(in_hand + ahead, CREDIT_MAX)
        if wanted > self.credit:
            self.credit = min(wanted, max(2 * self.credit, in_hand + 1), CREDIT_MAX)
        elif wanted < self.credit:
            self.credit = wanted
        self._busy = 0.0
        self._count = 0
