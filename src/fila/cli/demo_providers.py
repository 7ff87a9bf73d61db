"""The demo's act about limits: one tenant, a provider that allows little and a free one."""

import asyncio
import time
from dataclasses import dataclass, field

import fila

LIMITED, FREE = "limited", "free"
PROVIDERS = (LIMITED, FREE)
# What the queue is told to do with each message; the limit itself is a runtime setting.
SCRIPT = """
function on_enqueue(msg)
  return {
    fairness_key = msg.headers.tenant,
    throttle_keys = { "provider:" .. msg.headers.provider },
  }
end
"""
_QUEUE = "providers"
_TENANT = "acme"
_BATCH = 500
_ACT_SECONDS_MAX = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPlan:
    """How big the act is."""

    limited_count: int
    free_count: int
    handlers: int
    work_s: float
    rate: int
    burst: int

    def counts(self) -> dict[str, int]:
        """Messages of each provider."""
        return {LIMITED: self.limited_count, FREE: self.free_count}


@dataclass(slots=True)
class ProviderTally:
    """What has happened so far, for whoever draws it."""

    served: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PROVIDERS, 0))
    # From the first delivery, until the last message of the free provider was begun.
    started_at: float | None = None
    free_done_at: float | None = None
    # What the limited provider was given by then, and by now.
    limited_at: float = 0.0

    def note(self, provider: str, now: float, plan: ProviderPlan) -> None:
        """A handler begins."""
        self.served[provider] += 1
        if self.started_at is None:
            self.started_at = now
        if provider == LIMITED:
            self.limited_at = now
        elif self.served[FREE] == plan.free_count:
            self.free_done_at = now

    @property
    def free_span_s(self) -> float:
        """How long all of the free provider's messages took."""
        return (self.free_done_at or 0.0) - (self.started_at or 0.0)

    @property
    def limited_span_s(self) -> float:
        """How long the limited provider's took so far."""
        return self.limited_at - (self.started_at or 0.0)


class ProviderAct:
    """Runs to the moment when the free provider's last message has its handler."""

    def __init__(self, client: fila.AsyncClient, plan: ProviderPlan) -> None:
        self.plan = plan
        self.tally = ProviderTally()
        self._client = client
        self._free_done = asyncio.Event()

    async def run(self) -> None:
        """Set the limit, queue the limited provider's messages first, then serve."""
        await self._client.admin.create_queue(_QUEUE, on_enqueue_script=SCRIPT)
        key = f"throttle:provider:{LIMITED}"
        await self._client.admin.set_config(f"{key}:burst", str(self.plan.burst))
        await self._client.admin.set_config(f"{key}:rate", str(self.plan.rate))
        for provider, count in self.plan.counts().items():
            await self._fill(provider, count)
        worker = self._client.worker(_QUEUE, concurrency=self.plan.handlers)(self._handle)
        async with asyncio.timeout(_ACT_SECONDS_MAX), asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run())
            await self._free_done.wait()
            await worker.stop()

    async def _fill(self, provider: str, count: int) -> None:
        for start in range(0, count, _BATCH):
            batch = [_message(provider)] * min(_BATCH, count - start)
            await self._client.enqueue_batch(_QUEUE, batch)

    async def _handle(self, message: fila.Message) -> None:
        self.tally.note(message.headers["provider"], time.monotonic(), self.plan)
        if self.tally.free_done_at is not None:
            self._free_done.set()
        await asyncio.sleep(self.plan.work_s)


def _message(provider: str) -> fila.NewMessage:
    return fila.NewMessage(b"", headers={"tenant": _TENANT, "provider": provider})
