"""The clients of the kill proof, in a process of their own: they enqueue, consume, ack and retry.

Every line on stdout is one fact, in the order in which this process learned it:

    S n        enqueue of number n begins
    E n id     the enqueue was answered
    U n        its outcome stays unknown
    D n id     a delivery arrived
    A n        its ack was answered

A line "drain" on stdin ends the enqueues; the process ends when nothing more comes.
"""

import asyncio
import itertools
import mmap
import struct
import sys
from pathlib import Path

import fila

QUEUE = "kill"
PRODUCERS = 4
TASKS = 40
CONSUMERS = 2
_ACK_BATCH = 16
# Nothing delivered for so long, after the drain began, means that the queue is empty.
_QUIET_SECONDS = 5.0
# Enqueues not yet drained are bounded, so that the drain at the end is short.
_BACKLOG_MAX = 4000


class Gauge:
    """How many calls are in flight, where the process that kills can read it."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8)
        self._value = 0

    def add(self, change: int) -> None:
        self._value += change
        self._memory[:8] = struct.pack("<q", self._value)


def tell(*facts: object) -> None:
    sys.stdout.write(" ".join(map(str, facts)) + "\n")


class Clients:
    def __init__(self, address: str, gauge: Gauge) -> None:
        self.address = address
        self.gauge = gauge
        self.numbers = itertools.count()
        self.draining = asyncio.Event()
        self.backlog = 0
        self.room = asyncio.Condition()
        self.last_delivery = 0.0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watch_stdin())
            for _ in range(PRODUCERS):
                group.create_task(self.produce())
            consumers = [group.create_task(self.consume()) for _ in range(CONSUMERS)]
            await self.draining.wait()
            await self.wait_until_quiet()
            for consumer in consumers:
                consumer.cancel()

    async def watch_stdin(self) -> None:
        await asyncio.to_thread(sys.stdin.readline)
        self.draining.set()

    async def produce(self) -> None:
        async with fila.AsyncClient(self.address) as client, asyncio.TaskGroup() as group:
            for _ in range(TASKS):
                group.create_task(self.enqueue_until_drained(client))

    async def enqueue_until_drained(self, client: fila.AsyncClient) -> None:
        while not self.draining.is_set():
            async with self.room:
                waiting = self.room.wait_for(
                    lambda: self.backlog < _BACKLOG_MAX or self.draining.is_set()
                )
                await waiting
            await self.enqueue(client, next(self.numbers))

    async def enqueue(self, client: fila.AsyncClient, number: int) -> None:
        tell("S", number)
        self.gauge.add(1)
        try:
            message_id = await client.enqueue(
                QUEUE, b"%d" % number, fairness_key=f"tenant-{number % 7}"
            )
        except fila.errors.OutcomeUnknownError:
            tell("U", number)
        except fila.errors.UnavailableError:
            # Never sent, or refused for load: it is not there, and nobody was told it is.
            tell("U", number)
        else:
            tell("E", number, message_id)
            self.backlog += 1
        finally:
            self.gauge.add(-1)

    async def consume(self) -> None:
        async with fila.AsyncClient(self.address) as client:
            batch: list[fila.Message] = []
            async for message in client.consume(QUEUE, prefetch=_ACK_BATCH):
                self.last_delivery = asyncio.get_running_loop().time()
                tell("D", int(message.payload), message.id)
                batch.append(message)
                if len(batch) >= _ACK_BATCH // 2 or self.draining.is_set():
                    await self.ack(client, batch)
                    batch = []

    async def ack(self, client: fila.AsyncClient, batch: list[fila.Message]) -> None:
        """Ack all and wait for the answers; one refused says nothing certain about the others."""
        self.gauge.add(len(batch))
        try:
            for message in batch:
                await client.ack(message)
            await client.flush()
        except fila.FilaError:
            return
        finally:
            self.gauge.add(-len(batch))
        for message in batch:
            tell("A", int(message.payload))
        async with self.room:
            self.backlog -= len(batch)
            self.room.notify_all()

    async def wait_until_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        async with self.room:
            self.room.notify_all()
        self.last_delivery = loop.time()
        # Each delivery puts the end off.
        while (left := self.last_delivery + _QUIET_SECONDS - loop.time()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)


if __name__ == "__main__":
    asyncio.run(Clients(sys.argv[1], Gauge(Path(sys.argv[2]))).run())
