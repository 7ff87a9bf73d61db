"""A runner over a store in memory, whose disk is as slow or as broken as a test wants."""

import threading
from collections.abc import AsyncIterator, Sequence

import pytest

from fila.core.effects import Mutation
from fila.core.scheduler import Scheduler
from fila.errors import StorageError
from fila.model import Limits
from fila.server.runner import Fsync, Runner
from fila.storage.memory import MemoryStorage
from fila.testing.clock import ManualClock


class Disk(MemoryStorage):
    """Counts syncs, holds them back, and fails when told to."""

    def __init__(self) -> None:
        self.syncs = 0
        self.fails = False
        self.open_gate = threading.Event()
        self.open_gate.set()
        self.synced = threading.Event()
        super().__init__()

    def write(self, mutations: Sequence[Mutation]) -> None:
        if self.fails:
            raise StorageError("the disk is on fire")
        super().write(mutations)

    def sync(self) -> None:
        assert self.open_gate.wait(10)
        if self.fails:
            raise StorageError("the disk is on fire")
        self.syncs += 1
        super().sync()
        self.synced.set()


class World:
    """A runner with what it runs over."""

    def __init__(self, fsync: Fsync, limits: Limits) -> None:
        self.disk = Disk()
        self.clock = ManualClock()
        self.failures: list[BaseException] = []
        scheduler = Scheduler(epoch=self.disk.epoch)
        scheduler.restore(
            self.disk.recover(), now_ns=self.clock.now_ns(), wall_ns=self.clock.wall_ns()
        )
        self.disk.syncs = 0
        self.disk.synced.clear()
        self.runner = Runner(
            scheduler=scheduler,
            storage=self.disk,
            clock=self.clock,
            limits=limits,
            fsync=fsync,
            fsync_interval_ms=1,
            on_failure=self.failures.append,
        )
        self.runner.start()


@pytest.fixture
def fsync() -> Fsync:
    return Fsync.ALWAYS


@pytest.fixture
def limits() -> Limits:
    return Limits(commands_waiting_max=5)


@pytest.fixture
async def world(fsync: Fsync, limits: Limits) -> AsyncIterator[World]:
    made = World(fsync, limits)
    yield made
    made.disk.open_gate.set()
    made.runner.close()
