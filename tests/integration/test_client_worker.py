"""The worker on a real broker: what each way of ending a handler means, and how it stops."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest

import fila
from tests.integration.broker_process import BrokerProcess
from tests.integration.conditions import until


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as process:
        yield process


@pytest.fixture
async def client(broker: BrokerProcess) -> AsyncIterator[fila.AsyncClient]:
    async with fila.AsyncClient(broker.address) as client:
        yield client


@pytest.fixture
async def queue(client: fila.AsyncClient, request: pytest.FixtureRequest) -> str:
    name = f"w-{abs(hash(request.node.name))}"
    await client.admin.create_queue(name, visibility_timeout_ms=1000, retry_delay_ms=0)
    return name


async def run_until_empty(
    client: fila.AsyncClient, worker: fila.AsyncWorker, queue: str, *, seconds_max: float = 15.0
) -> None:
    running = asyncio.create_task(worker.run())

    async def is_empty() -> bool:
        return running.done() or (await client.admin.stats(queue)).depth == 0

    await until(is_empty, seconds_max=seconds_max)
    await worker.stop()
    await asyncio.wait_for(running, 10)


async def test_each_way_of_ending_has_its_meaning(
    client: fila.AsyncClient, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    starts: dict[bytes, list[float]] = {}
    for name in (b"returns", b"raises", b"retries", b"rejects"):
        await client.enqueue(queue, name)

    @client.worker(queue)
    async def process(message: fila.Message) -> None:
        starts.setdefault(message.payload, []).append(time.monotonic())
        if message.payload == b"raises" and message.attempts == 0:
            raise ValueError("no such order")
        if message.payload == b"retries" and message.attempts == 0:
            raise fila.Retry(after=0.3)
        if message.payload == b"rejects":
            raise fila.Reject("bad address")

    with caplog.at_level(logging.WARNING):
        await run_until_empty(client, process, queue)
    (dead,) = await client.lease(f"{queue}.dlq", 10)

    assert {name: len(times) for name, times in starts.items()} == {
        b"returns": 1,
        b"raises": 2,
        b"retries": 2,
        b"rejects": 1,
    }
    assert starts[b"retries"][1] - starts[b"retries"][0] >= 0.3
    assert dead.payload == b"rejects"
    assert dead.dead_letter is not None
    assert dead.dead_letter.last_error == "bad address"
    assert "no such order" in caplog.text


async def test_what_a_handler_raised_is_kept_with_the_dead_letter(
    client: fila.AsyncClient, queue: str
) -> None:
    await client.admin.update_queue(queue, max_attempts=1)
    await client.enqueue(queue, b"secret")

    @client.worker(queue)
    def process(message: fila.Message) -> None:
        raise KeyError("x" * 100_000)

    await run_until_empty(client, process, queue)
    (dead,) = await client.lease(f"{queue}.dlq", 10)

    assert dead.dead_letter is not None
    assert dead.dead_letter.reason == "max_attempts"
    assert dead.dead_letter.last_error.startswith("KeyError: 'xxx")
    assert len(dead.dead_letter.last_error) <= 1000


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_so_many_run_at_once_and_no_more(
    client: fila.AsyncClient, queue: str, kind: str
) -> None:
    running = most = 0
    lock = threading.Lock()

    def enter(change: int) -> None:
        nonlocal running, most
        with lock:
            running += change
            most = max(most, running)

    @client.worker(queue, concurrency=5)
    async def in_a_task(message: fila.Message) -> None:
        enter(1)
        await asyncio.sleep(0.02)
        enter(-1)

    @client.worker(queue, concurrency=5)
    def in_a_thread(message: fila.Message) -> None:
        enter(1)
        time.sleep(0.02)
        enter(-1)

    await client.enqueue_batch(queue, [fila.NewMessage(b"")] * 50)
    await run_until_empty(client, in_a_task if kind == "async" else in_a_thread, queue)

    assert most == 5


async def test_a_handler_three_times_as_long_as_its_lease_runs_once(
    client: fila.AsyncClient, queue: str
) -> None:
    starts: Counter[bytes] = Counter()

    @client.worker(queue, concurrency=2)
    async def process(message: fila.Message) -> None:
        starts[message.payload] += 1
        await asyncio.sleep(3)

    for name in (b"a", b"b", b"c"):
        await client.enqueue(queue, name)
    await run_until_empty(client, process, queue)

    assert starts == {b"a": 1, b"b": 1, b"c": 1}


async def test_stopping_waits_for_what_runs_and_leaves_the_rest(
    client: fila.AsyncClient, queue: str
) -> None:
    started = asyncio.Event()
    done: list[bytes] = []

    @client.worker(queue, concurrency=1)
    async def process(message: fila.Message) -> None:
        started.set()
        await asyncio.sleep(0.3)
        done.append(message.payload)

    for name in (b"a", b"b"):
        await client.enqueue(queue, name)
    running = asyncio.create_task(process.run())
    await started.wait()
    await process.stop()
    await running
    left = await client.lease(queue, 10)

    assert done == [b"a"]
    assert [(message.payload, message.attempts) for message in left] == [(b"b", 0)]


async def test_a_handler_that_outlasts_the_grace_period_gives_its_message_back(
    client: fila.AsyncClient, queue: str
) -> None:
    started = asyncio.Event()
    cancelled = asyncio.Event()

    @client.worker(queue, grace=0.1)
    async def process(message: fila.Message) -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    await client.enqueue(queue, b"")
    running = asyncio.create_task(process.run())
    await started.wait()
    await process.stop()
    await running
    (message,) = await client.lease(queue, wait=5)

    assert cancelled.is_set()
    assert message.attempts == 0


async def test_a_worker_of_an_unknown_queue_says_so(client: fila.AsyncClient) -> None:
    @client.worker("nowhere")
    async def process(message: fila.Message) -> None:
        """Never called."""

    with pytest.raises(fila.errors.QueueNotFoundError):
        await asyncio.wait_for(process.run(), 10)


async def test_a_worker_finds_a_broker_that_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data = tmp_path_factory.mktemp("restarted") / "data"
    seen: set[bytes] = set()
    with BrokerProcess(data) as broker:
        address = broker.address
        client = fila.AsyncClient(address, timeout=30)
        await client.admin.create_queue("q")

        @client.worker("q")
        async def process(message: fila.Message) -> None:
            seen.add(message.payload)

        running = asyncio.create_task(process.run())
        await client.enqueue("q", b"before")

        async def has_both() -> bool:
            return seen == {b"before", b"after"}

        async def has_one() -> bool:
            return seen == {b"before"}

        await until(has_one)
        assert broker.terminate() == 0
    with BrokerProcess(data, listen=address):
        await client.enqueue("q", b"after")
        await until(has_both)
        await process.stop()
        await running
        await client.close()


def test_the_handler_can_still_be_called(broker: BrokerProcess) -> None:
    with fila.Client(broker.address) as client:

        @client.worker("anything")
        def process(message: object) -> str:
            """What it does."""
            return f"handled {message}"

        assert process("x") == "handled x"  # type: ignore[arg-type]
        assert process.__doc__ == "What it does."


def test_a_plain_worker_stops_from_another_thread(broker: BrokerProcess) -> None:
    with fila.Client(broker.address) as client:
        client.admin.create_queue("plain")
        seen = []

        @client.worker("plain", concurrency=4)
        def process(message: fila.Message) -> None:
            seen.append(message.payload)
            if len(seen) == 100:
                process.stop()

        client.enqueue_batch("plain", [fila.NewMessage(b"%d" % n) for n in range(100)])
        process.run()

        assert sorted(seen) == sorted(b"%d" % n for n in range(100))
        assert client.admin.stats("plain").depth == 0


PROGRAM = """
import sys, time, fila

client = fila.Client(sys.argv[1])

@client.worker("signals")
def process(message):
    print("started", flush=True)
    time.sleep(0.5)
    print("finished", flush=True)

process.run()
client.close()
print("ended", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_worker_after_its_work(
    broker: BrokerProcess, number: signal.Signals
) -> None:
    with fila.Client(broker.address) as client:
        if "signals" not in {info.name for info in client.admin.list_queues()}:
            client.admin.create_queue("signals")
        client.enqueue("signals", b"")
        program = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), broker.address],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert program.stdout is not None
        with program.stdout:
            assert program.stdout.readline() == "started\n"
            os.kill(program.pid, number)
            rest = program.stdout.read()

        assert program.wait(20) == 0
        assert rest == "finished\nended\n"
        assert client.admin.stats("signals").depth == 0


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


RAISED = [
    FileNotFoundError("no such file: \udcff"),
    fila.Retry(after=-1),
    fila.Retry(after=float("nan")),
    fila.Reject(),
    StopIteration(),
    GeneratorExit(),
    asyncio.CancelledError(),
    UnprintableError(),
    type("Outcome", (BaseException,), {})(),
]


@pytest.fixture
def unlogged(caplog: pytest.LogCaptureFixture) -> None:
    """Keep what was raised out of the report: not every runner can carry such texts."""
    caplog.set_level(logging.CRITICAL, "fila.worker")


@pytest.mark.usefixtures("unlogged")
@pytest.mark.parametrize("raised", RAISED, ids=lambda raised: type(raised).__name__)
async def test_whatever_a_handler_raises_in_a_thread_settles_its_message(
    client: fila.AsyncClient, queue: str, raised: BaseException
) -> None:
    @client.worker(queue)
    def fail(message: fila.Message) -> None:
        raise raised

    await assert_rejected(client, fail, queue)


# How a coroutine is closed is not how a handler fails.
@pytest.mark.usefixtures("unlogged")
@pytest.mark.parametrize(
    "raised",
    [error for error in RAISED if not isinstance(error, GeneratorExit)],
    ids=lambda raised: type(raised).__name__,
)
async def test_whatever_a_handler_raises_in_a_task_settles_its_message(
    client: fila.AsyncClient, queue: str, raised: BaseException
) -> None:
    @client.worker(queue)
    async def fail(message: fila.Message) -> None:
        raise raised

    await assert_rejected(client, fail, queue)


async def assert_rejected(client: fila.AsyncClient, worker: fila.AsyncWorker, queue: str) -> None:
    await client.admin.update_queue(queue, visibility_timeout_ms=600_000, max_attempts=1)
    await client.enqueue(queue, b"")
    await run_until_empty(client, worker, queue)

    assert len(await client.lease(f"{queue}.dlq", 10)) == 1


async def test_a_plain_function_around_an_async_one_is_awaited(
    client: fila.AsyncClient, queue: str
) -> None:
    done = []

    async def handle(message: fila.Message) -> None:
        await asyncio.sleep(0)
        done.append(message.payload)

    @client.worker(queue)
    def process(message: fila.Message) -> object:
        return handle(message)

    await client.enqueue(queue, b"x")
    await run_until_empty(client, process, queue)

    assert done == [b"x"]


async def test_a_worker_that_is_stopped_before_it_runs_does_not_run(
    client: fila.AsyncClient, queue: str
) -> None:
    @client.worker(queue)
    async def process(message: fila.Message) -> None:
        """Never called."""

    running = asyncio.create_task(process.run())
    await process.stop()
    await asyncio.wait_for(running, 5)

    running = asyncio.create_task(process.run())
    await asyncio.sleep(0)
    await process.stop()
    await asyncio.wait_for(running, 5)
