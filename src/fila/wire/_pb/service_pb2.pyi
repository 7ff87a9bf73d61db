from fila.wire._pb import messages_pb2 as _messages_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Producer(_message.Message):
    __slots__ = ("id", "sequence")
    ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    sequence: int
    def __init__(self, id: _Optional[bytes] = ..., sequence: _Optional[int] = ...) -> None: ...

class EnqueueRequest(_message.Message):
    __slots__ = ("queue", "headers", "payload", "options", "producer")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    queue: str
    headers: _containers.ScalarMap[str, str]
    payload: bytes
    options: _messages_pb2.MessageOptions
    producer: Producer
    def __init__(self, queue: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., payload: _Optional[bytes] = ..., options: _Optional[_Union[_messages_pb2.MessageOptions, _Mapping]] = ..., producer: _Optional[_Union[Producer, _Mapping]] = ...) -> None: ...

class EnqueueResponse(_message.Message):
    __slots__ = ("message_id",)
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    def __init__(self, message_id: _Optional[str] = ...) -> None: ...

class EnqueueItem(_message.Message):
    __slots__ = ("headers", "payload", "options")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    headers: _containers.ScalarMap[str, str]
    payload: bytes
    options: _messages_pb2.MessageOptions
    def __init__(self, headers: _Optional[_Mapping[str, str]] = ..., payload: _Optional[bytes] = ..., options: _Optional[_Union[_messages_pb2.MessageOptions, _Mapping]] = ...) -> None: ...

class EnqueueBatchRequest(_message.Message):
    __slots__ = ("queue", "items", "producer")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    queue: str
    items: _containers.RepeatedCompositeFieldContainer[EnqueueItem]
    producer: Producer
    def __init__(self, queue: _Optional[str] = ..., items: _Optional[_Iterable[_Union[EnqueueItem, _Mapping]]] = ..., producer: _Optional[_Union[Producer, _Mapping]] = ...) -> None: ...

class EnqueueBatchResponse(_message.Message):
    __slots__ = ("message_ids", "errors")
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    message_ids: bytes
    errors: _containers.RepeatedCompositeFieldContainer[ItemError]
    def __init__(self, message_ids: _Optional[bytes] = ..., errors: _Optional[_Iterable[_Union[ItemError, _Mapping]]] = ...) -> None: ...

class ItemError(_message.Message):
    __slots__ = ("index", "code", "message")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    index: int
    code: int
    message: str
    def __init__(self, index: _Optional[int] = ..., code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class ConsumeRequest(_message.Message):
    __slots__ = ("queue", "credit", "release_on_disconnect", "consumer_name")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ON_DISCONNECT_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_NAME_FIELD_NUMBER: _ClassVar[int]
    queue: str
    credit: int
    release_on_disconnect: bool
    consumer_name: str
    def __init__(self, queue: _Optional[str] = ..., credit: _Optional[int] = ..., release_on_disconnect: _Optional[bool] = ..., consumer_name: _Optional[str] = ...) -> None: ...

class ConsumeResponse(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: _messages_pb2.Message
    def __init__(self, message: _Optional[_Union[_messages_pb2.Message, _Mapping]] = ...) -> None: ...

class AckRequest(_message.Message):
    __slots__ = ("queue", "message_id", "lease_token")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    lease_token: int
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., lease_token: _Optional[int] = ...) -> None: ...

class AckResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NackRequest(_message.Message):
    __slots__ = ("queue", "message_id", "error", "lease_token", "delay_ms", "dead_letter", "release")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_id: str
    error: str
    lease_token: int
    delay_ms: int
    dead_letter: bool
    release: bool
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., error: _Optional[str] = ..., lease_token: _Optional[int] = ..., delay_ms: _Optional[int] = ..., dead_letter: _Optional[bool] = ..., release: _Optional[bool] = ...) -> None: ...

class NackResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Settlement(_message.Message):
    __slots__ = ("queue", "message_ids", "lease_tokens", "ack", "nack", "release", "extend")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    NACK_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_ids: bytes
    lease_tokens: _containers.RepeatedScalarFieldContainer[int]
    ack: AckAction
    nack: NackAction
    release: ReleaseAction
    extend: ExtendAction
    def __init__(self, queue: _Optional[str] = ..., message_ids: _Optional[bytes] = ..., lease_tokens: _Optional[_Iterable[int]] = ..., ack: _Optional[_Union[AckAction, _Mapping]] = ..., nack: _Optional[_Union[NackAction, _Mapping]] = ..., release: _Optional[_Union[ReleaseAction, _Mapping]] = ..., extend: _Optional[_Union[ExtendAction, _Mapping]] = ...) -> None: ...

class AckAction(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NackAction(_message.Message):
    __slots__ = ("error", "delay_ms", "dead_letter")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    error: str
    delay_ms: int
    dead_letter: bool
    def __init__(self, error: _Optional[str] = ..., delay_ms: _Optional[int] = ..., dead_letter: _Optional[bool] = ...) -> None: ...

class ReleaseAction(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExtendAction(_message.Message):
    __slots__ = ("extend_ms",)
    EXTEND_MS_FIELD_NUMBER: _ClassVar[int]
    extend_ms: int
    def __init__(self, extend_ms: _Optional[int] = ...) -> None: ...

class SettleRequest(_message.Message):
    __slots__ = ("settlements",)
    SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
    settlements: _containers.RepeatedCompositeFieldContainer[Settlement]
    def __init__(self, settlements: _Optional[_Iterable[_Union[Settlement, _Mapping]]] = ...) -> None: ...

class SettleResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[SettlementResult]
    def __init__(self, results: _Optional[_Iterable[_Union[SettlementResult, _Mapping]]] = ...) -> None: ...

class SettlementResult(_message.Message):
    __slots__ = ("errors",)
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    errors: _containers.RepeatedCompositeFieldContainer[ItemError]
    def __init__(self, errors: _Optional[_Iterable[_Union[ItemError, _Mapping]]] = ...) -> None: ...

class LeaseRequest(_message.Message):
    __slots__ = ("queue", "max_messages", "wait_ms", "consumer_name")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_NAME_FIELD_NUMBER: _ClassVar[int]
    queue: str
    max_messages: int
    wait_ms: int
    consumer_name: str
    def __init__(self, queue: _Optional[str] = ..., max_messages: _Optional[int] = ..., wait_ms: _Optional[int] = ..., consumer_name: _Optional[str] = ...) -> None: ...

class LeaseResponse(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ...) -> None: ...

class WorkRequest(_message.Message):
    __slots__ = ("open", "subscribe", "unsubscribe", "credit", "settle", "stop")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    UNSUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    open: WorkOpen
    subscribe: WorkSubscribe
    unsubscribe: WorkUnsubscribe
    credit: WorkCredit
    settle: WorkSettle
    stop: WorkStop
    def __init__(self, open: _Optional[_Union[WorkOpen, _Mapping]] = ..., subscribe: _Optional[_Union[WorkSubscribe, _Mapping]] = ..., unsubscribe: _Optional[_Union[WorkUnsubscribe, _Mapping]] = ..., credit: _Optional[_Union[WorkCredit, _Mapping]] = ..., settle: _Optional[_Union[WorkSettle, _Mapping]] = ..., stop: _Optional[_Union[WorkStop, _Mapping]] = ...) -> None: ...

class WorkOpen(_message.Message):
    __slots__ = ("credit", "release_on_disconnect", "consumer_name")
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ON_DISCONNECT_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_NAME_FIELD_NUMBER: _ClassVar[int]
    credit: int
    release_on_disconnect: bool
    consumer_name: str
    def __init__(self, credit: _Optional[int] = ..., release_on_disconnect: _Optional[bool] = ..., consumer_name: _Optional[str] = ...) -> None: ...

class WorkSubscribe(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class WorkUnsubscribe(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class WorkCredit(_message.Message):
    __slots__ = ("credit",)
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    credit: int
    def __init__(self, credit: _Optional[int] = ...) -> None: ...

class WorkSettle(_message.Message):
    __slots__ = ("batch", "settlements")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
    batch: int
    settlements: _containers.RepeatedCompositeFieldContainer[Settlement]
    def __init__(self, batch: _Optional[int] = ..., settlements: _Optional[_Iterable[_Union[Settlement, _Mapping]]] = ...) -> None: ...

class WorkStop(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ("opened", "subscribed", "unsubscribed", "settled", "stopped", "deliveries")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBED_FIELD_NUMBER: _ClassVar[int]
    UNSUBSCRIBED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    opened: WorkOpened
    subscribed: WorkSubscribed
    unsubscribed: WorkUnsubscribed
    settled: WorkSettled
    stopped: WorkStopped
    deliveries: WorkDeliveries
    def __init__(self, opened: _Optional[_Union[WorkOpened, _Mapping]] = ..., subscribed: _Optional[_Union[WorkSubscribed, _Mapping]] = ..., unsubscribed: _Optional[_Union[WorkUnsubscribed, _Mapping]] = ..., settled: _Optional[_Union[WorkSettled, _Mapping]] = ..., stopped: _Optional[_Union[WorkStopped, _Mapping]] = ..., deliveries: _Optional[_Union[WorkDeliveries, _Mapping]] = ...) -> None: ...

class WorkOpened(_message.Message):
    __slots__ = ("consumer_id",)
    CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
    consumer_id: int
    def __init__(self, consumer_id: _Optional[int] = ...) -> None: ...

class WorkSubscribed(_message.Message):
    __slots__ = ("queue", "error")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    queue: str
    error: ItemError
    def __init__(self, queue: _Optional[str] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ...) -> None: ...

class WorkUnsubscribed(_message.Message):
    __slots__ = ("queue", "error")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    queue: str
    error: ItemError
    def __init__(self, queue: _Optional[str] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ...) -> None: ...

class WorkSettled(_message.Message):
    __slots__ = ("batch", "results")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    batch: int
    results: _containers.RepeatedCompositeFieldContainer[SettlementResult]
    def __init__(self, batch: _Optional[int] = ..., results: _Optional[_Iterable[_Union[SettlementResult, _Mapping]]] = ...) -> None: ...

class WorkStopped(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkDeliveries(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ...) -> None: ...
