"""The two clocks, and the only place of the broker that reads them."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now_ns(self) -> int:
        """Never goes back: for leases, retries and rates."""

    def wall_ns(self) -> int:
        """What time it is, as far as this machine knows: for ids, deliver_at and ttl."""


class SystemClock:
    """The machine's clocks."""

    def now_ns(self) -> int:
        """Nanoseconds from some moment in the past."""
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()


def thread_cpu_ns() -> int:
    """What the calling thread has used of a processor: what a script is charged."""
    return time.thread_time_ns()
