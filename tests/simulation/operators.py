"""Who looks after the broker: queues, single messages, dead letters, settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fila.core import commands as c
from fila.core.records import Entry
from fila.model import NS_PER_MS, NS_PER_S
from tests.simulation.books import Place
from tests.simulation.clients import Call, ignore
from tests.simulation.shapes import HOUR_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.world import Broker, World


@dataclass(frozen=True, slots=True)
class Found:
    """A message that an operator looked up, maybe in vain."""

    queue: str
    sequence: int
    partition: int
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """What an operator looked up of a dead-letter queue, oldest first."""

    entries: Sequence[Entry]
    # As the broker numbers them, and as the books do.
    core_places: Sequence[int]
    places: Sequence[Place]

    @property
    def sequences(self) -> list[int]:
        """Which they are."""
        return [entry.sequence for entry in self.entries]


class Operator:
    """Creates, changes, empties and deletes; looks up dead letters, and sends them back."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._actions = (
            (self._create, 6),
            (self._update, 4),
            (self._pause, 4),
            (self._purge, 2),
            (self._delete, 2),
            (self._remove, 5),
            (self._reschedule, 5),
            (self._configure, 2),
            (self._redrive, 12),
        )
        # A redrive whose look-up is done, with the run of the broker that it was done in.
        self._looked_up: tuple[Broker, c.Redrive] | None = None

    def act(self) -> None:
        """Do one of those things."""
        actions, weights = zip(*self._actions, strict=True)
        chosen: Callable[[], None] = self.world.rng.choices(actions, weights)[0]
        chosen()

    def create(self, queue: str) -> None:
        """Create a queue."""
        settings = self.world.palette.settings()
        call = Call(f"create {queue}", ignore)
        self.world.submit(c.CreateQueue(tag=call, queue=queue, settings=settings))

    def update(self) -> None:
        """Change a queue's settings."""
        self._update()

    def resume_all(self) -> None:
        """Let everything go on."""
        for queue in self.world.broker.scheduler.queue_names():
            call = Call(f"resume {queue}", ignore)
            self.world.submit(c.PauseQueue(tag=call, queue=queue, paused=False))

    def lift_all(self) -> None:
        """Take all limits away."""
        for name in self.world.palette.throttle_names:
            self._set(f"throttle:{name}:rate", "")

    def limit(self, name: str = "") -> None:
        """Set a limit, change it, take it away, or ask for what is none."""
        rng, shape = self.world.rng, self.world.shape
        name = name or rng.choice(self.world.palette.throttle_names)
        if rng.random() < shape.odd_limits:
            which = rng.choice(("rate", "burst"))
            self._set(f"throttle:{name}:{which}", rng.choice(("", "nan", "-1", "1e9999", "0x1")))
        elif rng.random() < shape.odd_limits:
            self._set(f"throttle:{name}:rate", "")
        else:
            self._set(f"throttle:{name}:burst", rng.choice(shape.bursts))
            self._set(f"throttle:{name}:rate", rng.choice(shape.rates))

    def _any_queue(self) -> str:
        names = [name for name in self.world.shape.queues if not name.endswith(".dlq")]
        dlqs = [f"{name}.dlq" for name in names]
        return self.world.rng.choice([*self.world.shape.queues, *names, *dlqs])

    def _create(self) -> None:
        self.create(self.world.rng.choice(self.world.shape.queues))

    def _update(self) -> None:
        queue, settings = self._any_queue(), self.world.palette.settings()
        call = Call(f"update {queue} {settings}", ignore)
        self.world.submit(c.UpdateQueue(tag=call, queue=queue, settings=settings))

    def _pause(self) -> None:
        queue, paused = self._any_queue(), self.world.rng.random() < 0.4
        call = Call(f"pause {queue} {paused}", ignore)
        self.world.submit(c.PauseQueue(tag=call, queue=queue, paused=paused))

    def _purge(self) -> None:
        queue, leased = self._any_queue(), self.world.rng.random() < 0.5
        call = Call(f"purge {queue} {leased}", ignore)
        self.world.submit(c.PurgeQueue(tag=call, queue=queue, include_leased=leased))

    def _delete(self) -> None:
        queue, keep = self._any_queue(), self.world.rng.random() < 0.5
        call = Call(f"delete {queue} {keep}", ignore)
        self.world.submit(c.DeleteQueue(tag=call, queue=queue, keep_dead_letters=keep))
        if self.world.rng.random() < 0.5:
            self.create(queue)

    def _remove(self) -> None:
        found = self.world.some_message()
        if found is not None:
            self.world.submit(
                c.RemoveMessage(
                    tag=Call(f"remove {found.queue} {found.sequence}", ignore),
                    queue=found.queue,
                    message_id=str(found.sequence),
                    partition=found.partition,
                    entry=found.entry,
                )
            )

    def _reschedule(self) -> None:
        found = self.world.some_message(delayed=True)
        if found is not None:
            rng = self.world.rng
            span = rng.choice((-HOUR_NS, 0, rng.randrange(NS_PER_S), rng.randrange(HOUR_NS)))
            at = self.world.wall + span
            self.world.submit(
                c.Reschedule(
                    tag=Call(f"reschedule {found.queue} {found.sequence} {at}", ignore),
                    queue=found.queue,
                    message_id=str(found.sequence),
                    partition=found.partition,
                    entry=found.entry,
                    deliver_at_ns=max(NS_PER_MS, at),
                )
            )

    def _configure(self) -> None:
        rng = self.world.rng
        key, value = rng.choice(("a", "b:c", "d")), rng.choice(("", "1", "x y"))
        self._set(key, value)

    def _set(self, key: str, value: str) -> None:
        call = Call(f"config {key}={value}", ignore)
        self.world.submit(c.SetConfig(tag=call, key=key, value=value))

    def _redrive(self) -> None:
        """Look dead letters up and have them moved, at once or some time later."""
        if self._looked_up is not None:
            (broker, command), self._looked_up = self._looked_up, None
            if broker is self.world.broker:
                self.world.submit(command)
            return
        queue, rng = self._any_dlq(), self.world.rng
        found = self.world.dead_letters(queue, rng.choice((1, 3, 100)))
        if found is None:
            return
        palette = self.world.palette
        hooked = rng.random() < 0.4
        timings = {index: palette.timing(self.world.wall) for index in range(len(found.entries))}
        given = {index: timing for index, timing in timings.items() if timing}
        call = Call(f"redrive {queue} {found.sequences}", ignore, places=found.places)
        command = c.Redrive(
            tag=call,
            queue=queue,
            partition=self.world.known(queue),
            entries=found.entries,
            places=found.core_places,
            specs=[palette.spec() if hooked else entry.spec for entry in found.entries],
            timings={index: replace(given[index], deliver_at_ns=None) for index in given},
        )
        if rng.random() < 0.5:
            self._looked_up = (self.world.broker, command)
        else:
            self.world.submit(command)

    def _any_dlq(self) -> str:
        """Mostly a dead-letter queue."""
        queue = self._any_queue()
        wrong = queue.endswith(".dlq") or self.world.rng.random() < 0.05
        return queue if wrong else f"{queue}.dlq"
