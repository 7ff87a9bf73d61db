"""The SDK's consumers on a real broker: leases, credit, losing the broker and finding it again."""

import asyncio
import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import fila
from tests.integration.broker_process import BrokerProcess
from tests.integration.conditions import until

LEASE_MS = 1000


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
    name = f"c-{abs(hash(request.node.name))}"
    await client.admin.create_queue(name, visibility_timeout_ms=LEASE_MS, retry_delay_ms=0)
    return name


async def fill(client: fila.AsyncClient, queue: str, count: int) -> None:
    await client.enqueue_batch(queue, [fila.NewMessage(b"%d" % n) for n in range(count)])


async def until_waiting(client: fila.AsyncClient, queue: str, count: int) -> None:
    """Wait until so many messages of the queue are ready."""

    async def are_ready() -> bool:
        return (await client.admin.stats(queue)).ready == count

    await until(are_ready)


async def credits_seen(client: fila.AsyncClient, queue: str) -> set[int]:
    return {info.credit for info in await client.admin.consumers(queue)}


async def test_one_consumer_takes_from_many_queues(client: fila.AsyncClient) -> None:
    queues = [f"many-{number}" for number in range(5)]
    for name in queues:
        await client.admin.create_queue(name)
        await fill(client, name, 10)

    seen: Counter[str] = Counter()
    async with client.consume(queues) as consumer:
        async for message in consumer:
            seen[message.queue] += 1
            await client.ack(message)
            if seen.total() == 50:
                break

    assert seen == dict.fromkeys(queues, 10)


async def test_a_slow_handler_holds_one_message_and_a_fast_one_holds_many(
    client: fila.AsyncClient, queue: str
) -> None:
    await fill(client, queue, 3000)
    fast: set[int] = set()
    slow: set[int] = set()
    handled = 0
    async with client.consume(queue) as consumer:
        async for message in consumer:
            await client.ack(message)
            handled += 1
            if handled == 2500:
                fast = await credits_seen(client, queue)
            elif handled > 2500:
                await asyncio.sleep(0.01)
            if handled == 2510:
                slow = await credits_seen(client, queue)
                break

    assert max(fast) > 20
    assert slow <= {1, 2}


async def test_what_waits_behind_a_stuck_handler_goes_to_others(
    client: fila.AsyncClient, queue: str
) -> None:
    await fill(client, queue, 3000)
    others = 0
    async with client.consume(queue) as stuck:
        for _ in range(1000):
            await client.ack(await anext(stuck))
        async with client.consume(queue) as free, asyncio.timeout(10):
            async for message in free:
                await client.ack(message)
                others += 1
                if others == 2000:
                    break

    assert others == 2000


async def test_leases_in_hand_and_in_the_buffer_are_renewed(
    client: fila.AsyncClient, queue: str
) -> None:
    await fill(client, queue, 10)
    async with client.consume(queue, prefetch=10) as consumer:
        first = await anext(consumer)
        await asyncio.sleep(2.5 * LEASE_MS / 1000)
        await client.ack(first)
        seen = [first.payload]
        for _ in range(9):
            message = await anext(consumer)
            assert message.attempts == 0
            await client.ack(message)
            seen.append(message.payload)
        await client.flush()

    assert seen == [b"%d" % n for n in range(10)]
    assert (await client.admin.stats(queue)).depth == 0


async def test_a_message_that_is_dropped_unsettled_comes_again(
    client: fila.AsyncClient, queue: str
) -> None:
    await fill(client, queue, 1)
    async with client.consume(queue, prefetch=1) as consumer, asyncio.timeout(10):
        dropped = (await anext(consumer)).id
        again = await anext(consumer)
        await client.ack(again)
        await client.flush()

    assert (again.id, again.attempts) == (dropped, 1)


async def test_closing_hands_back_what_was_not_handed_out(
    client: fila.AsyncClient, queue: str
) -> None:
    await fill(client, queue, 10)
    consumer = client.consume(queue, prefetch=10)
    message = await anext(consumer)
    await consumer.close()
    await until_waiting(client, queue, 9)

    await client.ack(message)
    await client.flush()
    with pytest.raises(StopAsyncIteration):
        await anext(consumer)
    again = await client.lease(queue, 10)
    assert [(one.payload, one.attempts) for one in again] == [(b"%d" % n, 0) for n in range(1, 10)]


async def test_leaving_the_loop_is_closing(client: fila.AsyncClient, queue: str) -> None:
    await fill(client, queue, 10)
    async for message in client.consume(queue, prefetch=10):
        await client.ack(message)
        break

    await until_waiting(client, queue, 9)


async def test_closing_the_client_hands_back_what_is_in_hand(
    broker: BrokerProcess, client: fila.AsyncClient, queue: str
) -> None:
    await fill(client, queue, 2)
    async with fila.AsyncClient(broker.address) as other:
        consumer = other.consume(queue, prefetch=2)
        await anext(consumer)

    await until_waiting(client, queue, 2)


async def test_a_consumer_ends_with_its_queue(client: fila.AsyncClient, queue: str) -> None:
    async with client.consume(queue) as consumer:
        waiting = asyncio.ensure_future(anext(consumer))

        async def is_connected() -> bool:
            return bool(await credits_seen(client, queue))

        await until(is_connected)
        await client.admin.delete_queue(queue)
        with pytest.raises(fila.errors.QueueNotFoundError):
            await asyncio.wait_for(waiting, 10)


async def test_nacks_say_when_and_whether_again(client: fila.AsyncClient, queue: str) -> None:
    await client.enqueue(queue, b"x")
    async with client.consume(queue) as consumer:
        await client.nack(await anext(consumer), "first", delay=0.2)
        before = time.monotonic()
        second = await anext(consumer)
        assert time.monotonic() - before > 0.15
        assert second.attempts == 1
        await client.release(second)
        third = await anext(consumer)
        assert third.attempts == 1
        await client.nack(third, "über", dead_letter=True)
        await client.flush()
    (dead,) = await client.lease(f"{queue}.dlq")

    assert dead.dead_letter is not None
    assert (dead.dead_letter.reason, dead.dead_letter.last_error) == ("rejected", "über")


async def test_a_slow_consumer_does_not_slow_the_other_of_the_same_client(
    client: fila.AsyncClient, queue: str
) -> None:
    await client.admin.create_queue(f"{queue}-slow")
    await fill(client, f"{queue}-slow", 2000)
    async with client.consume(f"{queue}-slow", prefetch=2000) as slow:
        await anext(slow)
        await fill(client, queue, 2000)
        async with client.consume(queue) as fast, asyncio.timeout(20):
            for _ in range(2000):
                await client.ack(await anext(fast))
        await client.flush()

    assert (await client.admin.stats(queue)).depth == 0


async def test_nothing_is_lost_or_doubled_when_the_broker_is_killed_under_load(
    tmp_path: Path,
) -> None:
    data, total = tmp_path / "data", 6000
    seen: dict[str, bytes] = {}
    sent: set[str] = set()
    with BrokerProcess(data) as broker:
        address = broker.address
        client = fila.AsyncClient(address, timeout=30)
        # What was on the wire at the kill is leased to nobody until its lease ends.
        await client.admin.create_queue("q", visibility_timeout_ms=5000)

        async def produce(first: int) -> None:
            for number in range(first, total, 50):
                sent.add(await client.enqueue("q", b"%d" % number))

        async def consume() -> None:
            async for message in client.consume("q"):
                seen[message.id] = message.payload
                # An ack on its way at the kill may be refused later: its message came again.
                with contextlib.suppress(fila.errors.LeaseNotFoundError):
                    await client.ack(message)

        producers = [asyncio.create_task(produce(first)) for first in range(50)]
        consumer = asyncio.create_task(consume())

        async def is_under_load() -> bool:
            return len(seen) >= 1000

        await until(is_under_load)
        broker.kill()

    with BrokerProcess(data, listen=address):
        await asyncio.wait_for(asyncio.gather(*producers), 60)

        async def is_empty() -> bool:
            return (await client.admin.stats("q")).depth == 0

        await until(is_empty, seconds_max=60)
        consumer.cancel()
        await client.close()

    assert sorted(seen.values()) == sorted(b"%d" % number for number in range(total))
    assert sent == seen.keys()


async def test_a_lease_in_hand_outlives_the_broker(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with BrokerProcess(data) as broker:
        address = broker.address
        client = fila.AsyncClient(address)
        await client.admin.create_queue("q", visibility_timeout_ms=LEASE_MS)
        await fill(client, "q", 5)
        consumer = client.consume("q", prefetch=5)
        message = await anext(consumer)
        broker.kill()

    with BrokerProcess(data, listen=address):
        # Longer than a lease, and four times as long as it has left.
        await asyncio.sleep(3 * LEASE_MS / 1000)
        await client.ack(message)
        await client.flush()
        seen = []
        for _ in range(4):
            other = await anext(consumer)
            seen.append((other.payload, other.attempts))
            await client.ack(other)
        await client.flush()
        assert (await client.admin.stats("q")).depth == 0
        await client.close()

    assert seen == [(b"%d" % number, 0) for number in range(1, 5)]


async def test_an_outage_longer_than_the_deadline_is_told_for_what_it_is(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        client = fila.AsyncClient(broker.address)
        await client.admin.create_queue("q")
        await client.enqueue("q", b"")
        broker.kill()

        with pytest.raises((fila.errors.UnreachableError, fila.errors.OutcomeUnknownError)):
            await client.enqueue("q", b"", timeout=0.5)
        with pytest.raises(fila.errors.UnreachableError):
            await client.enqueue("q", b"", timeout=0.5)
        await client.close()


async def test_a_broker_that_freezes_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        async with fila.AsyncClient(broker.address) as client:
            await client.admin.create_queue("q")
            await client.enqueue("q", b"")
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                with pytest.raises(fila.errors.OutcomeUnknownError, match="may or may not"):
                    await client.enqueue("q", b"frozen", timeout=0.5)
                lasting = asyncio.ensure_future(client.enqueue("q", b"lasting", timeout=30))
                # Longer than one attempt: the same batch is sent again.
                await asyncio.sleep(2.5)
            finally:
                os.kill(broker.pid, signal.SIGCONT)
            await lasting
            found = [one.message.payload async for one in client.admin.browse("q")]

    assert found.count(b"lasting") == 1
    assert found.count(b"frozen") <= 1


async def test_a_stuck_handler_gets_nothing_from_a_broker_that_comes_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with BrokerProcess(data) as broker:
        address = broker.address
        client = fila.AsyncClient(address, timeout=30)
        await client.admin.create_queue("q")
        await fill(client, "q", 1000)
        consumer = client.consume("q")
        # Fast at first, so that there is credit for many; the last one is never finished.
        for _ in range(100):
            await client.ack(await anext(consumer))
        stuck = await anext(consumer)

        async def has_no_credit() -> bool:
            return await credits_seen(client, "q") == {0}

        await until(has_no_credit)
        broker.kill()
    with BrokerProcess(data, listen=address):

        async def is_back() -> bool:
            return bool(await client.admin.consumers("q"))

        await until(is_back)

        assert await credits_seen(client, "q") == {0}
        await client.ack(stuck)
        await client.ack(await asyncio.wait_for(anext(consumer), 10))
        await consumer.close()
        await client.close()


@pytest.mark.timeout(20)
async def test_a_flush_waits_for_a_renewal_without_holding_up_its_answer(
    client: fila.AsyncClient, queue: str
) -> None:
    await fill(client, queue, 2)
    async with client.consume(queue, prefetch=2) as consumer:
        kept = await anext(consumer)
        await client.ack(await anext(consumer))
        await client.flush()
        assert client._session is not None
        (subscription,) = client._session.subscriptions
        subscription.book.doubt()
        # Its answer comes too soon for a look now and then.
        while not subscription.unsettled:  # noqa: ASYNC110
            await asyncio.sleep(0)

        await client.flush()

        assert subscription.unsettled == 0
        await client.ack(kept)


async def test_a_client_keeps_nothing_of_workers_and_consumers_that_ended(
    client: fila.AsyncClient, queue: str
) -> None:
    await fill(client, queue, 3)
    kept: list[fila.Message] = []

    @client.worker(queue, concurrency=1, grace=0)
    async def keep(message: fila.Message) -> None:
        kept.append(message)
        await keep.stop()
        await asyncio.Event().wait()

    for _ in range(2):
        await keep.run()

    assert client._session is not None
    assert client._session.subscriptions == set()
    await client.ack(kept[0])
    with pytest.raises(fila.errors.LeaseNotFoundError):
        await client.flush()
