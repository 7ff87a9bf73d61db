"""What every service needs, in one place."""

from dataclasses import dataclass, field
from typing import Protocol

from fila.core.scheduler import Scheduler
from fila.errors import FilaError, InvalidArgumentError
from fila.model import DEFAULT_CREDIT, Limits, QueueSettings
from fila.server.disk import DiskWatch
from fila.server.policy import Policy
from fila.server.runner import Runner
from fila.storage.port import Storage


class Stream(Protocol):
    """An open stream, which never ends by itself."""

    def end(self, error: FilaError) -> None:
        """Stop deliveries, answer what was asked, and then refuse with the error."""


@dataclass(slots=True, kw_only=True)
class Shell:
    """The broker's parts, as the services see them."""

    runner: Runner
    disk: DiskWatch
    policy: Policy
    limits: Limits
    queue_defaults: QueueSettings
    streams: set[Stream] = field(default_factory=set)

    @property
    def scheduler(self) -> Scheduler:
        """For look-ups; changes go through the runner."""
        return self.runner.scheduler

    @property
    def storage(self) -> Storage:
        """For reads; writes are the runner's."""
        return self.runner.storage

    def checked_credit(self, credit: int) -> int:
        """The credit that a consumer asks for; 0 is the default."""
        limit = self.limits.credit_max
        if credit > limit:
            raise InvalidArgumentError(
                f"credit is {credit}; the limit is {limit} (limits.credit_max)"
            )
        return credit or min(DEFAULT_CREDIT, limit)

    def consumer_name(self, name: str) -> str:
        """A consumer's name, cut to what a listing can show."""
        printable = "".join(char if char.isprintable() else "?" for char in name)
        return printable[: self.limits.queue_name_bytes_max]
