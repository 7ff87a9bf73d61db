"""Owns the core: collects commands, runs them in passes, and lets out what each pass may let out.

One pass takes all that has arrived, up to an amount that does not hold the loop for long: the
scheduler decides, one batch is written, and the gate says what may leave before the disk has it.
The wait for the disk happens in a thread of its own, one at a time, and covers every pass before.
If a pass or a sync fails, memory and disk may differ: nothing leaves any more, the process ends.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from functools import partial
from typing import Generic, Protocol, TypeAlias, TypeVar, cast

from fila.core.commands import (
    Action,
    CloseConsumer,
    Command,
    Enqueue,
    OpenConsumer,
    Redrive,
    SetCredit,
    Settle,
)
from fila.core.effects import Closed, Delivery, Reply
from fila.core.gate import Gate, Released
from fila.core.scheduler import Scheduler
from fila.errors import ExhaustedError, FilaError, ShuttingDownError
from fila.model import NS_PER_MS, Limits
from fila.server.clock import Clock
from fila.storage.port import Storage

log = logging.getLogger(__name__)

# Messages handled in one pass: some 10 ms of work.
_PASS_MESSAGES_MAX = 4096
# Enqueues below it gather while the disk is busy.
_COMPANY_BYTES = 64 * 1024
# Bytes of messages that wait for the core, whatever their number.
_INBOX_BYTES_MAX = 256 * 1024 * 1024
# The timer's resolution, and the longest it sleeps at a stretch.
_TIMER_MIN_S = 0.001
_TIMER_MAX_S = 3600.0

Answer: TypeAlias = Callable[[Reply], None]
C = TypeVar("C", bound=Command)
_UNANSWERED = (OpenConsumer, SetCredit, CloseConsumer)


class Fsync(Enum):
    """When what was written is forced to the disk."""

    ALWAYS = "always"
    INTERVAL = "interval"
    NEVER = "never"


class Reserved(Generic[C]):
    """A command that was admitted and is handed over later, when it is decided in full."""

    def __init__(self, runner: "Runner", make: Callable[[Answer], C], size: int = 0) -> None:
        self._runner = runner
        self._future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.command = make(partial(_resolve, self._future))
        self.size = size

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody waits for the reply any more."""
        return self._future.cancelled()

    def submit(self) -> None:
        """Hand it over; it is not refused any more."""
        self._runner.enter(self.command, self.size)

    async def reply(self) -> Reply:
        """Wait for its reply; an error is raised."""
        return _raised(await self._future)


class Sink(Protocol):
    """Where a consumer's deliveries go. Neither call may block or raise."""

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Take in what is to be sent."""

    def close_queue(self, closed: Closed) -> None:
        """The broker ended a subscription."""


class Runner:
    """The loop around the scheduler. All methods belong to the event loop's thread."""

    def __init__(
        self,
        *,
        scheduler: Scheduler,
        storage: Storage,
        clock: Clock,
        limits: Limits,
        fsync: Fsync = Fsync.ALWAYS,
        fsync_interval_ms: int = 100,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.scheduler = scheduler
        self.storage = storage
        self.clock = clock
        self._limits = limits
        self._fsync = fsync
        self._fsync_interval_s = fsync_interval_ms / 1000
        self._on_failure = on_failure
        self._gate = Gate(hold_replies=fsync is Fsync.ALWAYS)
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="fila-sync")
        self._inbox: deque[tuple[Command, int]] = deque()
        self._inbox_bytes = 0
        self._unanswered = 0
        self._sinks: dict[int, Sink] = {}
        self._next_consumer = 1
        self._pass_due = False
        self._syncing = False
        self._draining = False
        self._failed = False
        self._timer: asyncio.TimerHandle | None = None
        self._idle_waiters: list[asyncio.Future[None]] = []

    @property
    def draining(self) -> bool:
        """Whether the broker is stopping."""
        return self._draining

    def waiting_bytes(self) -> int:
        """Of messages that wait for a pass."""
        return self._inbox_bytes

    def start(self) -> None:
        """Begin: timers that ran out while the broker was down are due now."""
        self.wake()

    def wake(self) -> None:
        """Run a pass soon, whether or not something arrived."""
        if not self._pass_due and not self._failed:
            self._pass_due = True
            self._loop.call_soon(self._turn)

    def submit(self, command: Command, size: int = 0) -> None:
        """Hand over a command of so many bytes; its tag is an `Answer`, called with the reply.

        Settles, and what only concerns an open stream, are never refused.
        """
        if not isinstance(command, (*_UNANSWERED, Settle)):
            self._admit(size)
        self.enter(command, size)

    def enter(self, command: Command, size: int = 0) -> None:
        """The same for a command that was admitted before."""
        self._unanswered += not isinstance(command, _UNANSWERED)
        self._inbox.append((command, size))
        self._inbox_bytes += size
        if not self._can_wait(command):
            self.wake()

    async def ask(
        self,
        make: Callable[[Answer], Command],
        size: int = 0,
        *,
        then: Callable[[], None] | None = None,
    ) -> Reply:
        """Hand over a command and wait for its reply; an error is raised.

        `then` is called when it was carried out, whether or not the caller still waits by then.
        """
        future: asyncio.Future[Reply] = self._loop.create_future()
        answer = partial(_resolve, future)
        self.submit(make(answer if then is None else partial(_follow, then, answer)), size)
        return _raised(await future)

    def reserve(self, make: Callable[[Answer], C], size: int = 0) -> Reserved[C]:
        """Admit a command now that will be handed over later."""
        self._admit(size)
        return Reserved(self, make, size)

    def is_answered(self, command: Enqueue) -> bool:
        """Whether an enqueue is the repeat of one that has its outcome already."""
        self._look_up_outcome(command)
        return command.known is not None

    def attach(self, sink: Sink) -> int:
        """Give a new consumer's number to a sink."""
        consumer = self._next_consumer
        self._next_consumer += 1
        self._sinks[consumer] = sink
        return consumer

    def detach(self, consumer: int) -> None:
        """Nothing more goes to this consumer's sink; what still comes for it is given back."""
        self._sinks.pop(consumer, None)

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Release leases whose messages never left."""
        self._settle_all(deliveries, Action.RELEASE)

    def forget(self, deliveries: Sequence[Delivery]) -> None:
        """End leases of messages that the disk has lost: nobody could ever settle them."""
        self._settle_all(deliveries, Action.ACK)

    def refuse_new_work(self) -> None:
        """From now on only settles, and what ends streams, are taken."""
        self._draining = True

    async def drain(self) -> None:
        """Wait until everything that was taken is done, and on disk where that was promised."""
        while not self._is_idle() and not self._failed:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._idle_waiters.append(waiter)
            self.wake()
            await waiter

    def close(self) -> None:
        """No pass and no sync runs any more; the storage stays open."""
        self._failed = True
        if self._timer is not None:
            self._timer.cancel()
        self._executor.shutdown(wait=True)

    def _settle_all(self, deliveries: Sequence[Delivery], action: Action) -> None:
        by_queue: dict[str, list[Delivery]] = {}
        for delivery in deliveries:
            by_queue.setdefault(delivery[0].queue.name, []).append(delivery)
        for queue, batch in by_queue.items():
            self.submit(
                Settle(
                    tag=_ignore,
                    queue=queue,
                    action=action,
                    sequences=[message.sequence for message, _ in batch],
                    tokens=[token for _, token in batch],
                )
            )

    def _admit(self, size: int) -> None:
        if self._draining:
            raise ShuttingDownError
        if self._unanswered >= self._limits.commands_waiting_max:
            raise ExhaustedError(
                f"{self._unanswered} commands are waiting (limits.commands_waiting_max); "
                "try again a little later"
            )
        if self._inbox and self._inbox_bytes + size > _INBOX_BYTES_MAX:
            raise ExhaustedError("too many bytes are waiting; try again a little later")

    def _can_wait(self, command: Command) -> bool:
        """Whether an enqueue may wait for company until the sync that is running has ended.

        Nothing of it can be seen before a sync of its own, which begins no sooner. A large one is
        taken at once: then the work on it and the wait for the disk overlap.
        """
        return (
            isinstance(command, Enqueue)
            and self._syncing
            and self._fsync is Fsync.ALWAYS
            and self._inbox_bytes < _COMPANY_BYTES
        )

    def _turn(self) -> None:
        if self._pass_due:
            self._run_pass()

    def _run_pass(self) -> None:
        self._pass_due = False
        if self._failed:
            return
        commands = self._draw()
        now_ns, wall_ns = self.clock.now_ns(), self.clock.wall_ns()
        try:
            self._look_up_outcomes(commands)
            effects = self.scheduler.handle(commands, now_ns=now_ns, wall_ns=wall_ns)
            if effects.mutations:
                self.storage.write(effects.mutations)
        except Exception as error:  # noqa: BLE001 — supervision: whatever it is, it ends the process
            self._fail(error)
            return
        self._let_out(self._gate.pass_through(effects))
        self._sync_if_needed()
        if self._inbox:
            self.wake()
        else:
            self._arm_timer(now_ns, wall_ns)
        self._tell_idle()

    def _draw(self) -> list[Command]:
        """What the next pass handles."""
        commands: list[Command] = []
        messages = 0
        while self._inbox and messages < _PASS_MESSAGES_MAX:
            command, size = self._inbox.popleft()
            self._inbox_bytes -= size
            commands.append(command)
            messages += _message_count(command)
        return commands

    def _look_up_outcomes(self, commands: Sequence[Command]) -> None:
        """Only now can a repeat be told from a first call: the pass before has been written."""
        for command in commands:
            if isinstance(command, Enqueue):
                self._look_up_outcome(command)

    def _look_up_outcome(self, command: Enqueue) -> None:
        queue, producer = command.queue, command.producer
        command.known = None
        if producer is not None and self.scheduler.needs_lookup(queue, producer):
            partition = self.scheduler.partition_of(queue)
            command.known = self.storage.read_outcome(partition, producer)

    def _let_out(self, released: Released) -> None:
        for tag, reply in released.replies:
            self._unanswered -= 1
            cast(Answer, tag)(reply)
        for consumer, deliveries in released.deliveries.items():
            sink = self._sinks.get(consumer)
            if sink is None:
                self.give_back(deliveries)
            else:
                sink.deliver(deliveries)
        for closed in released.closed:
            sink = self._sinks.get(closed.consumer)
            if sink is not None:
                sink.close_queue(closed)

    def _sync_if_needed(self) -> None:
        if self._syncing or not self._gate.needs_sync or self._fsync is Fsync.NEVER:
            return
        self._syncing = True
        if self._fsync is Fsync.INTERVAL:
            self._loop.call_later(self._fsync_interval_s, self._begin_sync)
        else:
            self._begin_sync()

    def _begin_sync(self) -> None:
        if self._failed:
            return
        generation = self._gate.begin_sync()
        synced = self._loop.run_in_executor(self._executor, self.storage.sync)
        synced.add_done_callback(partial(self._end_sync, generation))

    def _end_sync(self, generation: int, synced: "asyncio.Future[None]") -> None:
        self._syncing = False
        if self._failed or synced.cancelled():
            return
        error = synced.exception()
        if error is not None:
            self._fail(error)
            return
        self._let_out(self._gate.end_sync(generation))
        if self._inbox:
            # Before the next sync, so that it covers what has gathered during this one.
            self._run_pass()
        else:
            self._sync_if_needed()
            self._tell_idle()

    def _arm_timer(self, now_ns: int, wall_ns: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ns = self.scheduler.next_due_ns(now_ns=now_ns, wall_ns=wall_ns)
        if due_ns == 0:
            self.wake()
        elif due_ns is not None:
            # Rounded up: a timer that fires early finds nothing due and would spin.
            delay_s = -(-due_ns // NS_PER_MS) / 1000
            delay_s = min(max(delay_s, _TIMER_MIN_S), _TIMER_MAX_S)
            self._timer = self._loop.call_later(delay_s, self.wake)

    def _is_idle(self) -> bool:
        if self._inbox or self._pass_due:
            return False
        return self._fsync is not Fsync.ALWAYS or not (self._syncing or self._gate.needs_sync)

    def _tell_idle(self) -> None:
        if self._idle_waiters and self._is_idle():
            self._wake_waiters()

    def _wake_waiters(self) -> None:
        waiters, self._idle_waiters = self._idle_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _fail(self, error: BaseException) -> None:
        self._failed = True
        self._wake_waiters()
        self._on_failure(error)


def _message_count(command: Command) -> int:
    if isinstance(command, Enqueue):
        return len(command.bodies) + 1
    if isinstance(command, Settle):
        return len(command.sequences) + 1
    if isinstance(command, Redrive):
        return len(command.entries) + 1
    return 1


def _resolve(future: "asyncio.Future[Reply]", reply: Reply) -> None:
    # The caller may have gone meanwhile.
    if not future.done():
        future.set_result(reply)


def _follow(then: Callable[[], None], answer: Answer, reply: Reply) -> None:
    if not isinstance(reply, FilaError):
        then()
    answer(reply)


def _raised(reply: Reply) -> Reply:
    if isinstance(reply, FilaError):
        raise reply
    return reply


def _ignore(_reply: Reply) -> None:
    """The reply to a command that nobody waits for."""
