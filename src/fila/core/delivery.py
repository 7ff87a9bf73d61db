"""Bringing messages and consumers together: queues take turns, keys within a queue by the ring."""

from collections import deque

from fila.core.consumer import Consumer
from fila.core.key import Key
from fila.core.message import Message
from fila.core.queue import Queue
from fila.core.state import State
from fila.model import NS_PER_MS, NS_PER_S

# So many in one pass, which must not hold the loop; the next pass goes on.
DELIVERIES_MAX = 2000
RATE_WINDOW_NS = 5 * NS_PER_S


def deliver(state: State) -> None:
    """Lease messages to consumers until there is no room, nothing ready, or enough for one pass."""
    for consumer in state.freed:
        if consumer.room > 0:
            for queue in consumer.queues.values():
                queue.enlist(consumer)
                state.touched[queue] = None
    state.freed.clear()
    # Whose last turn is longest ago comes first, so that none is always behind the others.
    able = (queue for queue in state.touched if queue.can_serve)
    waiting = deque(sorted(able, key=lambda queue: queue.served_turn))
    left = DELIVERIES_MAX
    leased: dict[Queue, list[Message]] = {}
    while waiting and left > 0:
        queue = waiting.popleft()
        state.turns += 1
        queue.served_turn = state.turns
        # Alone, a queue may have it all; among several each has one message a turn.
        messages = _serve(state, queue, 1 if waiting else left)
        left -= len(messages)
        if messages:
            leased.setdefault(queue, []).extend(messages)
            waiting.append(queue)
    for queue, messages in leased.items():
        state.put_progress(queue.partition, messages)
    state.touched = {queue: None for queue in waiting if queue.can_serve}


def _serve(state: State, queue: Queue, limit: int) -> list[Message]:
    messages: list[Message] = []
    if queue.paused:
        return messages
    while len(messages) < limit:
        consumer = queue.next_taker()
        if consumer is None:
            break
        key = queue.ring.next_key()
        if key is None:
            break
        message, weight_record = queue.take(key)
        state.put_key_weight(weight_record)
        _charge(state, key, message.spec.cost)
        _lease(state, queue, message, consumer)
        messages.append(message)
        queue.takers.rotate(-1)
    return messages


def _charge(state: State, key: Key, cost: int) -> None:
    if key.ready:
        key.deficit -= cost
    key.delivered += 1
    key.served += cost
    if state.now_ns - key.rate_since_ns >= RATE_WINDOW_NS:
        fresh = state.now_ns - key.rate_since_ns < 2 * RATE_WINDOW_NS
        key.rate_previous = key.rate_count if fresh else 0
        key.rate_count = 0
        key.rate_since_ns = state.now_ns
    key.rate_count += 1


def _lease(state: State, queue: Queue, message: Message, consumer: Consumer) -> None:
    if message.expires_at_ns and not message.delivered:
        state.wall_timers.cancel(message, message.expires_at_ns)
    token = state.take_token()
    message.token = token
    message.delivered = True
    message.consumer = consumer.number
    message.leased_at_ns = state.wall_ns
    message.span_ns = queue.settings.visibility_timeout_ms * NS_PER_MS
    message.due_ns = state.now_ns + message.span_ns
    message.due_wall_ns = state.wall_ns + message.span_ns
    state.steady_timers.set(message, message.due_ns)
    consumer.leases[message] = None
    consumer.idle_since_ns = state.now_ns
    state.effects.deliveries.setdefault(consumer.number, []).append((message, token))
