"""The scheduler: commands in, effects out; the same in at the same times gives the same out.

One pass: what is due falls due, the commands are carried out in order, then messages and consumers
are brought together. Nothing here waits, reads a clock, or touches a disk.
"""

from collections.abc import Sequence
from typing import assert_never

from fila.core import (
    administration,
    admission,
    delivery,
    expiry,
    recovery,
    redrive,
    settlement,
    streams,
    views,
)
from fila.core import commands as c
from fila.core.backlog import Backlog
from fila.core.effects import Effects, Reply
from fila.core.explain import Explainer
from fila.core.explanation import Explanation
from fila.core.message import Message
from fila.core.records import Entry, Progress, Recovered
from fila.core.state import State
from fila.core.views import ConsumerView, QueueStats, QueueSummary
from fila.errors import MessageNotFoundError, RejectedError
from fila.model import ProducerSequence, QueueSettings


class Scheduler:
    """The whole mind of one broker."""

    def __init__(self, *, epoch: int, quantum: int = 1) -> None:
        self._state = State(epoch=epoch, quantum=quantum)

    def restore(self, recovered: Recovered, *, now_ns: int, wall_ns: int) -> None:
        """Start from what is stored; once, before anything else."""
        self._state.begin_pass(now_ns=now_ns, wall_ns=wall_ns)
        recovery.restore(self._state, recovered)

    def handle(self, commands: Sequence[c.Command], *, now_ns: int, wall_ns: int) -> Effects:
        """One pass over everything that has arrived."""
        state = self._state
        state.begin_pass(now_ns=now_ns, wall_ns=wall_ns)
        expiry.expire(state)
        for command in commands:
            self._carry_out(command)
        delivery.deliver(state)
        return state.end_pass()

    def next_due_ns(self, *, now_ns: int, wall_ns: int) -> int | None:
        """How long from now `handle` has work without a command; None for never."""
        state = self._state
        if state.touched or state.freed:
            return 0
        waits = []
        steady = state.steady_timers.next_due_ns()
        if steady is not None:
            waits.append(steady - now_ns)
        wall = state.wall_timers.next_due_ns()
        if wall is not None:
            waits.append(wall - wall_ns)
        throttled = state.throttle.next_due_ns()
        if throttled is not None:
            waits.append(throttled - now_ns)
        if state.throttle.has_retired or state.remembering:
            waits.append(state.next_sweep_ns - now_ns)
        return max(0, min(waits)) if waits else None

    def partition_of(self, queue: str) -> int:
        """The number under which a queue's messages are stored."""
        return self._state.queue(queue).partition.number

    def needs_lookup(self, queue: str, key: ProducerSequence) -> bool:
        """Whether the store may know an outcome that an enqueue must be given."""
        known = self._state.queues.get(queue)
        return known is not None and known.partition.producers.may_repeat(key)

    def live_leases(self, command: c.Settle) -> list[tuple[int, int]]:
        """Which of the leases that a settle names are live, by index, and their attempts so far."""
        return settlement.live_leases(self._state, command)

    def settings(self, queue: str) -> QueueSettings:
        """How a queue is set."""
        return self._state.queue(queue).settings

    def is_paused(self, queue: str) -> bool:
        """Whether a queue's deliveries are stopped."""
        return self._state.queue(queue).paused

    def source_of(self, dlq: str) -> str:
        """The queue that dead letters go back to; refused if there is none."""
        return redrive.source_of(self._state.queue(dlq)).name

    def backlog(self, queue: str) -> Backlog:
        """What waits in a queue now."""
        return Backlog(self._state.queue(queue))

    @property
    def config(self) -> dict[str, str]:
        """The runtime settings; to be read only."""
        return self._state.config

    def queue_names(self) -> list[str]:
        """All queues, by name."""
        return sorted(self._state.queues)

    def summary(self, queue: str) -> QueueSummary:
        """One queue in a line."""
        return views.summarize(self._state.queue(queue))

    def stats(self, queue: str, *, now_ns: int) -> QueueStats:
        """One queue with its keys."""
        return views.stats_of(self._state.queue(queue), now_ns=now_ns)

    def consumers(self, queue: str | None, *, now_ns: int) -> list[ConsumerView]:
        """All consumers, or those of one queue."""
        found = None if queue is None else self._state.queue(queue)
        return views.consumers_of(self._state, found, now_ns=now_ns)

    def find(self, queue: str, message_id: str, entry: Entry, progress: Progress | None) -> Message:
        """A message of a queue or of the dead-letter queue beside it, by what is stored of it."""
        asked = self._state.queue(queue)
        partition = asked.partition
        home = partition.dlq if (progress or entry).in_dlq else partition.main
        place = progress.place if progress else entry.sequence
        found = home.find(entry.spec, entry.sequence, place) if home else None
        if home is None or found is None:
            raise MessageNotFoundError(queue, message_id)
        if home is not asked and found.dead is None:
            where = "no dead letter" if asked.is_dlq else "none of this queue"
            raise MessageNotFoundError(
                queue, message_id, f"it is {where}; ask for it in queue {home.name!r}"
            )
        return found

    def explain(
        self,
        queue: str,
        *,
        message: Message | None = None,
        key: str = "",
        now_ns: int,
        wall_ns: int,
    ) -> Explanation:
        """Why a message, a fairness key, or anything of a queue is not delivered now."""
        explainer = Explainer(self._state, self._state.queue(queue), now_ns=now_ns, wall_ns=wall_ns)
        if message is not None:
            return explainer.message(message)
        return explainer.key(key) if key else explainer.whole()

    def _carry_out(self, command: c.Command) -> None:
        """Carry out one command whole, or refuse it before anything has changed."""
        try:
            reply = self._dispatch(command)
        except RejectedError as error:
            reply = error
        if not isinstance(command, c.OpenConsumer | c.SetCredit | c.CloseConsumer):
            self._state.effects.replies.append((command.tag, reply))

    def _dispatch(self, command: c.Command) -> Reply:
        state = self._state
        match command:
            case c.Enqueue():
                return admission.accept(state, command)
            case c.Settle():
                return settlement.settle(state, command)
            case c.Redrive():
                return redrive.redrive(state, command)
            case c.PurgeQueue():
                return administration.purge_queue(state, command)
            case c.SetConfig():
                return administration.set_config(state, command)
            case c.OpenConsumer() | c.Subscribe() | c.Unsubscribe():
                self._stream(command)
            case c.SetCredit() | c.CloseConsumer():
                self._stream(command)
            case _:
                self._administer(command)
        return None

    def _stream(
        self,
        command: c.OpenConsumer | c.Subscribe | c.Unsubscribe | c.SetCredit | c.CloseConsumer,
    ) -> None:
        state = self._state
        match command:
            case c.OpenConsumer():
                streams.open_consumer(state, command)
            case c.Subscribe():
                streams.subscribe(state, command)
            case c.Unsubscribe():
                streams.unsubscribe(state, command)
            case c.SetCredit():
                streams.set_credit(state, command)
            case c.CloseConsumer():
                streams.close_consumer(state, command)
            case _:
                assert_never(command)

    def _administer(
        self,
        command: c.CreateQueue
        | c.UpdateQueue
        | c.DeleteQueue
        | c.PauseQueue
        | c.RemoveMessage
        | c.Reschedule,
    ) -> None:
        state = self._state
        match command:
            case c.CreateQueue():
                administration.create_queue(state, command)
            case c.UpdateQueue():
                administration.update_queue(state, command)
            case c.DeleteQueue():
                administration.delete_queue(state, command)
            case c.PauseQueue():
                administration.pause_queue(state, command)
            case c.RemoveMessage():
                administration.remove_message(state, command)
            case c.Reschedule():
                administration.reschedule(state, command)
            case _:
                assert_never(command)
