"""The calls that store messages."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import cast

from fila.core.commands import Enqueue
from fila.core.effects import Reply
from fila.hooks.calls import HookKind
from fila.model import EnqueueDecision, Outcome, ProducerSequence
from fila.server.boundary import Context
from fila.server.hook_line import Call, Decision, HookLine, Job
from fila.server.rulings import Rulings
from fila.server.runner import Answer, Reserved
from fila.server.shell import Shell
from fila.wire import reply
from fila.wire._pb import service_pb2 as pb
from fila.wire.intake import Columns, Intake, producer_sequence
from fila.wire.names import check_queue_name
from fila.wire.request import parse
from fila.wire.status import error_of


class EnqueueService:
    """Enqueue and EnqueueBatch."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._intake = Intake(shell.limits)
        self._rulings = Rulings()

    async def enqueue(self, data: bytes, _context: Context) -> bytes:
        """Store one message."""
        request = parse(pb.EnqueueRequest, data)
        queue, producer = request.queue, _producer(request)
        self._check(queue, len(data))
        line = self._shell.policy.line(queue, HookKind.ON_ENQUEUE)
        columns = self._intake.one(request, outlined=line is not None)
        command = partial(_command, queue, columns, producer)
        outcome = await self._store(command, columns, len(data), line)
        if outcome.errors:
            error = outcome.errors[0]
            raise error_of(error.code, error.message)
        partition = self._shell.scheduler.partition_of(queue)
        message_id = reply.accepted_id(outcome, partition)
        return pb.EnqueueResponse(message_id=message_id).SerializeToString()

    async def enqueue_batch(self, data: bytes, _context: Context) -> bytes:
        """Store many messages, each succeeding or failing by itself."""
        request = parse(pb.EnqueueBatchRequest, data)
        queue, producer = request.queue, _producer(request)
        self._check(queue, len(data))
        line = self._shell.policy.line(queue, HookKind.ON_ENQUEUE)
        columns = self._intake.many(request, outlined=line is not None)
        if not columns.bodies and not columns.refused:
            return b""
        command = partial(_command, queue, columns, producer)
        outcome = await self._store(command, columns, len(data), line)
        # Looked up only now: ids of a queue that was replaced meanwhile lead nowhere anyway.
        return reply.accepted(outcome, self._shell.scheduler.partition_of(queue))

    def _check(self, queue: str, size: int) -> None:
        check_queue_name(queue, self._shell.limits)
        # Before any work on the messages: an unknown queue refuses the call, not its items.
        self._shell.scheduler.partition_of(queue)
        self._shell.disk.admit(size)

    async def _store(
        self,
        command: Callable[[Answer], Enqueue],
        columns: Columns,
        size: int,
        line: HookLine | None,
    ) -> Outcome:
        runner = self._shell.runner
        if line is None:
            outcome = await runner.ask(command, size)
        else:
            line.admit(len(columns.bodies), size)
            outcome = await self._decide(line, columns, runner.reserve(command, size))
        assert isinstance(outcome, Outcome)
        return outcome

    def _decide(
        self, line: HookLine, columns: Columns, reserved: Reserved[Enqueue]
    ) -> Awaitable[Reply]:
        """Ask the script about each message before the command goes to the core."""

        def prepare() -> Sequence[Call] | None:
            # Once asked about, messages are stored even if the caller has gone: it will repeat the
            # call, and be given this outcome instead of the script's time once more.
            if reserved.is_abandoned:
                return None
            return [] if self._shell.runner.is_answered(reserved.command) else columns.outlines

        def done(decisions: Sequence[Decision | None]) -> None:
            self._rulings.apply(columns, cast("Sequence[EnqueueDecision | None]", decisions))
            reserved.submit()

        job = Job(prepare=prepare, done=done, count=len(columns.bodies), size=reserved.size)
        self._shell.policy.submit(line, job)
        return reserved.reply()


def _command(
    queue: str, columns: Columns, producer: ProducerSequence | None, answer: Answer
) -> Enqueue:
    return Enqueue(
        tag=answer,
        queue=queue,
        bodies=columns.bodies,
        specs=columns.specs,
        timings=columns.timings,
        refused=tuple(columns.refused),
        producer=producer,
    )


def _producer(request: pb.EnqueueRequest | pb.EnqueueBatchRequest) -> ProducerSequence | None:
    return producer_sequence(request.producer) if request.HasField("producer") else None
