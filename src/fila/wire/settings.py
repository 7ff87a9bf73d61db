"""A queue's settings between `QueueConfig` and `QueueSettings`, checked on the way in."""

import math
from dataclasses import replace

from fila.errors import InvalidArgumentError
from fila.model import (
    DELAY_MAX_MS,
    VISIBILITY_TIMEOUT_MIN_MS,
    QueueSettings,
)
from fila.wire._pb import admin_pb2 as pb

_MAX_DEPTH_MAX = 1 << 62
_BACKOFF_MAX = 1000.0
_QUANTUM_MAX = 1_000_000
# What one call of a script may take. Other queues' scripts wait for it meanwhile, and the more
# memory a script may fill, the longer one instruction of it can take.
HOOK_TIMEOUT_MAX_MS = 1000
HOOK_MEMORY_MIN_BYTES = 64 * 1024
HOOK_MEMORY_MAX_BYTES = 4 * 1024 * 1024
_SCRIPTS = ("on_enqueue_script", "on_failure_script")
_PLAIN = (
    "max_attempts",
    "max_depth",
    "retry_delay_ms",
    "retry_delay_max_ms",
    "quantum",
    "hook_timeout_ms",
    "hook_memory_bytes",
)
_HIGHEST = {
    "hook_timeout_ms": HOOK_TIMEOUT_MAX_MS,
    "hook_memory_bytes": HOOK_MEMORY_MAX_BYTES,
    "max_depth": _MAX_DEPTH_MAX,
    "retry_delay_ms": DELAY_MAX_MS,
    "retry_delay_max_ms": DELAY_MAX_MS,
    "quantum": _QUANTUM_MAX,
}


def merged_settings(
    settings: QueueSettings, config: pb.QueueConfig, *, defaults: QueueSettings, in_dlq: bool
) -> QueueSettings:
    """The settings with what the config sets; what it leaves unset stays."""
    if in_dlq and config.HasField("max_attempts") and config.max_attempts:
        raise InvalidArgumentError("a dead-letter queue has no max_attempts; leave it unset")
    changes: dict[str, int | float | str] = {
        name: _checked(config, name) for name in _PLAIN if config.HasField(name)
    }
    # Whether a script is one is for those to say who compile it.
    changes |= {name: getattr(config, name) for name in _SCRIPTS if config.HasField(name)}
    if config.HasField("visibility_timeout_ms"):
        changes["visibility_timeout_ms"] = _visibility_timeout_ms(
            config.visibility_timeout_ms, defaults
        )
    if config.HasField("retry_backoff"):
        changes["retry_backoff"] = _backoff(config.retry_backoff)
    if in_dlq:
        changes["max_attempts"] = 0
    return replace(settings, **changes)  # type: ignore[arg-type]


def config_of(settings: QueueSettings) -> pb.QueueConfig:
    """The settings as a config in which every field is set, scripts only when there are some."""
    return pb.QueueConfig(
        on_enqueue_script=settings.on_enqueue_script or None,
        on_failure_script=settings.on_failure_script or None,
        visibility_timeout_ms=settings.visibility_timeout_ms,
        max_attempts=settings.max_attempts,
        max_depth=settings.max_depth,
        retry_delay_ms=settings.retry_delay_ms,
        retry_backoff=settings.retry_backoff,
        retry_delay_max_ms=settings.retry_delay_max_ms,
        quantum=settings.quantum,
        hook_timeout_ms=settings.hook_timeout_ms,
        hook_memory_bytes=settings.hook_memory_bytes,
    )


def _checked(config: pb.QueueConfig, name: str) -> int:
    value: int = getattr(config, name)
    highest = _HIGHEST.get(name)
    if highest is not None and value > highest:
        raise InvalidArgumentError(f"{name} is {value}; it must be at most {highest}")
    if name == "hook_memory_bytes" and 0 < value < HOOK_MEMORY_MIN_BYTES:
        raise InvalidArgumentError(
            f"{name} is {value}; it must be 0 for the server's, or at least {HOOK_MEMORY_MIN_BYTES}"
        )
    return value


def _visibility_timeout_ms(value: int, defaults: QueueSettings) -> int:
    if value == 0:
        return defaults.visibility_timeout_ms
    if not VISIBILITY_TIMEOUT_MIN_MS <= value <= DELAY_MAX_MS:
        raise InvalidArgumentError(
            f"visibility_timeout_ms is {value}; it must be 0 for the default, or from "
            f"{VISIBILITY_TIMEOUT_MIN_MS} to {DELAY_MAX_MS}"
        )
    return value


def _backoff(value: float) -> float:
    if not math.isfinite(value) or not 1.0 <= value <= _BACKOFF_MAX:
        raise InvalidArgumentError(
            f"retry_backoff is {value}; it must be a number from 1 to {_BACKOFF_MAX:.0f}"
        )
    return value
