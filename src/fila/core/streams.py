"""Consumers come, subscribe, change their credit and go."""

from fila.core import settlement
from fila.core.commands import CloseConsumer, OpenConsumer, SetCredit, Subscribe, Unsubscribe
from fila.core.consumer import Consumer
from fila.core.message import Message
from fila.core.queue import Queue
from fila.core.state import State


def open_consumer(state: State, command: OpenConsumer) -> None:
    """Make a consumer known."""
    consumer = Consumer(
        command.consumer,
        credit=command.credit,
        name=command.name,
        peer=command.peer,
        release_on_disconnect=command.release_on_disconnect,
    )
    consumer.idle_since_ns = state.now_ns
    state.consumers[command.consumer] = consumer


def subscribe(state: State, command: Subscribe) -> None:
    """Let a consumer have deliveries of a queue; once more changes nothing."""
    queue = state.queue(command.queue)
    consumer = state.consumers.get(command.consumer)
    if consumer is not None:
        consumer.queues[queue.name] = queue
        queue.consumers[consumer.number] = consumer
        state.freed[consumer] = None


def unsubscribe(state: State, command: Unsubscribe) -> None:
    """End a consumer's deliveries of a queue."""
    consumer = state.consumers.get(command.consumer)
    if consumer is not None:
        detach(consumer, command.queue)


def detach(consumer: Consumer, queue_name: str) -> None:
    """Take a consumer off a queue; as a taker it is skipped when it is met."""
    queue = consumer.queues.pop(queue_name, None)
    if queue is not None:
        queue.consumers.pop(consumer.number, None)


def set_credit(state: State, command: SetCredit) -> None:
    """Change how much a consumer may hold."""
    consumer = state.consumers.get(command.consumer)
    if consumer is not None:
        consumer.credit = command.credit
        state.freed[consumer] = None


def close_consumer(state: State, command: CloseConsumer) -> None:
    """Forget a consumer: what it holds goes back now, or when its leases end."""
    consumer = state.consumers.pop(command.consumer, None)
    if consumer is None:
        return
    unsent = set(command.unsent)
    back: dict[Queue, list[Message]] = {}
    for message in consumer.leases:
        sent = (message.queue.name, message.sequence, message.token) not in unsent
        if consumer.release_on_disconnect or not sent:
            back.setdefault(message.queue, []).append(message)
        else:
            message.consumer = 0
    for name in list(consumer.queues):
        detach(consumer, name)
    consumer.credit = 0
    for queue, messages in back.items():
        settlement.release(state, queue, messages)
