"""Fila, a message broker that is fair between tenants: the SDK.

import fila

with fila.Client("localhost:5555") as client:
    client.enqueue("orders", b"hello", headers={"tenant": "acme"})
    for message in client.consume("orders"):
        print(message.payload)
        client.ack(message)
"""

from fila import errors
from fila.client.aio import AsyncClient
from fila.client.consumer import AsyncConsumer
from fila.client.explanation import (
    BucketFacts,
    Cause,
    CauseCode,
    CountFacts,
    CreditFacts,
    DelayFacts,
    ExpiryFacts,
    Explanation,
    KeyFacts,
    LeaseFacts,
    MessageFacts,
    QueueFacts,
    ThrottleFacts,
    TurnFacts,
    WaitingKey,
)
from fila.client.message import DeadLetter, Message, NewMessage, Reject, Retry
from fila.client.sync import Client, Worker
from fila.client.sync_consumer import Consumer
from fila.client.views import (
    BrowsedMessage,
    ConsumerInfo,
    HookStats,
    KeyStats,
    MessageState,
    QueueDescription,
    QueueInfo,
    QueueStats,
    ThrottleStats,
)
from fila.client.worker import AsyncWorker
from fila.errors import FilaError
from fila.model import QueueSettings

__all__ = [
    "AsyncClient",
    "AsyncConsumer",
    "AsyncWorker",
    "BrowsedMessage",
    "BucketFacts",
    "Cause",
    "CauseCode",
    "Client",
    "Consumer",
    "ConsumerInfo",
    "CountFacts",
    "CreditFacts",
    "DeadLetter",
    "DelayFacts",
    "ExpiryFacts",
    "Explanation",
    "FilaError",
    "HookStats",
    "KeyFacts",
    "KeyStats",
    "LeaseFacts",
    "Message",
    "MessageFacts",
    "MessageState",
    "NewMessage",
    "QueueDescription",
    "QueueFacts",
    "QueueInfo",
    "QueueSettings",
    "QueueStats",
    "Reject",
    "Retry",
    "ThrottleFacts",
    "ThrottleStats",
    "TurnFacts",
    "WaitingKey",
    "Worker",
    "errors",
]
