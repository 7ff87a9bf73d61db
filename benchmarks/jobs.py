"""What a client process can be asked to do, through the SDK as any program uses it.

Times are of the machine's monotonic clock, which all its processes share.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import fila

BATCH = 500
BATCHES_IN_FLIGHT = 4
_PAYLOAD = bytes(range(256)) * 4
_HEADERS = {"tenant": "acme"}

Job = Callable[..., Awaitable[dict[str, Any] | None]]
JOBS: dict[str, Job] = {}


def _job(function: Job) -> Job:
    JOBS[function.__name__] = function
    return function


@_job
async def create(client: fila.AsyncClient, *, queue: str, script: str = "") -> None:
    """A queue with the defaults, and a script for what comes in."""
    await client.admin.create_queue(queue, on_enqueue_script=script)


@_job
async def hook_stats(client: fila.AsyncClient, *, queue: str) -> dict[str, Any]:
    """What the broker counted of a queue's script."""
    stats = (await client.admin.stats(queue)).on_enqueue
    assert stats is not None
    return asdict(stats)


@_job
async def delete(client: fila.AsyncClient, *, queue: str) -> None:
    """The queue and what is in it."""
    await client.admin.delete_queue(queue)


@_job
async def limit(client: fila.AsyncClient, *, buckets: int, rate: str) -> None:
    """So many throttle keys with a limit."""
    for number in range(buckets):
        await client.admin.set_config(f"throttle:bucket-{number}:rate", rate)


@_job
async def enqueue(client: fila.AsyncClient, *, queue: str, count: int, tasks: int) -> None:
    """Plain `await client.enqueue()` from many tasks."""

    async def produce(share: int) -> None:
        for _ in range(share):
            await client.enqueue(queue, _PAYLOAD, headers=_HEADERS)

    async with asyncio.TaskGroup() as group:
        for share in _shares(count, tasks):
            group.create_task(produce(share))


@_job
async def enqueue_threads(
    client: fila.AsyncClient, *, queue: str, count: int, threads: int
) -> None:
    """Plain `client.enqueue()` of the synchronous client from many threads."""

    def produce(share: int) -> None:
        for _ in range(share):
            sync.enqueue(queue, _PAYLOAD, headers=_HEADERS)

    def produce_all() -> None:
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(produce, share) for share in _shares(count, threads)]:
                done.result()

    with fila.Client(client.addr) as sync:
        await asyncio.to_thread(produce_all)


@_job
async def enqueue_batches(
    client: fila.AsyncClient,
    *,
    queue: str,
    count: int,
    keys: int = 0,
    rich: bool = False,
    throttled: int = 0,
) -> dict[str, Any]:
    """The batch API, a few batches in flight.

    Messages are spread over so many fairness keys, or over so many throttle keys.
    """
    replies: list[float] = []
    batches = _batches(count, keys, rich=rich, throttled=throttled)

    async def produce() -> None:
        for batch in batches:
            begin = time.monotonic()
            results = await client.enqueue_batch(queue, batch)
            replies.append(time.monotonic() - begin)
            _check(results)

    async with asyncio.TaskGroup() as group:
        for _ in range(BATCHES_IN_FLIGHT):
            group.create_task(produce())
    return {"replies_s": replies}


@_job
async def enqueue_batches_threads(client: fila.AsyncClient, *, queue: str, count: int) -> None:
    """The batch API of the synchronous client, from as many threads as batches are in flight."""

    def produce(share: int) -> None:
        for batch in _batches(share, 0, rich=False):
            _check(sync.enqueue_batch(queue, batch))

    def produce_all() -> None:
        with ThreadPoolExecutor(BATCHES_IN_FLIGHT) as pool:
            shares = _shares(count, BATCHES_IN_FLIGHT)
            for done in [pool.submit(produce, share) for share in shares]:
                done.result()

    with fila.Client(client.addr) as sync:
        await asyncio.to_thread(produce_all)


@_job
async def consume(client: fila.AsyncClient, *, queue: str, count: int) -> None:
    """Lease and ack so many messages; over when the last ack's reply is in."""
    consumer = client.consume(queue)
    left = count
    async for message in consumer:
        await client.ack(message)
        left -= 1
        if not left:
            break
    await client.flush(timeout=30.0)
    await consumer.close()


@_job
async def consume_sync(client: fila.AsyncClient, *, queue: str, count: int) -> None:
    """`consume` with the synchronous client."""

    def consume_all() -> None:
        left = count
        with fila.Client(client.addr) as sync, sync.consume(queue) as consumer:
            for message in consumer:
                sync.ack(message)
                left -= 1
                if not left:
                    break
            sync.flush(timeout=30.0)

    await asyncio.to_thread(consume_all)


@_job
async def first(client: fila.AsyncClient, *, queue: str) -> dict[str, Any]:
    """When the first delivery arrives."""
    async with client.consume(queue) as consumer:
        await anext(consumer)
        return {"first_at_s": time.monotonic()}


@_job
async def latency(
    client: fila.AsyncClient, *, queue: str, count: int, pause_s: float
) -> dict[str, Any]:
    """From the call of enqueue to the message in the hands of a consumer that waits."""
    delays: list[float] = []
    # The consumer is a client of its own, as it would be anywhere.
    async with fila.AsyncClient(client.addr) as other, other.consume(queue) as consumer:
        for _ in range(count):
            waiting = asyncio.ensure_future(anext(consumer))
            await asyncio.sleep(pause_s)
            begin = time.monotonic()
            sending = asyncio.ensure_future(client.enqueue(queue, _PAYLOAD, headers=_HEADERS))
            message = await waiting
            delays.append(time.monotonic() - begin)
            await asyncio.gather(sending, other.ack(message))
        await other.flush()
    return {"delays_s": delays}


@_job
async def handle(
    client: fila.AsyncClient, *, queue: str, service_s: float, quiet: int
) -> dict[str, Any]:
    """A worker with 8 handlers; over when so many messages of the quiet tenant were started."""
    waits: list[float] = []
    others = 0

    @client.worker(queue, concurrency=8)
    async def work(message: fila.Message) -> None:
        nonlocal others
        if message.fairness_key == "quiet":
            waits.append(time.monotonic() - float(message.payload))
        else:
            others += 1
        await asyncio.sleep(service_s)
        if len(waits) >= quiet:
            work.request_stop()

    await work.run()
    return {"waits_s": waits, "others": others}


@_job
async def trickle(client: fila.AsyncClient, *, queue: str, count: int, pause_s: float) -> None:
    """The quiet tenant: a message now and then, which says when it was sent."""
    sending: deque[asyncio.Task[str]] = deque()
    for _ in range(count):
        await asyncio.sleep(pause_s)
        payload = repr(time.monotonic()).encode()
        sending.append(asyncio.create_task(client.enqueue(queue, payload, fairness_key="quiet")))
    await asyncio.gather(*sending)


def _batches(
    count: int, keys: int, *, rich: bool, throttled: int = 0
) -> Iterator[list[fila.NewMessage]]:
    make = _rich if rich else _keyed if keys else _plain
    if throttled:
        make, keys = _throttled, throttled
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        yield [make(number, keys) for number in numbers]


def _plain(_number: int, _keys: int) -> fila.NewMessage:
    return fila.NewMessage(_PAYLOAD, _HEADERS)


def _keyed(number: int, keys: int) -> fila.NewMessage:
    return fila.NewMessage(_PAYLOAD, _HEADERS, fairness_key=f"key-{number % keys}")


def _rich(number: int, keys: int) -> fila.NewMessage:
    """A key, a priority and throttle keys, of which nothing is known when there is no limit."""
    key = f"key-{number % keys}"
    return fila.NewMessage(
        _PAYLOAD,
        _HEADERS,
        fairness_key=key,
        priority=number % 10,
        throttle_keys=(f"tenant:{key}", f"provider:{number % 7}"),
    )


def _throttled(number: int, keys: int) -> fila.NewMessage:
    """Two throttle keys, of which each batch has all."""
    pair = (f"bucket-{number % keys}", f"bucket-{(number + keys // 2) % keys}")
    return fila.NewMessage(_PAYLOAD, _HEADERS, throttle_keys=pair)


def _check(results: Sequence[str | fila.FilaError]) -> None:
    for result in results:
        if isinstance(result, fila.FilaError):
            raise result


def _shares(count: int, parts: int) -> list[int]:
    each, more = divmod(count, parts)
    return [each + (part < more) for part in range(parts)]
