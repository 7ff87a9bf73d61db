"""A slow script slows its own queue: the others go on as if it were not there."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import fila
from tests import proof
from tests.integration.broker_process import BrokerProcess

# Legal: a little less than the 10 ms that a call may take by default; the machine's own noise must
# not make a time-out of it, so the queue allows more.
CALL_MS = 9
TIMEOUT_MS = 40
BATCH = proof.length(reduced=60, full=500)
ROUNDS = proof.length(reduced=1, full=4)
PAUSE_SECONDS = 0.01
# At p99 another queue's enqueue may take 50 ms longer: so many calls of the slow script.
ADDED_CALLS_MAX = 50 / CALL_MS

WORK = """
function on_enqueue(msg)
  local sum = 0
  for i = 1, {steps} do sum = sum + i % 7 end
  return {{ fairness_key = "slow" .. sum % 2 }}
end
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as process:
        yield process


async def steps_of(client: fila.AsyncClient, milliseconds: float) -> int:
    """How much work takes so long here, by the broker's own histogram."""
    steps = 20_000
    await client.admin.create_queue("probe", on_enqueue_script=WORK.format(steps=steps))
    for _ in range(20):
        await client.enqueue("probe", b"")
    stats = (await client.admin.stats("probe")).on_enqueue
    assert stats is not None
    return int(steps * milliseconds * 1000 / stats.median_us)


@dataclass
class Replies:
    """How long enqueues to a queue took."""

    seconds: list[float] = field(default_factory=list)

    async def collect(self, client: fila.AsyncClient, queue: str, until: asyncio.Event) -> None:
        while not until.is_set():
            begin = time.monotonic()
            await client.enqueue(queue, b"quick", headers={"tenant": "acme"})
            self.seconds.append(time.monotonic() - begin)
            await asyncio.sleep(PAUSE_SECONDS)

    @property
    def p99_ms(self) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))] * 1000


async def measured(
    client: fila.AsyncClient, queues: Sequence[str], *, seconds: float
) -> dict[str, Replies]:
    """Enqueues to each queue for a while, with nobody beside them."""
    done = asyncio.Event()
    replies = {queue: Replies() for queue in queues}
    async with asyncio.TaskGroup() as group:
        for queue in queues:
            group.create_task(replies[queue].collect(client, queue, done))
        await asyncio.sleep(seconds)
        done.set()
    return replies


@pytest.mark.slow
@pytest.mark.proof
async def test_batches_for_a_slow_script_hardly_touch_enqueues_to_other_queues(
    broker: BrokerProcess,
) -> None:
    quick = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end"
    async with (
        fila.AsyncClient(broker.address, timeout=60) as client,
        fila.AsyncClient(broker.address, timeout=60) as slow_client,
    ):
        steps = await steps_of(client, CALL_MS)
        await client.admin.create_queue(
            "slow", on_enqueue_script=WORK.format(steps=steps), hook_timeout_ms=TIMEOUT_MS
        )
        await client.admin.create_queue("plain")
        await client.admin.create_queue("scripted", on_enqueue_script=quick)
        queues = ("plain", "scripted")
        alone = await measured(client, queues, seconds=proof.length(reduced=1, full=10))

        done = asyncio.Event()
        beside = {queue: Replies() for queue in queues}
        async with asyncio.TaskGroup() as group:
            for queue in queues:
                group.create_task(beside[queue].collect(client, queue, done))
            for _ in range(ROUNDS):
                await slow_client.enqueue_batch("slow", [fila.NewMessage(b"")] * BATCH)
            done.set()
        stats = (await client.admin.stats("slow")).on_enqueue

    assert stats is not None
    proof.record(
        "hook_isolation",
        batch=BATCH,
        rounds=ROUNDS,
        slow_call_median_ms=round(stats.median_us / 1000, 2),
        timeouts=stats.timeouts,
        **{f"{queue}_alone_p99_ms": round(alone[queue].p99_ms, 2) for queue in queues},
        **{f"{queue}_beside_p99_ms": round(beside[queue].p99_ms, 2) for queue in queues},
        **{f"{queue}_enqueues": len(beside[queue].seconds) for queue in queues},
    )
    assert (stats.calls, stats.bypassed, stats.timeouts) == (BATCH * ROUNDS, 0, 0)
    for queue in queues:
        # Counted: the slow batches leave room for many turns of the others.
        assert len(beside[queue].seconds) >= BATCH * ROUNDS // 12
        if proof.FULL:
            added_ms = beside[queue].p99_ms - alone[queue].p99_ms
            assert added_ms / (stats.median_us / 1000) <= ADDED_CALLS_MAX
