"""One act of the demo: a noisy tenant, then a quiet one, and a few workers who serve both."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import fila

NOISY, QUIET = "noisy", "quiet"
TENANTS = (NOISY, QUIET)
# With one key for everybody there is nothing left to be fair between.
_ONE_KEY = "everybody"
_BATCH = 500
_STRIP_LENGTH = 72 * 2
_ACT_SECONDS_MAX = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How big the demo is."""

    noisy_count: int
    quiet_count: int
    handlers: int
    work_s: float
    # Between two messages of the quiet tenant.
    quiet_gap_s: float


@dataclass(slots=True)
class Tally:
    """What has happened so far, for whoever draws it."""

    sent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TENANTS, 0))
    served: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TENANTS, 0))
    quiet_waits_ms: list[float] = field(default_factory=list)
    # How many noisy handlers started while a quiet message waited: the same on any machine.
    quiet_overtaken: list[int] = field(default_factory=list)
    # Who was served last, newest at the end.
    strip: deque[str] = field(default_factory=lambda: deque(maxlen=_STRIP_LENGTH))

    def waiting(self, tenant: str) -> int:
        """Sent and not yet begun."""
        return max(0, self.sent[tenant] - self.served[tenant])

    def wait_ms(self, share: float) -> float | None:
        """A quantile of the quiet tenant's wait until a handler starts."""
        return _quantile(self.quiet_waits_ms, share)

    def overtaken(self, share: float) -> float | None:
        """A quantile of how many noisy messages were begun during such a wait."""
        return _quantile(self.quiet_overtaken, share)


def _quantile(values: Sequence[float], share: float) -> float | None:
    ordered = sorted(values)
    return ordered[round(share * (len(ordered) - 1))] if ordered else None


class Act:
    """Runs to the moment when the quiet tenant's last message has its handler."""

    def __init__(self, client: fila.AsyncClient, plan: Plan, *, fair: bool) -> None:
        self.plan = plan
        self.fair = fair
        self.tally = Tally()
        self._client = client
        self._queue = "fair" if fair else "unfair"
        self._quiet_done = asyncio.Event()

    async def run(self) -> None:
        """Flood, then serve both until the quiet tenant is served."""
        await self._client.admin.create_queue(self._queue)
        await self._flood()
        worker = self._client.worker(self._queue, concurrency=self.plan.handlers)(self._handle)
        async with asyncio.timeout(_ACT_SECONDS_MAX), asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run())
            tasks.create_task(self._drip())
            await self._quiet_done.wait()
            await worker.stop()

    async def _flood(self) -> None:
        left = self.plan.noisy_count
        while left:
            count = min(left, _BATCH)
            await self._client.enqueue_batch(
                self._queue, [self._message(NOISY) for _ in range(count)]
            )
            self.tally.sent[NOISY] += count
            left -= count

    async def _drip(self) -> None:
        """The quiet tenant sends one message at a time."""
        for _ in range(self.plan.quiet_count):
            self.tally.sent[QUIET] += 1
            await self._client.enqueue_batch(self._queue, [self._message(QUIET)])
            await asyncio.sleep(self.plan.quiet_gap_s)

    def _message(self, tenant: str) -> fila.NewMessage:
        return fila.NewMessage(
            f"{time.monotonic()} {self.tally.served[NOISY]}".encode(),
            headers={"tenant": tenant},
            fairness_key=tenant if self.fair else _ONE_KEY,
        )

    async def _handle(self, message: fila.Message) -> None:
        tenant = message.headers["tenant"]
        tally = self.tally
        tally.served[tenant] += 1
        tally.strip.append(tenant)
        if tenant == QUIET:
            sent_at, noisy_begun = message.payload.split()
            tally.quiet_waits_ms.append((time.monotonic() - float(sent_at)) * 1000)
            tally.quiet_overtaken.append(tally.served[NOISY] - int(noisy_begun))
            if tally.served[QUIET] == self.plan.quiet_count:
                self._quiet_done.set()
        await asyncio.sleep(self.plan.work_s)
