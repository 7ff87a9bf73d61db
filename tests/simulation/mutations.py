"""Planted bugs: each breaks the broker the way a real one might, while its context lasts.

A simulation that never fails proves nothing. Each of these must be noticed, by the checker whose
promise it breaks; `MUTATIONS` names both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from unittest.mock import patch

from fila.core import delivery, expiry, letters, recovery, settlement
from fila.core.commands import Command, SetCredit, Settle
from fila.core.consumer import Consumer
from fila.core.effects import (
    DeleteMessages,
    DeletePartition,
    Delivery,
    DropQueue,
    Effects,
    Mutation,
    PutProgress,
    Reply,
)
from fila.core.gate import Gate, Released
from fila.core.key import Key
from fila.core.message import Message
from fila.core.partition import Partition
from fila.core.queue import Queue
from fila.core.records import Entry, Progress, Status
from fila.core.ring import Ring
from fila.core.scheduler import Scheduler
from fila.core.state import State
from fila.model import ItemError
from tests.simulation import limit_mutations
from tests.simulation.letter_mutations import LETTERS
from tests.simulation.planted import Planted, drop_mutations


@contextmanager
def reply_before_commit() -> Iterator[None]:
    """Replies leave with the pass, deliveries as they should."""
    original = Gate.pass_through

    def pass_through(self: Gate, effects: Effects) -> Released:
        replies, effects.replies = effects.replies, []
        released = original(self, effects)
        released.replies = [*replies, *released.replies]
        return released

    with patch.object(Gate, "pass_through", pass_through):
        yield


@contextmanager
def sync_covers_too_much() -> Iterator[None]:
    """When a sync is done, everything written until then counts as safe."""
    original = Gate.end_sync

    def end_sync(self: Gate, _generation: int) -> Released:
        return original(self, self.begin_sync())

    with patch.object(Gate, "end_sync", end_sync):
        yield


@contextmanager
def delivered_before_enqueue_is_durable() -> Iterator[None]:
    """The gate takes every message for one that is on disk."""

    def must_wait(_self: Gate, _delivery: Delivery) -> bool:
        return False

    with patch.object(Gate, "_must_wait", must_wait):
        yield


@contextmanager
def delivery_overtakes() -> Iterator[None]:
    """What is on disk leaves at once, though the consumer's deliveries before it still wait."""
    original = Gate._split

    def split(
        self: Gate, deliveries: dict[int, list[Delivery]]
    ) -> tuple[dict[int, list[Delivery]], dict[int, list[Delivery]]]:
        self._holding.clear()
        return original(self, deliveries)

    with patch.object(Gate, "_split", split):
        yield


@contextmanager
def lost_timer() -> Iterator[None]:
    """Every fifth delay is never over."""
    original = State.set_delay_timer
    count = 0

    def set_delay_timer(self: State, message: Message, remaining_ns: int) -> None:
        nonlocal count
        count += 1
        if count % 5:
            original(self, message, remaining_ns)

    with patch.object(State, "set_delay_timer", set_delay_timer):
        yield


@contextmanager
def double_lease() -> Iterator[None]:
    """Extending a lease puts the message back as well."""
    original = settlement._extend

    def extend(state: State, queue: Queue, messages: list[Message], command: Settle) -> None:
        original(state, queue, messages, command)
        for message in messages:
            state.make_ready(copy(message))

    with patch.object(settlement, "_extend", extend):
        yield


@contextmanager
def deficit_leak() -> Iterator[None]:
    """A key that comes back has what it had saved up when it left."""
    join, leave = Ring.join, Ring.leave
    left: dict[tuple[int, str], int] = {}

    def leaking_leave(self: Ring[Key], key: Key) -> None:
        left[id(self), key.name] = key.deficit
        leave(self, key)

    def leaking_join(self: Ring[Key], key: Key) -> None:
        join(self, key)
        key.deficit += left.pop((id(self), key.name), 0)

    with patch.object(Ring, "join", leaking_join), patch.object(Ring, "leave", leaking_leave):
        yield


@contextmanager
def order_changed_by_restart() -> Iterator[None]:
    """Recovery takes a message's number for its place."""
    original = recovery._restore_moved

    def restore_moved(state: State, partition: Partition, entry: Entry, progress: Progress) -> None:
        if progress.status is Status.READY:
            progress = progress._replace(place=entry.sequence)
        original(state, partition, entry, progress)

    with patch.object(recovery, "_restore_moved", restore_moved):
        yield


@contextmanager
def token_repeated() -> Iterator[None]:
    """Lease tokens count from the same number after every start."""
    original = State.__init__

    def init(self: State, *, epoch: int, quantum: int) -> None:
        original(self, epoch=1 if epoch else 0, quantum=quantum)

    with patch.object(State, "__init__", init):
        yield


def lease_not_written() -> AbstractContextManager[None]:
    """A delivery leaves, and storage does not know of it."""

    def is_lease(mutation: Mutation) -> bool:
        return isinstance(mutation, PutProgress) and any(
            message.status is Status.LEASED for message in mutation.messages
        )

    return drop_mutations(is_lease)


def ack_not_written() -> AbstractContextManager[None]:
    """What was settled for good stays in storage."""
    return drop_mutations(lambda mutation: isinstance(mutation, DeleteMessages))


def deleted_queue_returns() -> AbstractContextManager[None]:
    """Deleting a queue happens in memory alone."""
    return drop_mutations(lambda mutation: isinstance(mutation, DropQueue | DeletePartition))


@contextmanager
def tail_on_expiry() -> Iterator[None]:
    """A message whose lease ran out goes behind all others."""
    original = expiry._end_lease

    def end_lease(state: State, message: Message) -> None:
        message.place = state.take_sequences(message.queue.partition, 1)
        original(state, message)

    with patch.object(expiry, "_end_lease", end_lease):
        yield


@contextmanager
def weight_forgotten_at_restart() -> Iterator[None]:
    """Recovery leaves out the weights of newest messages that have gone."""

    def restore_weight(_state: State, _record: object) -> None:
        return

    with patch.object(recovery, "_restore_weight", restore_weight):
        yield


@contextmanager
def outcome_forgotten() -> Iterator[None]:
    """The store is never asked for an earlier outcome."""

    def needs_lookup(_self: Scheduler, _queue: str, _key: object) -> bool:
        return False

    with patch.object(Scheduler, "needs_lookup", needs_lookup):
        yield


@contextmanager
def credit_ignored() -> Iterator[None]:
    """A consumer with any credit has room for one more than it asked for."""

    def room(self: Consumer) -> int:
        return self.credit - len(self.leases) + (1 if self.credit else 0)

    with patch.object(Consumer, "room", property(room)):
        yield


@contextmanager
def cursor_moved_on_look() -> Iterator[None]:
    """Whoever was first in line and could not be served has had its turn."""
    original = delivery.deliver

    def deliver(state: State) -> None:
        original(state)
        for queue in state.queues.values():
            key = queue.ring.next_key() if queue.ready_count else None
            if key is not None and len(queue.ring) > 1:
                queue.ring.leave(key)
                key.deficit = 0
                queue.ring.join(key)

    with patch.object(delivery, "deliver", deliver):
        yield


@contextmanager
def one_attempt_too_many() -> Iterator[None]:
    """The limit is exceeded by one."""

    def used_up(message: Message) -> bool:
        limit = message.queue.settings.max_attempts
        return bool(limit) and message.attempts > limit

    with patch.object(letters, "attempts_used_up", used_up):
        yield


@contextmanager
def stale_token_settles() -> Iterator[None]:
    """A token is not compared with the lease's."""
    original = settlement._live

    def live(
        state: State, queue: Queue, command: Settle
    ) -> tuple[list[Message], tuple[ItemError, ...]]:
        return original(state, queue, replace(command, tokens=[0] * len(command.tokens)))

    with patch.object(settlement, "_live", live):
        yield


@contextmanager
def delay_ends_early() -> Iterator[None]:
    """Delays are rounded down to seconds."""
    original = State.make_delayed

    def make_delayed(self: State, message: Message, *, span_ns: int) -> None:
        original(self, message, span_ns=span_ns - span_ns % 1_000_000_000)

    with patch.object(State, "make_delayed", make_delayed):
        yield


@contextmanager
def priority_ignored_after_release() -> Iterator[None]:
    """What comes back into a lane is not seen to be first."""

    def front_changed(_self: Key, _lane: object) -> None:
        return

    with patch.object(Key, "front_changed", front_changed):
        yield


@contextmanager
def idle_after_credit() -> Iterator[None]:
    """A consumer whose credit grows is not looked at again."""
    original = Scheduler._dispatch

    def dispatch(self: Scheduler, command: Command) -> Reply:
        reply = original(self, command)
        if isinstance(command, SetCredit):
            self._state.freed.clear()
        return reply

    with patch.object(Scheduler, "_dispatch", dispatch):
        yield


@contextmanager
def expired_is_delivered() -> Iterator[None]:
    """A message that outlived its time is kept."""
    original = expiry._fall_due

    def fall_due(state: State, message: Message) -> None:
        if message.status is not Status.READY:
            original(state, message)

    with patch.object(expiry, "_fall_due", fall_due):
        yield


_OWN: Sequence[Planted] = tuple(
    Planted(plant.__name__, plant, checker)
    for plant, checker in (
        (reply_before_commit, "durability"),
        (sync_covers_too_much, "durability"),
        (delivered_before_enqueue_is_durable, "durability"),
        (lost_timer, "timers"),
        (delay_ends_early, "timers"),
        (expired_is_delivered, "timers"),
        (double_lease, "leases"),
        (token_repeated, "leases"),
        (stale_token_settles, "leases"),
        (lease_not_written, "disk"),
        (ack_not_written, "disk"),
        (deleted_queue_returns, "disk"),
        (deficit_leak, "shares"),
        (cursor_moved_on_look, "shares"),
        (delivery_overtakes, "order"),
        (order_changed_by_restart, "order"),
        (tail_on_expiry, "order"),
        (priority_ignored_after_release, "order"),
        (weight_forgotten_at_restart, "weights"),
        (outcome_forgotten, "ledger"),
        (credit_ignored, "credit"),
        (one_attempt_too_many, "attempts"),
        (idle_after_credit, "idleness"),
        (limit_mutations.levels_not_written, "levels"),
        (limit_mutations.levels_not_awaited, "levels"),
        (limit_mutations.jump_fills_buckets, "levels"),
        (limit_mutations.refill_rounded_up, "buckets"),
        (limit_mutations.old_level_forgotten, "buckets"),
        (limit_mutations.rate_0_lets_go, "buckets"),
        (limit_mutations.taken_for_nothing, "idleness"),
        (limit_mutations.lost_wake, "idleness"),
        (limit_mutations.change_not_noticed, "idleness"),
        (limit_mutations.head_of_line_blocks, "idleness"),
        (limit_mutations.tokens_in_order_of_arrival, "scarcity"),
        (limit_mutations.claim_never_heard, "scarcity"),
    )
)

MUTATIONS: Sequence[Planted] = (*_OWN, *LETTERS)
