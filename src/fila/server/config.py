"""What can be configured, with its defaults. Where the values come from is `sources`' business."""

from dataclasses import dataclass, field
from pathlib import Path

from fila.model import VISIBILITY_TIMEOUT_MIN_MS, Limits, QueueSettings
from fila.wire.settings import HOOK_MEMORY_MAX_BYTES, HOOK_MEMORY_MIN_BYTES, HOOK_TIMEOUT_MAX_MS

DEFAULT_ADDR = "127.0.0.1:5555"
DEFAULT_DATA_DIR = "./fila-data"
# gRPC's cap on one request; a message must fit with room to spare.
REQUEST_BYTES_MAX = 64 * 1024 * 1024
MESSAGE_BYTES_HIGHEST = REQUEST_BYTES_MAX // 2
_DAY_MS = 24 * 3600 * 1000


def _number(default: int, low: int, high: int) -> int:
    found: int = field(default=default, metadata={"low": low, "high": high})
    return found


def _choice(default: str, *choices: str) -> str:
    found: str = field(default=default, metadata={"choices": choices})
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSection:
    """The process."""

    listen_addr: str = field(default=DEFAULT_ADDR, metadata={"form": "host:port"})
    data_dir: str = field(default=DEFAULT_DATA_DIR, metadata={"form": "path"})
    # After SIGTERM, for what is in flight.
    shutdown_timeout_ms: int = _number(10_000, 0, _DAY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSection:
    """Defaults of scheduling."""

    quantum: int = _number(1, 1, 1_000_000)
    visibility_timeout_ms: int = _number(30_000, VISIBILITY_TIMEOUT_MIN_MS, 365 * _DAY_MS)
    # Means nothing here: leases are checked on every pass.
    lease_expiry_check_interval_ms: int = _number(0, 0, _DAY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LuaSection:
    """What a call of a script may take, where its queue does not say; when it is left out."""

    default_timeout_ms: int = _number(10, 1, HOOK_TIMEOUT_MAX_MS)
    default_memory_limit_bytes: int = _number(1 << 20, HOOK_MEMORY_MIN_BYTES, HOOK_MEMORY_MAX_BYTES)
    circuit_breaker_threshold: int = _number(3, 1, 1000)
    circuit_breaker_cooldown_ms: int = _number(10_000, 1, _DAY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySection:
    """Where metrics go; nothing reads it yet."""

    otlp_endpoint: str = ""
    service_name: str = "fila"
    metrics_interval_ms: int = _number(10_000, 100, _DAY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSection:
    """The disk."""

    fsync: str = _choice("always", "always", "interval", "never")
    # With fsync = "interval".
    fsync_interval_ms: int = _number(100, 1, 60_000)
    # Enqueue is refused below it. -1: 1 GiB or 5 % of the filesystem, whichever is less.
    min_free_bytes: int = _number(-1, -1, 1 << 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsSection:
    """The journal; it has no settings yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingSection:
    """What is written to stderr."""

    level: str = _choice("info", "debug", "info", "warning", "error")
    # auto: text on a terminal, JSON lines elsewhere.
    format: str = _choice("auto", "auto", "json", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything."""

    server: ServerSection = field(default_factory=ServerSection)
    scheduler: SchedulerSection = field(default_factory=SchedulerSection)
    lua: LuaSection = field(default_factory=LuaSection)
    telemetry: TelemetrySection = field(default_factory=TelemetrySection)
    storage: StorageSection = field(default_factory=StorageSection)
    limits: Limits = field(default_factory=Limits)
    events: EventsSection = field(default_factory=EventsSection)
    logging: LoggingSection = field(default_factory=LoggingSection)

    @property
    def data_path(self) -> Path:
        """The data directory."""
        return Path(self.server.data_dir).expanduser()

    @property
    def queue_defaults(self) -> QueueSettings:
        """What a queue gets that says nothing."""
        return QueueSettings(visibility_timeout_ms=self.scheduler.visibility_timeout_ms)


# Bounds of the settings whose dataclass belongs to the model.
LIMIT_BOUNDS = {
    "message_bytes_max": (1, MESSAGE_BYTES_HIGHEST),
    "headers_max": (0, 10_000),
    "header_bytes_max": (1, MESSAGE_BYTES_HIGHEST),
    "key_bytes_max": (1, 4096),
    "throttle_keys_max": (0, 256),
    # `.dlq` must fit into what storage keeps.
    "queue_name_bytes_max": (1, 4096),
    "batch_messages_max": (1, 100_000),
    "config_key_bytes_max": (1, 4096),
    "config_value_bytes_max": (1, 1 << 20),
    "error_bytes_max": (0, 64 * 1024),
    "credit_max": (1, 1_000_000),
    "commands_waiting_max": (1, 10_000_000),
    "script_bytes_max": (1, 16 << 20),
}
