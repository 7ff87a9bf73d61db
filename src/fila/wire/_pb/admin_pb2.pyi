import datetime

from fila.wire._pb import messages_pb2 as _messages_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MessageState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MESSAGE_STATE_UNSPECIFIED: _ClassVar[MessageState]
    MESSAGE_STATE_READY: _ClassVar[MessageState]
    MESSAGE_STATE_DELAYED: _ClassVar[MessageState]
    MESSAGE_STATE_LEASED: _ClassVar[MessageState]

class CauseCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAUSE_CODE_UNSPECIFIED: _ClassVar[CauseCode]
    CAUSE_CODE_DELIVERABLE: _ClassVar[CauseCode]
    CAUSE_CODE_LEASED: _ClassVar[CauseCode]
    CAUSE_CODE_DELAYED: _ClassVar[CauseCode]
    CAUSE_CODE_PAUSED: _ClassVar[CauseCode]
    CAUSE_CODE_NO_CONSUMER: _ClassVar[CauseCode]
    CAUSE_CODE_NO_CREDIT: _ClassVar[CauseCode]
    CAUSE_CODE_THROTTLED: _ClassVar[CauseCode]
    CAUSE_CODE_WAITING_TURN: _ClassVar[CauseCode]
    CAUSE_CODE_EXPIRING: _ClassVar[CauseCode]
    CAUSE_CODE_DEAD_LETTER: _ClassVar[CauseCode]
    CAUSE_CODE_NOTHING_PENDING: _ClassVar[CauseCode]
    CAUSE_CODE_IN_FLIGHT: _ClassVar[CauseCode]
MESSAGE_STATE_UNSPECIFIED: MessageState
MESSAGE_STATE_READY: MessageState
MESSAGE_STATE_DELAYED: MessageState
MESSAGE_STATE_LEASED: MessageState
CAUSE_CODE_UNSPECIFIED: CauseCode
CAUSE_CODE_DELIVERABLE: CauseCode
CAUSE_CODE_LEASED: CauseCode
CAUSE_CODE_DELAYED: CauseCode
CAUSE_CODE_PAUSED: CauseCode
CAUSE_CODE_NO_CONSUMER: CauseCode
CAUSE_CODE_NO_CREDIT: CauseCode
CAUSE_CODE_THROTTLED: CauseCode
CAUSE_CODE_WAITING_TURN: CauseCode
CAUSE_CODE_EXPIRING: CauseCode
CAUSE_CODE_DEAD_LETTER: CauseCode
CAUSE_CODE_NOTHING_PENDING: CauseCode
CAUSE_CODE_IN_FLIGHT: CauseCode

class QueueConfig(_message.Message):
    __slots__ = ("on_enqueue_script", "on_failure_script", "visibility_timeout_ms", "max_attempts", "max_depth", "retry_delay_ms", "retry_backoff", "retry_delay_max_ms", "quantum", "hook_timeout_ms", "hook_memory_bytes")
    ON_ENQUEUE_SCRIPT_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_SCRIPT_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_BACKOFF_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_MAX_MS_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    HOOK_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    HOOK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    on_enqueue_script: str
    on_failure_script: str
    visibility_timeout_ms: int
    max_attempts: int
    max_depth: int
    retry_delay_ms: int
    retry_backoff: float
    retry_delay_max_ms: int
    quantum: int
    hook_timeout_ms: int
    hook_memory_bytes: int
    def __init__(self, on_enqueue_script: _Optional[str] = ..., on_failure_script: _Optional[str] = ..., visibility_timeout_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., max_depth: _Optional[int] = ..., retry_delay_ms: _Optional[int] = ..., retry_backoff: _Optional[float] = ..., retry_delay_max_ms: _Optional[int] = ..., quantum: _Optional[int] = ..., hook_timeout_ms: _Optional[int] = ..., hook_memory_bytes: _Optional[int] = ...) -> None: ...

class CreateQueueRequest(_message.Message):
    __slots__ = ("name", "config")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    name: str
    config: QueueConfig
    def __init__(self, name: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ...) -> None: ...

class CreateQueueResponse(_message.Message):
    __slots__ = ("queue_id",)
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    queue_id: str
    def __init__(self, queue_id: _Optional[str] = ...) -> None: ...

class DeleteQueueRequest(_message.Message):
    __slots__ = ("queue", "keep_dead_letters")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    KEEP_DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    keep_dead_letters: bool
    def __init__(self, queue: _Optional[str] = ..., keep_dead_letters: _Optional[bool] = ...) -> None: ...

class DeleteQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues", "cluster_node_count")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueInfo]
    cluster_node_count: int
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueInfo, _Mapping]]] = ..., cluster_node_count: _Optional[int] = ...) -> None: ...

class QueueInfo(_message.Message):
    __slots__ = ("name", "depth", "in_flight", "active_consumers", "leader_node_id", "paused")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    LEADER_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    name: str
    depth: int
    in_flight: int
    active_consumers: int
    leader_node_id: int
    paused: bool
    def __init__(self, name: _Optional[str] = ..., depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., active_consumers: _Optional[int] = ..., leader_node_id: _Optional[int] = ..., paused: _Optional[bool] = ...) -> None: ...

class SetConfigRequest(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class SetConfigResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetConfigRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class GetConfigResponse(_message.Message):
    __slots__ = ("value", "found")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    value: str
    found: bool
    def __init__(self, value: _Optional[str] = ..., found: _Optional[bool] = ...) -> None: ...

class ListConfigRequest(_message.Message):
    __slots__ = ("prefix",)
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    def __init__(self, prefix: _Optional[str] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class ListConfigResponse(_message.Message):
    __slots__ = ("entries", "total_count")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    total_count: int
    def __init__(self, entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ..., total_count: _Optional[int] = ...) -> None: ...

class DeleteConfigRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class DeleteConfigResponse(_message.Message):
    __slots__ = ("found",)
    FOUND_FIELD_NUMBER: _ClassVar[int]
    found: bool
    def __init__(self, found: _Optional[bool] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("depth", "in_flight", "active_fairness_keys", "active_consumers", "quantum", "per_key_stats", "per_throttle_stats", "leader_node_id", "replication_count", "ready", "delayed", "throttled", "oldest_waiting_ms", "paused", "key_count", "on_enqueue", "on_failure")
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FAIRNESS_KEYS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    PER_KEY_STATS_FIELD_NUMBER: _ClassVar[int]
    PER_THROTTLE_STATS_FIELD_NUMBER: _ClassVar[int]
    LEADER_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAITING_MS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    KEY_COUNT_FIELD_NUMBER: _ClassVar[int]
    ON_ENQUEUE_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    depth: int
    in_flight: int
    active_fairness_keys: int
    active_consumers: int
    quantum: int
    per_key_stats: _containers.RepeatedCompositeFieldContainer[PerFairnessKeyStats]
    per_throttle_stats: _containers.RepeatedCompositeFieldContainer[PerThrottleKeyStats]
    leader_node_id: int
    replication_count: int
    ready: int
    delayed: int
    throttled: int
    oldest_waiting_ms: int
    paused: bool
    key_count: int
    on_enqueue: HookStats
    on_failure: HookStats
    def __init__(self, depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., active_fairness_keys: _Optional[int] = ..., active_consumers: _Optional[int] = ..., quantum: _Optional[int] = ..., per_key_stats: _Optional[_Iterable[_Union[PerFairnessKeyStats, _Mapping]]] = ..., per_throttle_stats: _Optional[_Iterable[_Union[PerThrottleKeyStats, _Mapping]]] = ..., leader_node_id: _Optional[int] = ..., replication_count: _Optional[int] = ..., ready: _Optional[int] = ..., delayed: _Optional[int] = ..., throttled: _Optional[int] = ..., oldest_waiting_ms: _Optional[int] = ..., paused: _Optional[bool] = ..., key_count: _Optional[int] = ..., on_enqueue: _Optional[_Union[HookStats, _Mapping]] = ..., on_failure: _Optional[_Union[HookStats, _Mapping]] = ...) -> None: ...

class HookStats(_message.Message):
    __slots__ = ("calls", "timeouts", "out_of_memory", "errors", "bad_results", "bypassed", "clamped", "breaker_opened", "breaker_open", "last_error", "median_us", "p99_us")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    OUT_OF_MEMORY_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    BAD_RESULTS_FIELD_NUMBER: _ClassVar[int]
    BYPASSED_FIELD_NUMBER: _ClassVar[int]
    CLAMPED_FIELD_NUMBER: _ClassVar[int]
    BREAKER_OPENED_FIELD_NUMBER: _ClassVar[int]
    BREAKER_OPEN_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_US_FIELD_NUMBER: _ClassVar[int]
    P99_US_FIELD_NUMBER: _ClassVar[int]
    calls: int
    timeouts: int
    out_of_memory: int
    errors: int
    bad_results: int
    bypassed: int
    clamped: int
    breaker_opened: int
    breaker_open: bool
    last_error: str
    median_us: float
    p99_us: float
    def __init__(self, calls: _Optional[int] = ..., timeouts: _Optional[int] = ..., out_of_memory: _Optional[int] = ..., errors: _Optional[int] = ..., bad_results: _Optional[int] = ..., bypassed: _Optional[int] = ..., clamped: _Optional[int] = ..., breaker_opened: _Optional[int] = ..., breaker_open: _Optional[bool] = ..., last_error: _Optional[str] = ..., median_us: _Optional[float] = ..., p99_us: _Optional[float] = ...) -> None: ...

class PerFairnessKeyStats(_message.Message):
    __slots__ = ("key", "pending_count", "current_deficit", "weight", "delivered", "delivered_per_second", "share", "weight_share", "in_flight", "oldest_waiting_ms")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_DEFICIT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_SHARE_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAITING_MS_FIELD_NUMBER: _ClassVar[int]
    key: str
    pending_count: int
    current_deficit: int
    weight: int
    delivered: int
    delivered_per_second: float
    share: float
    weight_share: float
    in_flight: int
    oldest_waiting_ms: int
    def __init__(self, key: _Optional[str] = ..., pending_count: _Optional[int] = ..., current_deficit: _Optional[int] = ..., weight: _Optional[int] = ..., delivered: _Optional[int] = ..., delivered_per_second: _Optional[float] = ..., share: _Optional[float] = ..., weight_share: _Optional[float] = ..., in_flight: _Optional[int] = ..., oldest_waiting_ms: _Optional[int] = ...) -> None: ...

class PerThrottleKeyStats(_message.Message):
    __slots__ = ("key", "tokens", "rate_per_second", "burst", "waiting")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    key: str
    tokens: float
    rate_per_second: float
    burst: float
    waiting: int
    def __init__(self, key: _Optional[str] = ..., tokens: _Optional[float] = ..., rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ..., waiting: _Optional[int] = ...) -> None: ...

class RedriveRequest(_message.Message):
    __slots__ = ("dlq_queue", "count")
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    count: int
    def __init__(self, dlq_queue: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class RedriveResponse(_message.Message):
    __slots__ = ("redriven",)
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    redriven: int
    def __init__(self, redriven: _Optional[int] = ...) -> None: ...

class UpdateQueueRequest(_message.Message):
    __slots__ = ("queue", "config")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    queue: str
    config: QueueConfig
    def __init__(self, queue: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ...) -> None: ...

class UpdateQueueResponse(_message.Message):
    __slots__ = ("config",)
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    config: QueueConfig
    def __init__(self, config: _Optional[_Union[QueueConfig, _Mapping]] = ...) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class GetQueueResponse(_message.Message):
    __slots__ = ("config", "paused", "dead_letter_queue")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_QUEUE_FIELD_NUMBER: _ClassVar[int]
    config: QueueConfig
    paused: bool
    dead_letter_queue: str
    def __init__(self, config: _Optional[_Union[QueueConfig, _Mapping]] = ..., paused: _Optional[bool] = ..., dead_letter_queue: _Optional[str] = ...) -> None: ...

class PurgeQueueRequest(_message.Message):
    __slots__ = ("queue", "include_leased")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_LEASED_FIELD_NUMBER: _ClassVar[int]
    queue: str
    include_leased: bool
    def __init__(self, queue: _Optional[str] = ..., include_leased: _Optional[bool] = ...) -> None: ...

class PurgeQueueResponse(_message.Message):
    __slots__ = ("purged",)
    PURGED_FIELD_NUMBER: _ClassVar[int]
    purged: int
    def __init__(self, purged: _Optional[int] = ...) -> None: ...

class PauseQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class PauseQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ResumeQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RemoveMessageRequest(_message.Message):
    __slots__ = ("queue", "message_id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ...) -> None: ...

class RemoveMessageResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RescheduleRequest(_message.Message):
    __slots__ = ("queue", "message_id", "delay_ms", "deliver_at")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AT_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    delay_ms: int
    deliver_at: _timestamp_pb2.Timestamp
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., delay_ms: _Optional[int] = ..., deliver_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RescheduleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListConsumersRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ListConsumersResponse(_message.Message):
    __slots__ = ("consumers",)
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    consumers: _containers.RepeatedCompositeFieldContainer[ConsumerInfo]
    def __init__(self, consumers: _Optional[_Iterable[_Union[ConsumerInfo, _Mapping]]] = ...) -> None: ...

class ConsumerInfo(_message.Message):
    __slots__ = ("id", "name", "peer", "queues", "credit", "held", "idle_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    IDLE_MS_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    peer: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    credit: int
    held: int
    idle_ms: int
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., peer: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., credit: _Optional[int] = ..., held: _Optional[int] = ..., idle_ms: _Optional[int] = ...) -> None: ...

class BrowseRequest(_message.Message):
    __slots__ = ("queue", "page_size", "page_token")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    page_size: int
    page_token: str
    def __init__(self, queue: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class BrowsedMessage(_message.Message):
    __slots__ = ("message", "state", "due_at")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    message: _messages_pb2.Message
    state: MessageState
    due_at: _timestamp_pb2.Timestamp
    def __init__(self, message: _Optional[_Union[_messages_pb2.Message, _Mapping]] = ..., state: _Optional[_Union[MessageState, str]] = ..., due_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class BrowseResponse(_message.Message):
    __slots__ = ("messages", "next_page_token")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[BrowsedMessage]
    next_page_token: str
    def __init__(self, messages: _Optional[_Iterable[_Union[BrowsedMessage, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = ("target", "mark")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    target: str
    mark: str
    def __init__(self, target: _Optional[str] = ..., mark: _Optional[str] = ...) -> None: ...

class BackupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("queue", "message_id", "fairness_key")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    fairness_key: str
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., fairness_key: _Optional[str] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("summary", "causes", "deliverable", "at_least", "message", "key", "queue")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    DELIVERABLE_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    summary: str
    causes: _containers.RepeatedCompositeFieldContainer[Cause]
    deliverable: bool
    at_least: bool
    message: MessageFacts
    key: KeyFacts
    queue: QueueFacts
    def __init__(self, summary: _Optional[str] = ..., causes: _Optional[_Iterable[_Union[Cause, _Mapping]]] = ..., deliverable: _Optional[bool] = ..., at_least: _Optional[bool] = ..., message: _Optional[_Union[MessageFacts, _Mapping]] = ..., key: _Optional[_Union[KeyFacts, _Mapping]] = ..., queue: _Optional[_Union[QueueFacts, _Mapping]] = ...) -> None: ...

class Cause(_message.Message):
    __slots__ = ("code", "text", "advice", "lease", "delay", "credit", "throttle", "turn", "expiry", "dead_letter", "count")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ADVICE_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    code: CauseCode
    text: str
    advice: str
    lease: LeaseFacts
    delay: DelayFacts
    credit: CreditFacts
    throttle: ThrottleFacts
    turn: TurnFacts
    expiry: ExpiryFacts
    dead_letter: _messages_pb2.DeadLetter
    count: int
    def __init__(self, code: _Optional[_Union[CauseCode, str]] = ..., text: _Optional[str] = ..., advice: _Optional[str] = ..., lease: _Optional[_Union[LeaseFacts, _Mapping]] = ..., delay: _Optional[_Union[DelayFacts, _Mapping]] = ..., credit: _Optional[_Union[CreditFacts, _Mapping]] = ..., throttle: _Optional[_Union[ThrottleFacts, _Mapping]] = ..., turn: _Optional[_Union[TurnFacts, _Mapping]] = ..., expiry: _Optional[_Union[ExpiryFacts, _Mapping]] = ..., dead_letter: _Optional[_Union[_messages_pb2.DeadLetter, _Mapping]] = ..., count: _Optional[int] = ...) -> None: ...

class LeaseFacts(_message.Message):
    __slots__ = ("consumer_id", "consumer_name", "peer", "leased_at", "until", "left_ms")
    CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_NAME_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    LEASED_AT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    consumer_id: int
    consumer_name: str
    peer: str
    leased_at: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    left_ms: int
    def __init__(self, consumer_id: _Optional[int] = ..., consumer_name: _Optional[str] = ..., peer: _Optional[str] = ..., leased_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., left_ms: _Optional[int] = ...) -> None: ...

class DelayFacts(_message.Message):
    __slots__ = ("kind", "until", "left_ms")
    KIND_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    until: _timestamp_pb2.Timestamp
    left_ms: int
    def __init__(self, kind: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., left_ms: _Optional[int] = ...) -> None: ...

class CreditFacts(_message.Message):
    __slots__ = ("consumers", "count", "credit", "held", "moving")
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    MOVING_FIELD_NUMBER: _ClassVar[int]
    consumers: _containers.RepeatedCompositeFieldContainer[ConsumerInfo]
    count: int
    credit: int
    held: int
    moving: bool
    def __init__(self, consumers: _Optional[_Iterable[_Union[ConsumerInfo, _Mapping]]] = ..., count: _Optional[int] = ..., credit: _Optional[int] = ..., held: _Optional[int] = ..., moving: _Optional[bool] = ...) -> None: ...

class ThrottleFacts(_message.Message):
    __slots__ = ("buckets", "messages", "earliest_ms", "likely_ms")
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    EARLIEST_MS_FIELD_NUMBER: _ClassVar[int]
    LIKELY_MS_FIELD_NUMBER: _ClassVar[int]
    buckets: _containers.RepeatedCompositeFieldContainer[BucketFacts]
    messages: int
    earliest_ms: int
    likely_ms: int
    def __init__(self, buckets: _Optional[_Iterable[_Union[BucketFacts, _Mapping]]] = ..., messages: _Optional[int] = ..., earliest_ms: _Optional[int] = ..., likely_ms: _Optional[int] = ...) -> None: ...

class BucketFacts(_message.Message):
    __slots__ = ("key", "tokens", "rate_per_second", "burst", "next_token_ms", "waiting", "waiting_before", "holds_back")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    NEXT_TOKEN_MS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    WAITING_BEFORE_FIELD_NUMBER: _ClassVar[int]
    HOLDS_BACK_FIELD_NUMBER: _ClassVar[int]
    key: str
    tokens: float
    rate_per_second: float
    burst: float
    next_token_ms: int
    waiting: int
    waiting_before: int
    holds_back: bool
    def __init__(self, key: _Optional[str] = ..., tokens: _Optional[float] = ..., rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ..., next_token_ms: _Optional[int] = ..., waiting: _Optional[int] = ..., waiting_before: _Optional[int] = ..., holds_back: _Optional[bool] = ...) -> None: ...

class TurnFacts(_message.Message):
    __slots__ = ("ahead_in_lane", "ahead_in_key", "ahead_by_priority", "keys_before", "turns", "active_keys", "deficit", "weight", "cost", "quantum")
    AHEAD_IN_LANE_FIELD_NUMBER: _ClassVar[int]
    AHEAD_IN_KEY_FIELD_NUMBER: _ClassVar[int]
    AHEAD_BY_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    KEYS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_KEYS_FIELD_NUMBER: _ClassVar[int]
    DEFICIT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    ahead_in_lane: int
    ahead_in_key: int
    ahead_by_priority: int
    keys_before: int
    turns: int
    active_keys: int
    deficit: int
    weight: int
    cost: int
    quantum: int
    def __init__(self, ahead_in_lane: _Optional[int] = ..., ahead_in_key: _Optional[int] = ..., ahead_by_priority: _Optional[int] = ..., keys_before: _Optional[int] = ..., turns: _Optional[int] = ..., active_keys: _Optional[int] = ..., deficit: _Optional[int] = ..., weight: _Optional[int] = ..., cost: _Optional[int] = ..., quantum: _Optional[int] = ...) -> None: ...

class ExpiryFacts(_message.Message):
    __slots__ = ("expires_at", "left_ms")
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    expires_at: _timestamp_pb2.Timestamp
    left_ms: int
    def __init__(self, expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., left_ms: _Optional[int] = ...) -> None: ...

class MessageFacts(_message.Message):
    __slots__ = ("id", "queue", "state", "fairness_key", "weight", "priority", "cost", "throttle_keys", "attempt_count", "last_error", "enqueued_at", "next")
    ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEYS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_AT_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    id: str
    queue: str
    state: MessageState
    fairness_key: str
    weight: int
    priority: int
    cost: int
    throttle_keys: _containers.RepeatedScalarFieldContainer[str]
    attempt_count: int
    last_error: str
    enqueued_at: _timestamp_pb2.Timestamp
    next: bool
    def __init__(self, id: _Optional[str] = ..., queue: _Optional[str] = ..., state: _Optional[_Union[MessageState, str]] = ..., fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., priority: _Optional[int] = ..., cost: _Optional[int] = ..., throttle_keys: _Optional[_Iterable[str]] = ..., attempt_count: _Optional[int] = ..., last_error: _Optional[str] = ..., enqueued_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next: _Optional[bool] = ...) -> None: ...

class KeyFacts(_message.Message):
    __slots__ = ("key", "ready", "delayed", "throttled", "in_flight", "weight", "deficit", "delivered_per_second", "share", "weight_share", "oldest_waiting_ms")
    KEY_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    DEFICIT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_SHARE_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAITING_MS_FIELD_NUMBER: _ClassVar[int]
    key: str
    ready: int
    delayed: int
    throttled: int
    in_flight: int
    weight: int
    deficit: int
    delivered_per_second: float
    share: float
    weight_share: float
    oldest_waiting_ms: int
    def __init__(self, key: _Optional[str] = ..., ready: _Optional[int] = ..., delayed: _Optional[int] = ..., throttled: _Optional[int] = ..., in_flight: _Optional[int] = ..., weight: _Optional[int] = ..., deficit: _Optional[int] = ..., delivered_per_second: _Optional[float] = ..., share: _Optional[float] = ..., weight_share: _Optional[float] = ..., oldest_waiting_ms: _Optional[int] = ...) -> None: ...

class QueueFacts(_message.Message):
    __slots__ = ("ready", "delayed", "throttled", "in_flight", "consumers", "active_keys", "key_count", "delivered_per_second", "longest_waiting")
    READY_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_KEYS_FIELD_NUMBER: _ClassVar[int]
    KEY_COUNT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    LONGEST_WAITING_FIELD_NUMBER: _ClassVar[int]
    ready: int
    delayed: int
    throttled: int
    in_flight: int
    consumers: int
    active_keys: int
    key_count: int
    delivered_per_second: float
    longest_waiting: _containers.RepeatedCompositeFieldContainer[WaitingKey]
    def __init__(self, ready: _Optional[int] = ..., delayed: _Optional[int] = ..., throttled: _Optional[int] = ..., in_flight: _Optional[int] = ..., consumers: _Optional[int] = ..., active_keys: _Optional[int] = ..., key_count: _Optional[int] = ..., delivered_per_second: _Optional[float] = ..., longest_waiting: _Optional[_Iterable[_Union[WaitingKey, _Mapping]]] = ...) -> None: ...

class WaitingKey(_message.Message):
    __slots__ = ("key", "oldest_waiting_ms", "ready", "throttled")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAITING_MS_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_FIELD_NUMBER: _ClassVar[int]
    key: str
    oldest_waiting_ms: int
    ready: int
    throttled: int
    def __init__(self, key: _Optional[str] = ..., oldest_waiting_ms: _Optional[int] = ..., ready: _Optional[int] = ..., throttled: _Optional[int] = ...) -> None: ...
