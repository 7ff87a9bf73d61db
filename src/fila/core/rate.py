"""How much went by lately: a count that is read often and a past that is kept in two windows."""

from fila.model import NS_PER_S

WINDOW_NS = 5 * NS_PER_S


class Rate:
    """A growing total, and how fast it has grown over the last one or two windows."""

    __slots__ = ("_before", "_start", "total", "window")

    def __init__(self) -> None:
        self.total = 0
        self.window = 0
        # The total when the window began, and how much the window before it added.
        self._start = 0
        self._before = 0

    def add(self, amount: int, window: int) -> None:
        """Count, in the window that `window_at` gave."""
        if window != self.window:
            self.turn(window)
        self.total += amount

    def turn(self, window: int) -> None:
        """Begin another window than that of the last count."""
        self._before = self.total - self._start if window == self.window + 1 else 0
        self._start = self.total
        self.window = window

    def per_second(self, now_ns: int) -> float:
        """The recent rate."""
        window = window_at(now_ns)
        if window > self.window + 1:
            return 0.0
        if window == self.window + 1:
            recent, span = self.total - self._start, WINDOW_NS
        else:
            recent, span = self.total - self._start + self._before, WINDOW_NS if self._before else 0
        return recent * NS_PER_S / max(span + now_ns % WINDOW_NS, NS_PER_S)


def window_at(now_ns: int) -> int:
    """The number of the window that a moment lies in."""
    return now_ns // WINDOW_NS
