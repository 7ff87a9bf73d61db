"""What a hook is asked about, and within which limits."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias


class HookKind(Enum):
    """Which of a queue's scripts; the value is the name of its Lua function."""

    ON_ENQUEUE = "on_enqueue"
    ON_FAILURE = "on_failure"


# A message that arrived: its outline (`fila.wire.outline`) and nothing around it, for there is one
# for each message.
EnqueueCall: TypeAlias = bytes


class FailureCall(NamedTuple):
    """A delivery that failed."""

    outline: bytes
    message_id: str
    attempts: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HookLimits:
    """What one call may take: CPU time, and memory above what the script itself holds."""

    timeout_ms: int = 10
    memory_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """After how many failures in a row a hook is bypassed, and for how long."""

    threshold: int = 3
    cooldown_ms: int = 10_000
