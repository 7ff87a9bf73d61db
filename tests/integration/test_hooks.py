"""Scripts on a real broker: what they decide holds, what they break stays theirs."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import fila
from fila.errors import InvalidArgumentError
from tests.integration.broker_process import BrokerProcess
from tests.integration.conditions import until

BY_TENANT = """
function on_enqueue(msg)
  return {
    fairness_key = msg.headers.tenant,
    weight = fila.get("weight:" .. msg.headers.tenant),
    throttle_keys = { "provider:" .. (msg.headers.provider or "none") },
    priority = msg.payload_size,
  }
end
"""
BY_ERROR = """
function on_failure(msg)
  if msg.error:find("bad address", 1, true) then
    return { action = "dlq" }
  end
  return { action = "retry", delay_ms = 0, fairness_key = "slow", throttle_keys = { "retries" } }
end
"""
BROKEN = "function on_enqueue(msg) error('no such tenant') end"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as process:
        yield process


@pytest.fixture
async def client(broker: BrokerProcess) -> AsyncIterator[fila.AsyncClient]:
    async with fila.AsyncClient(broker.address) as client:
        yield client


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    return f"h-{abs(hash(request.node.name))}"


async def test_a_script_says_key_weight_limits_and_priority(
    client: fila.AsyncClient, queue: str
) -> None:
    await client.admin.create_queue(queue, on_enqueue_script=BY_TENANT)
    await client.admin.set_config("weight:acme", "3")

    await client.enqueue(queue, b"xy", headers={"tenant": "acme"}, fairness_key="own", weight=9)
    (message,) = await client.lease(queue, 1)

    assert message.fairness_key == "acme"
    assert message.weight == 3
    assert list(message.throttle_keys) == ["provider:none"]
    assert message.priority == 2


async def test_a_change_of_the_runtime_config_is_seen_by_the_next_call(
    client: fila.AsyncClient, queue: str
) -> None:
    await client.admin.create_queue(queue, on_enqueue_script=BY_TENANT)
    weights = []

    for weight in ("2", "5", ""):
        await client.admin.set_config("weight:zoo", weight)
        await client.enqueue(queue, b"", headers={"tenant": "zoo"})
        (message,) = await client.lease(queue, 1)
        weights.append(message.weight)

    assert weights == [2, 5, 1]


async def test_each_message_of_a_batch_is_asked_about_in_order(
    client: fila.AsyncClient, queue: str
) -> None:
    await client.admin.create_queue(queue, on_enqueue_script=BY_TENANT)
    tenants = [f"t{number % 50}" for number in range(2000)]

    await client.enqueue_batch(
        queue, [fila.NewMessage(b"", headers={"tenant": tenant}) for tenant in tenants]
    )
    found = [browsed.message async for browsed in client.admin.browse(queue, page_size=1000)]

    assert [message.fairness_key for message in found] == tenants
    stats = await client.admin.stats(queue)
    assert stats.on_enqueue is not None
    assert stats.on_enqueue.calls == 2000


async def test_a_script_that_is_wrong_is_refused_with_its_line_and_changes_nothing(
    client: fila.AsyncClient, queue: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=r":2:"):
        await client.admin.create_queue(queue, on_enqueue_script="function on_enqueue()\nretur 1")
    with pytest.raises(InvalidArgumentError, match="on_failure"):
        await client.admin.create_queue(queue, on_failure_script="x = 1")
    assert queue not in [info.name for info in await client.admin.list_queues()]

    await client.admin.create_queue(queue, on_enqueue_script=BY_TENANT)
    with pytest.raises(InvalidArgumentError):
        await client.admin.update_queue(
            queue, max_attempts=7, on_failure_script="while true do end"
        )
    described = await client.admin.get_queue(queue)

    assert described.settings.max_attempts == 20
    assert described.settings.on_failure_script == ""


async def test_a_failing_script_fails_no_enqueue_and_its_breaker_opens(
    client: fila.AsyncClient, queue: str, broker: BrokerProcess
) -> None:
    await client.admin.create_queue(queue, on_enqueue_script=BROKEN)

    for _ in range(10):
        await client.enqueue(queue, b"", fairness_key="own")
    stats = (await client.admin.stats(queue)).on_enqueue
    messages = await client.lease(queue, 10)

    assert stats is not None
    assert (stats.errors, stats.bypassed, stats.breaker_opened) == (3, 7, 1)
    assert stats.breaker_open
    assert "no such tenant" in stats.last_error
    assert {message.fairness_key for message in messages} == {"own"}
    tripped = [line for line in broker.log_text.splitlines() if queue in line]
    assert len(tripped) == 1
    assert "on_enqueue:1" in tripped[0]
    # The script's own words may hold a header.
    assert "no such tenant" not in tripped[0]


async def test_a_script_that_fails_every_second_time_is_left_out_too(
    client: fila.AsyncClient, queue: str
) -> None:
    script = """
      local count = 0
      function on_enqueue(msg)
        count = count + 1
        if count % 2 == 0 then error("every second time") end
        return { fairness_key = "odd" }
      end
    """
    await client.admin.create_queue(queue, on_enqueue_script=script)

    await client.enqueue_batch(queue, [fila.NewMessage(b"")] * 200)
    stats = (await client.admin.stats(queue)).on_enqueue

    assert stats is not None
    assert (stats.breaker_opened, stats.breaker_open) == (1, True)
    assert (stats.calls, stats.errors, stats.bypassed) == (20, 10, 180)


async def test_what_a_failure_script_decides_is_done(client: fila.AsyncClient, queue: str) -> None:
    await client.admin.create_queue(queue, on_failure_script=BY_ERROR)
    await client.enqueue(queue, b"a")
    (first,) = await client.lease(queue, 1)
    await client.nack(first, "503 from the provider")

    again = await client.lease(queue, 1, wait=5)
    await client.nack(again[0], "bad address")
    (dead,) = await client.lease(f"{queue}.dlq", 1, wait=5)

    assert again[0].fairness_key == "slow"
    assert list(again[0].throttle_keys) == ["retries"]
    assert again[0].attempts == 1
    assert dead.dead_letter is not None
    assert (dead.dead_letter.reason, dead.dead_letter.last_error) == ("rejected", "bad address")


async def test_a_rejection_is_not_asked_about_and_a_release_neither(
    client: fila.AsyncClient, queue: str
) -> None:
    await client.admin.create_queue(queue, on_failure_script=BY_ERROR)
    await client.enqueue(queue, b"a")
    (first,) = await client.lease(queue, 1)
    await client.release(first)
    (again,) = await client.lease(queue, 1, wait=5)
    await client.nack(again, "no", dead_letter=True)

    stats = (await client.admin.stats(queue)).on_failure

    assert stats is not None
    assert stats.calls == 0


async def test_a_lease_that_expires_asks_nobody(client: fila.AsyncClient, queue: str) -> None:
    await client.admin.create_queue(
        queue, on_failure_script=BY_ERROR, visibility_timeout_ms=1000, retry_delay_ms=0
    )
    await client.enqueue(queue, b"a", fairness_key="own")
    await client.lease(queue, 1)

    (again,) = await client.lease(queue, 1, wait=10)
    stats = (await client.admin.stats(queue)).on_failure

    assert (again.attempts, again.fairness_key) == (1, "own")
    assert stats is not None
    assert stats.calls == 0


async def test_scripts_are_there_after_a_restart(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        async with fila.AsyncClient(broker.address) as client:
            await client.admin.create_queue("q", on_enqueue_script=BY_TENANT)
            await client.admin.set_config("weight:acme", "4")
        broker.kill()
    with BrokerProcess(tmp_path / "data") as broker:
        async with fila.AsyncClient(broker.address) as client:
            await client.enqueue("q", b"", headers={"tenant": "acme"})
            (message,) = await client.lease("q", 1)

    assert (message.fairness_key, message.weight) == ("acme", 4)


async def test_a_queue_that_is_made_again_does_not_have_the_script_of_the_old_one(
    client: fila.AsyncClient, queue: str
) -> None:
    await client.admin.create_queue(queue, on_enqueue_script=BY_TENANT)
    await client.admin.delete_queue(queue)
    await client.admin.create_queue(queue)

    await client.enqueue(queue, b"", headers={"tenant": "acme"})
    (message,) = await client.lease(queue, 1)

    assert message.fairness_key == "default"


async def test_concurrent_updates_lose_nothing_of_each_other(
    client: fila.AsyncClient, queue: str
) -> None:
    await client.admin.create_queue(queue)

    await asyncio.gather(
        client.admin.update_queue(queue, on_enqueue_script=BY_TENANT),
        client.admin.update_queue(queue, max_attempts=5),
        client.admin.update_queue(queue, on_failure_script=BY_ERROR),
        client.admin.update_queue(queue, retry_delay_ms=7),
    )
    settings = (await client.admin.get_queue(queue)).settings

    assert settings.on_enqueue_script == BY_TENANT
    assert settings.on_failure_script == BY_ERROR
    assert (settings.max_attempts, settings.retry_delay_ms) == (5, 7)


async def test_a_redriven_dead_letter_is_asked_about_again(
    client: fila.AsyncClient, queue: str
) -> None:
    await client.admin.create_queue(queue)
    await client.enqueue(queue, b"a", headers={"tenant": "acme"}, fairness_key="own", ttl=60)
    (message,) = await client.lease(queue, 1)
    await client.nack(message, "bad address", dead_letter=True)
    await client.flush()
    await client.admin.update_queue(queue, on_enqueue_script=BY_TENANT)

    moved = await client.admin.redrive(f"{queue}.dlq")
    (again,) = await client.lease(queue, 1, wait=5)

    assert moved == 1
    assert (again.id, again.fairness_key, again.attempts) == (message.id, "acme", 0)
    assert list(again.throttle_keys) == ["provider:none"]


async def test_a_delay_of_the_script_holds_a_message_back(
    client: fila.AsyncClient, queue: str
) -> None:
    script = "function on_enqueue(msg) return { delay_ms = 600000 } end"
    await client.admin.create_queue(queue, on_enqueue_script=script)

    await client.enqueue(queue, b"a")
    (browsed,) = [browsed async for browsed in client.admin.browse(queue)]

    assert browsed.state is fila.MessageState.DELAYED
    assert browsed.due_at is not None
    assert 590 < (browsed.due_at - browsed.message.enqueued_at).total_seconds() <= 600


async def test_what_waits_for_a_script_is_stored_before_a_broker_stops(tmp_path: Path) -> None:
    slow = "function on_enqueue(msg) for i = 1, 100000 do end return { fairness_key = 'k' } end"
    with BrokerProcess(tmp_path / "data") as broker:
        async with fila.AsyncClient(broker.address, timeout=30) as client:
            await client.admin.create_queue("q", on_enqueue_script=slow, hook_timeout_ms=1000)
            sending = asyncio.create_task(client.enqueue_batch("q", [fila.NewMessage(b"")] * 500))

            async def is_asked() -> bool:
                stats = (await client.admin.stats("q")).on_enqueue
                return stats is not None and stats.calls > 0

            await until(is_asked)
            assert broker.terminate() == 0
            results = await sending
    with BrokerProcess(tmp_path / "data") as broker:
        async with fila.AsyncClient(broker.address) as client:
            keys = {browsed.message.fairness_key async for browsed in client.admin.browse("q")}
            stats = await client.admin.stats("q")

    assert not [result for result in results if isinstance(result, fila.FilaError)]
    assert (stats.depth, keys) == (500, {"k"})


async def test_a_script_that_is_slower_than_what_arrives_refuses_enqueues_of_its_queue_alone(
    client: fila.AsyncClient, broker: BrokerProcess, queue: str
) -> None:
    slow = "function on_enqueue(msg) for i = 1, 300000 do end return {} end"
    await client.admin.create_queue(queue, on_enqueue_script=slow, hook_timeout_ms=1000)
    await client.admin.create_queue(f"{queue}-other")

    async def send() -> list[str | fila.FilaError]:
        async with fila.AsyncClient(broker.address, timeout=2) as impatient:
            return await impatient.enqueue_batch(queue, [fila.NewMessage(b"")] * 4000)

    results = await asyncio.gather(*(send() for _ in range(12)))
    await client.enqueue(f"{queue}-other", b"goes on")
    await client.admin.delete_queue(queue)

    # Out of time or out of room: the SDK tried again until its deadline, then the caller is told.
    errors = [error for result in results for error in result if isinstance(error, fila.FilaError)]
    assert any("wait for the on_enqueue script" in str(error) for error in errors)
