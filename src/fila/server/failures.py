"""Failed deliveries on their way to the core: the queue's script is asked what to do with each."""

from collections.abc import Callable, Sequence
from typing import cast

from fila.core.commands import Action, Settle
from fila.core.effects import Reply
from fila.hooks.calls import FailureCall, HookKind
from fila.model import FailureDecision
from fila.server.hook_line import Call, Decision, Job
from fila.server.runner import Answer, Reserved
from fila.server.shell import Shell
from fila.wire import envelope
from fila.wire.outline import outline_of


class Failures:
    """Lets settles pass; nacks of a queue with a script wait for what it says."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def submit(self, command: Settle) -> None:
        """Hand a settle over, at once or when it is decided."""
        line = self._shell.policy.line(command.queue, HookKind.ON_FAILURE)
        # Whoever sends a message to the dead letters has decided already.
        if line is None or command.action is not Action.NACK or command.dead_letter:
            self._shell.runner.submit(command)
            return
        nack = _Nack(self._shell, command)
        job = Job(prepare=nack.calls, done=nack.decide, count=len(command.sequences))
        self._shell.policy.submit(line, job)

    async def ask(self, make: Callable[[Answer], Settle]) -> Reply:
        """The same, and wait for the reply; an error is raised."""
        reserved = Reserved(self._shell.runner, make)
        self.submit(reserved.command)
        return await reserved.reply()


class _Nack:
    """Deliveries that failed together. Those that are not leased any more are not asked about."""

    def __init__(self, shell: Shell, command: Settle) -> None:
        self._shell = shell
        self._command = command
        # Where in the command the deliveries stand that the script is asked about.
        self._asked: list[int] = []

    def calls(self) -> Sequence[Call]:
        """What the script is asked."""
        command, scheduler = self._command, self._shell.scheduler
        live = scheduler.live_leases(command)
        if not live:
            return []
        sequences = [command.sequences[index] for index, _ in live]
        partition = scheduler.partition_of(command.queue)
        stored = self._shell.storage.read_messages(partition, sequences)
        calls: list[Call] = []
        for (index, attempts), data in zip(live, stored, strict=True):
            message = envelope.read_stored(data)
            # Without its bytes the broker would ask about something it can't name.
            if message is not None:
                self._asked.append(index)
                headers = outline_of(message.headers, 0)
                calls.append(FailureCall(headers, message.id, attempts + 1, command.error))
        return calls

    def decide(self, decisions: Sequence[Decision | None]) -> None:
        """Hand the nack over with what the script said."""
        command = self._command
        if any(decisions):
            column: list[FailureDecision | None] = [None] * len(command.sequences)
            for index, decision in zip(self._asked, decisions, strict=True):
                column[index] = cast("FailureDecision | None", decision)
            command.decisions = column
        self._shell.runner.submit(command)
