"""When a hook is bypassed: it failed several times in a row, or half of the time."""

from collections import deque

from fila.hooks.calls import BreakerSettings
from fila.model import NS_PER_MS

_RECENT = 20


class Breaker:
    """Opens on failures, stays open for a while, and closes with a clean count."""

    def __init__(self, settings: BreakerSettings) -> None:
        self._threshold = settings.threshold
        self._cooldown_ns = settings.cooldown_ms * NS_PER_MS
        self._open_until_ns = 0
        self._in_a_row = 0
        # Whether each of the last calls failed.
        self._recent: deque[bool] = deque(maxlen=_RECENT)
        self._failed_recently = 0
        self.opened = 0

    def is_open(self, now_ns: int) -> bool:
        """Whether calls are bypassed now."""
        return now_ns < self._open_until_ns

    def succeeded(self, count: int, now_ns: int) -> bool:
        """So many calls in a row went well; whether it opened all the same."""
        self._in_a_row = 0
        for _ in range(min(count, _RECENT)):
            self._remember(failed=False)
            if self._is_flaky():
                return self._open(now_ns)
        return False

    def failed(self, now_ns: int) -> bool:
        """A call failed; whether that opened it."""
        self._in_a_row += 1
        self._remember(failed=True)
        if self._in_a_row < self._threshold and not self._is_flaky():
            return False
        return self._open(now_ns)

    def _is_flaky(self) -> bool:
        return len(self._recent) == _RECENT and 2 * self._failed_recently >= _RECENT

    def _open(self, now_ns: int) -> bool:
        # What was on its way when it opened is not a reason to open again.
        if self.is_open(now_ns):
            return False
        self._open_until_ns = now_ns + self._cooldown_ns
        self.opened += 1
        self._forget()
        return True

    def _remember(self, *, failed: bool) -> None:
        if len(self._recent) == _RECENT:
            self._failed_recently -= self._recent[0]
        self._recent.append(failed)
        self._failed_recently += failed

    def _forget(self) -> None:
        self._in_a_row = 0
        self._recent.clear()
        self._failed_recently = 0
