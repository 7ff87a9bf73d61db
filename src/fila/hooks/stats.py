"""What is counted of a hook."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HookStats:
    """One script of one queue, since the broker started or the script was set."""

    calls: int = 0
    timeouts: int = 0
    out_of_memory: int = 0
    errors: int = 0
    bad_results: int = 0
    bypassed: int = 0
    clamped: int = 0
    breaker_opened: int = 0
    breaker_open: bool = False
    last_error: str = ""
    median_us: float = 0.0
    p99_us: float = 0.0
