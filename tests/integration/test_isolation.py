"""A quiet tenant beside a noisy one: with slow handlers and all defaults, it hardly waits (W9)."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import fila
from tests import proof
from tests.integration.broker_process import BrokerProcess

SERVICE_SECONDS = 0.010
HANDLERS = 8
BACKLOG = proof.length(reduced=10_000, full=100_000)
QUIET = proof.length(reduced=40, full=300)
QUIET_EVERY_SECONDS = 0.05
# The bound of W9, in service times, on top of the wait without a neighbour.
SERVICE_TIMES_MAX = 2


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as process:
        yield process


@dataclass
class Waits:
    """From the call of enqueue to the start of the handler, and how many others started between."""

    called: dict[int, tuple[float, int]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    overtaken_by: list[int] = field(default_factory=list)
    noisy_starts: int = 0

    def call(self, number: int) -> None:
        self.called[number] = time.monotonic(), self.noisy_starts

    def started(self, number: int) -> None:
        called_at, noisy_starts = self.called[number]
        self.seconds.append(time.monotonic() - called_at)
        self.overtaken_by.append(self.noisy_starts - noisy_starts)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def serve_quiet_tenant(client: fila.AsyncClient, queue: str) -> Waits:
    """Enqueue at a steady pace and measure, with `HANDLERS` handlers of a default worker."""
    waits = Waits()
    done = asyncio.Event()

    @client.worker(queue, concurrency=HANDLERS)
    async def process(message: fila.Message) -> None:
        if message.fairness_key == "quiet":
            waits.started(int(message.payload))
            if len(waits.seconds) == QUIET:
                done.set()
        else:
            waits.noisy_starts += 1
        await asyncio.sleep(SERVICE_SECONDS)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(process.run())
        for number in range(QUIET):
            waits.call(number)
            await client.enqueue(queue, b"%d" % number, fairness_key="quiet")
            await asyncio.sleep(QUIET_EVERY_SECONDS)
        await asyncio.wait_for(done.wait(), 60)
        await process.stop()
        await running
    return waits


@pytest.mark.slow
@pytest.mark.proof
async def test_a_quiet_tenant_waits_at_most_two_service_times_longer(broker: BrokerProcess) -> None:
    async with fila.AsyncClient(broker.address) as client:
        for queue in ("alone", "shared"):
            await client.admin.create_queue(queue)
        alone = await serve_quiet_tenant(client, "alone")
        for _ in range(BACKLOG // 500):
            batch = [fila.NewMessage(b"noise", fairness_key="noisy") for _ in range(500)]
            await client.enqueue_batch("shared", batch)

        shared = await serve_quiet_tenant(client, "shared")

        left = (await client.admin.stats("shared")).depth
    added = (percentile(shared.seconds, 0.99) - percentile(alone.seconds, 0.99)) / SERVICE_SECONDS
    overtaken_by = percentile(shared.overtaken_by, 0.99)
    proof.record(
        "isolation",
        backlog=BACKLOG,
        quiet_messages=QUIET,
        alone_p99_ms=round(percentile(alone.seconds, 0.99) * 1000, 2),
        shared_p50_ms=round(percentile(shared.seconds, 0.5) * 1000, 2),
        shared_p99_ms=round(percentile(shared.seconds, 0.99) * 1000, 2),
        service_times_added_p99=round(added, 2),
        noisy_starts_before_quiet_p99=overtaken_by,
    )
    # Inside a backlog, and counted: one service time of all handlers is that many starts.
    assert left > BACKLOG // 4
    assert overtaken_by <= SERVICE_TIMES_MAX * HANDLERS
