"""Planted bugs in what follows a failed delivery: retries that change a message, and redrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from unittest.mock import patch

from fila.core import redrive, settlement
from fila.core.commands import Redrive, Settle
from fila.core.effects import PutSpecs, RedriveResult
from fila.core.message import Message
from fila.core.queue import Queue
from fila.core.records import KeyWeight, Status
from fila.core.state import State
from fila.model import FailureDecision, Spec, Timing
from fila.wire import envelope
from tests.simulation.planted import Planted, drop_mutations


@contextmanager
def redrive_loses_what_is_stored() -> Iterator[None]:
    """What moves is deleted behind it: the source queue has it in memory alone."""
    original = redrive.redrive

    def deleting(state: State, command: Redrive) -> RedriveResult:
        result = original(state, command)
        state.delete(
            state.queue(command.queue).partition, [entry.sequence for entry in command.entries]
        )
        return result

    with patch.object(redrive, "redrive", deleting):
        yield


@contextmanager
def redrive_duplicates() -> Iterator[None]:
    """What moves stays where it was as well."""
    original = Queue.remove_pending

    def remove_pending(
        self: Queue, spec: Spec, sequence: int, place: int
    ) -> tuple[Message, KeyWeight | None] | None:
        removed = original(self, spec, sequence, place)
        if removed is not None and removed[0].status is Status.READY:
            self.add_ready(copy(removed[0]))
        return removed

    with patch.object(Queue, "remove_pending", remove_pending):
        yield


@contextmanager
def redrive_takes_leased() -> Iterator[None]:
    """A consumer's lease does not keep its message from being moved."""
    original = Queue.remove_pending

    def remove_pending(
        self: Queue, spec: Spec, sequence: int, place: int
    ) -> tuple[Message, KeyWeight | None] | None:
        leased = self.leased.get(sequence)
        if leased is None:
            return original(self, spec, sequence, place)
        self.remove_leased(leased)
        return leased, None

    with patch.object(Queue, "remove_pending", remove_pending):
        yield


@contextmanager
def redrive_keeps_attempts() -> Iterator[None]:
    """The attempts that were used up count on."""
    original = redrive._begin_anew

    def begin_anew(message: Message, source: Queue, spec: Spec) -> None:
        attempts = message.attempts
        original(message, source, spec)
        message.attempts = attempts

    with patch.object(redrive, "_begin_anew", begin_anew):
        yield


@contextmanager
def redrive_keeps_places() -> Iterator[None]:
    """What comes back stands where it stood, before what came since."""
    original = redrive._admit

    def admit(state: State, message: Message, timing: Timing) -> tuple[int, int]:
        with patch.object(State, "renew_place", lambda _state, _message: None):
            return original(state, message, timing)

    with patch.object(redrive, "_admit", admit):
        yield


def respec_forgotten() -> AbstractContextManager[None]:
    """What a retry changed is known in memory alone."""
    return drop_mutations(lambda mutation: isinstance(mutation, PutSpecs))


@contextmanager
def respec_told_to_nobody() -> Iterator[None]:
    """A changed message is scheduled anew, and delivered with what it asked for before."""

    def with_metadata(stored: bytes, _spec: Spec, _queue: str) -> bytes:
        return stored

    with patch.object(envelope, "with_metadata", with_metadata):
        yield


@contextmanager
def decided_delay_ignored() -> Iterator[None]:
    """The queue's backoff comes before what a script said."""
    original = settlement._delay_ms

    def delay_ms(
        queue: Queue, message: Message, command: Settle, _decision: FailureDecision | None
    ) -> int:
        return original(queue, message, command, None)

    with patch.object(settlement, "_delay_ms", delay_ms):
        yield


LETTERS: Sequence[Planted] = tuple(
    Planted(plant.__name__, plant, checker)
    for plant, checker in (
        (redrive_loses_what_is_stored, "disk"),
        (redrive_duplicates, "counts"),
        (redrive_takes_leased, "redrive"),
        (redrive_keeps_attempts, "disk"),
        (redrive_keeps_places, "order"),
        (respec_forgotten, "disk"),
        (respec_told_to_nobody, "disk"),
        (decided_delay_ignored, "timers"),
    )
)
