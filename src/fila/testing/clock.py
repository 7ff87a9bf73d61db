"""A clock that stands still until it is told to go on."""

import threading
import time

_NS_PER_S = 1_000_000_000


class ManualClock:
    """Both clocks of a broker. It starts at the present, so that ids look like ids."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now_ns = time.monotonic_ns()
        self._wall_ns = time.time_ns()

    def now_ns(self) -> int:
        """What leases and delays are measured by."""
        with self._lock:
            return self._now_ns

    def wall_ns(self) -> int:
        """What `deliver_at` and times to live are measured by."""
        with self._lock:
            return self._wall_ns

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError("time passes forwards; jump() moves the wall clock alone")
        with self._lock:
            self._now_ns += round(seconds * _NS_PER_S)
            self._wall_ns += round(seconds * _NS_PER_S)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forwards or back, as an administrator may; no time passes."""
        with self._lock:
            self._wall_ns += round(seconds * _NS_PER_S)
