"""The frozen values that every layer shares: what a message asks for, how a queue is set."""

from dataclasses import dataclass, field
from enum import Enum, IntEnum

DLQ_SUFFIX = ".dlq"
DEFAULT_FAIRNESS_KEY = "default"
DEFAULT_CREDIT = 256
WEIGHT_MAX = 10_000
COST_MAX = 10_000
PRIORITY_MAX = 255
# A hundred years: a longer delay is a mistake, and stays far from the end of 64 bits.
DELAY_MAX_MS = 100 * 365 * 24 * 3600 * 1000
VISIBILITY_TIMEOUT_MIN_MS = 1000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Spec:
    """What the scheduler knows about a message. Interned: equal specs should be one object."""

    fairness_key: str = DEFAULT_FAIRNESS_KEY
    weight: int = 1
    throttle_keys: tuple[str, ...] = ()
    priority: int = 0
    cost: int = 1
    # Worked out once: lanes, and what is encoded, are looked up by it for each message.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = (self.fairness_key, self.weight, self.throttle_keys, self.priority, self.cost)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    def ruled(
        self,
        *,
        fairness_key: str | None,
        weight: int | None,
        throttle_keys: tuple[str, ...] | None,
        priority: int | None,
        cost: int | None = None,
    ) -> "Spec":
        """The same, but for what a script has decided; None where it says nothing."""
        return Spec(
            fairness_key=self.fairness_key if fairness_key is None else fairness_key,
            weight=self.weight if weight is None else weight,
            throttle_keys=self.throttle_keys if throttle_keys is None else throttle_keys,
            priority=self.priority if priority is None else priority,
            cost=self.cost if cost is None else cost,
        )


@dataclass(frozen=True, slots=True)
class Timing:
    """When a message may first be delivered, and until when. Only unusual messages have one."""

    delay_ms: int = 0
    deliver_at_ns: int | None = None
    ttl_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """How one queue behaves. The defaults are the broker's."""

    on_enqueue_script: str = ""
    on_failure_script: str = ""
    visibility_timeout_ms: int = 30_000
    max_attempts: int = 20
    max_depth: int = 0
    retry_delay_ms: int = 1000
    retry_backoff: float = 2.0
    retry_delay_max_ms: int = 300_000
    # 0: the server's, as in the next two.
    quantum: int = 0
    # What one call of a script may take: time, and memory above what the script itself holds.
    hook_timeout_ms: int = 0
    hook_memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a request may ask for; checked before anything is stored."""

    message_bytes_max: int = 4 * 1024 * 1024
    headers_max: int = 128
    header_bytes_max: int = 8 * 1024
    key_bytes_max: int = 512
    throttle_keys_max: int = 16
    queue_name_bytes_max: int = 251
    batch_messages_max: int = 10_000
    config_key_bytes_max: int = 256
    config_value_bytes_max: int = 1024
    error_bytes_max: int = 4096
    credit_max: int = 65_536
    # Commands that wait for the core; above it, RESOURCE_EXHAUSTED.
    commands_waiting_max: int = 10_000
    script_bytes_max: int = 64 * 1024


class Reason(IntEnum):
    """Why a message was dead-lettered."""

    REJECTED = 1
    MAX_ATTEMPTS = 2
    EXPIRED = 3

    @property
    def label(self) -> str:
        """The name on the wire."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """What a dead letter gained."""

    reason: Reason
    last_error: str
    source_queue: str
    dead_at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueDecision:
    """What `on_enqueue` said of a message; None where it said nothing."""

    fairness_key: str | None = None
    weight: int | None = None
    throttle_keys: tuple[str, ...] | None = None
    cost: int | None = None
    priority: int | None = None
    delay_ms: int | None = None


class FailureAction(Enum):
    """What `on_failure` wants done with a message."""

    RETRY = "retry"
    DEAD_LETTER = "dlq"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDecision:
    """What `on_failure` said of a failed delivery; None where it said nothing."""

    action: FailureAction | None = None
    delay_ms: int | None = None
    fairness_key: str | None = None
    weight: int | None = None
    throttle_keys: tuple[str, ...] | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class ProducerSequence:
    """Names one enqueue of one producer, so that a repeat is recognised."""

    producer: bytes
    sequence: int


@dataclass(frozen=True, slots=True)
class ItemError:
    """One item of a batch that was refused, by gRPC status name."""

    index: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an enqueue of `count` items came to: ids `first_seq`… for those not in `errors`."""

    id_high: int
    first_seq: int
    count: int
    at_ns: int
    errors: tuple[ItemError, ...] = field(default=())


def is_dlq(queue: str) -> bool:
    """Whether the name is a dead-letter queue's."""
    return queue.endswith(DLQ_SUFFIX)
