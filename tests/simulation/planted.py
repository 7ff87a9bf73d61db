"""A planted bug, and the plainest way to plant one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from fila.core.commands import Command
from fila.core.effects import Effects, Mutation
from fila.core.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Planted:
    """A bug, and who must notice it."""

    name: str
    plant: Callable[[], AbstractContextManager[None]]
    checker: str


@contextmanager
def drop_mutations(unwanted: Callable[[Mutation], bool]) -> Iterator[None]:
    """Some of what should be written is not."""
    original = Scheduler.handle

    def handle(
        self: Scheduler, commands: Sequence[Command], *, now_ns: int, wall_ns: int
    ) -> Effects:
        effects = original(self, commands, now_ns=now_ns, wall_ns=wall_ns)
        effects.mutations = [each for each in effects.mutations if not unwanted(each)]
        return effects

    with patch.object(Scheduler, "handle", handle):
        yield
