"""Bringing messages and consumers together: queues take turns, keys within a queue by the ring."""

from collections import deque

from fila.core import letters
from fila.core.consumer import Consumer
from fila.core.message import Message
from fila.core.queue import Queue
from fila.core.records import KeyWeight
from fila.core.state import State
from fila.model import Reason

# So many in one pass, which must not hold the loop; the next pass goes on.
DELIVERIES_MAX = 2000


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
        # Alone, a queue may have it all; among several each has one message a turn.
        asides = state.throttle.aside_count
        messages = _serve(state, queue, 1 if waiting else left)
        # To find that a lane must wait for a token is work too.
        left -= max(1, len(messages) + state.throttle.aside_count - asides)
        if messages:
            state.turns += 1
            queue.served_turn = state.turns
            leased.setdefault(queue, []).extend(messages)
        if queue.can_serve:
            waiting.append(queue)
    for queue, messages in leased.items():
        state.put_progress(queue.partition, messages)
    state.touched = dict.fromkeys(waiting)


def _serve(state: State, queue: Queue, limit: int) -> list[Message]:
    """Lease up to so many messages of one queue, dealt out among its consumers in turn."""
    wanted = min(limit, queue.ready_count)
    called = queue.call_takers(wanted)
    room = sum(consumer.room for consumer in called)
    weights: list[KeyWeight] = []
    picked = queue.pick(min(wanted, room), now_ns=state.now_ns, records=weights)
    for weight in weights:
        state.put_key_weight(weight)
    messages = queue.lease(
        picked, now_ns=state.now_ns, wall_ns=state.wall_ns, token=state.take_tokens(len(picked))
    )
    messages = [
        message for message in messages if message.delivered or not _bury_expired(state, message)
    ]
    if messages:
        state.steady_timers.set_all(messages, messages[0].due_ns)
    _deal(state, called, messages)
    queue.return_takers(called)
    return messages


def _bury_expired(state: State, message: Message) -> bool:
    """Note the first delivery of a message, unless its time ran out before; whether it had."""
    if message.expires_at_ns and not message.delivered:
        state.wall_timers.cancel(message, message.expires_at_ns)
        if letters.has_expired(state, message):
            queue = message.queue
            queue.remove_leased(message)
            state.throttle.give_back(message.spec.throttle_keys)
            letters.bury(state, message, Reason.EXPIRED)
            state.put_progress(queue.partition, [message])
            return True
    message.delivered = True
    return False


def _deal(state: State, called: list[Consumer], messages: list[Message]) -> None:
    """One message to each consumer in turn, while it has room."""
    if len(called) == 1:
        _give(state, called[0], messages)
        return
    rooms = deque((consumer, consumer.room, list[Message]()) for consumer in called)
    hands = list(rooms)
    for message in messages:
        consumer, room, hand = rooms.popleft()
        hand.append(message)
        if room > 1:
            rooms.append((consumer, room - 1, hand))
    for consumer, _, hand in hands:
        if hand:
            _give(state, consumer, hand)


def _give(state: State, consumer: Consumer, messages: list[Message]) -> None:
    number = consumer.number
    for message in messages:
        message.consumer = number
    consumer.leases.update(dict.fromkeys(messages))
    consumer.idle_since_ns = state.now_ns
    batch = [(message, message.token) for message in messages]
    state.effects.deliveries.setdefault(number, []).extend(batch)
