"""The SDK's calls on a real broker: what comes back, what is refused, what travels together."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

import fila
from fila.client.connection import Connection
from fila.client.producer import Producer
from fila.errors import DeadlineError
from tests.integration.broker_process import BrokerProcess


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as process:
        yield process


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[fila.Client]:
    with fila.Client(broker.address) as client:
        yield client


@pytest.fixture
def queue(client: fila.Client, request: pytest.FixtureRequest) -> str:
    name = f"q-{abs(hash(request.node.name))}"
    client.admin.create_queue(name, visibility_timeout_ms=5000, retry_delay_ms=0)
    return name


def take(client: fila.Client, queue: str, count: int) -> list[fila.Message]:
    messages = []
    with client.consume(queue) as consumer:
        for message in consumer:
            client.ack(message)
            messages.append(message)
            if len(messages) == count:
                break
        client.flush()
    return messages


def test_what_is_sent_is_what_arrives(client: fila.Client, queue: str) -> None:
    headers = {"tenant": "Zoë", "empty": "", "日本": "🐟"}
    before = datetime.now(UTC) - timedelta(seconds=1)
    message_id = client.enqueue(
        queue,
        bytes(range(256)),
        headers=headers,
        fairness_key="acme",
        weight=3,
        priority=7,
        cost=2,
        throttle_keys=["smtp"],
    )

    (message,) = take(client, queue, 1)

    assert (message.id, message.queue, message.payload) == (message_id, queue, bytes(range(256)))
    assert message.headers == headers
    assert (message.fairness_key, message.weight, message.priority) == ("acme", 3, 7)
    assert (message.cost, message.throttle_keys, message.attempts) == (2, ("smtp",), 0)
    assert before < message.enqueued_at <= message.leased_at < message.lease_expires_at
    assert message.lease_expires_at - message.leased_at == timedelta(seconds=5)
    assert message.lease_token > 0
    assert message.dead_letter is None


@pytest.mark.parametrize("size", [0, 1, 3_000_000, 4 * 1024 * 1024 - 100])
def test_payloads_of_every_size_go_through(client: fila.Client, queue: str, size: int) -> None:
    client.enqueue(queue, b"x" * size)

    (message,) = take(client, queue, 1)

    assert len(message.payload) == size


def test_a_message_over_the_limit_is_refused_at_once(client: fila.Client, queue: str) -> None:
    with pytest.raises(fila.errors.InvalidArgumentError, match="message_bytes_max"):
        client.enqueue(queue, b"x" * (5 * 1024 * 1024))
    with pytest.raises(fila.errors.InvalidArgumentError):
        client.enqueue(queue, b"x" * (64 * 1024 * 1024))


def test_each_refusal_is_its_own_error(client: fila.Client, queue: str) -> None:
    with pytest.raises(fila.errors.QueueNotFoundError, match="create it first"):
        client.enqueue("nowhere", b"")
    with pytest.raises(fila.errors.QueueNotFoundError):
        next(client.consume("nowhere"))
    with pytest.raises(fila.errors.QueueExistsError):
        client.admin.create_queue(queue)
    with pytest.raises(fila.errors.InvalidArgumentError, match="weight"):
        client.enqueue(queue, b"", weight=0)
    with pytest.raises(fila.errors.InvalidArgumentError):
        client.admin.create_queue("bad\nname")
    with pytest.raises(fila.errors.MessageNotFoundError):
        client.admin.remove_message(queue, "01890000-0000-7000-8000-000000000000")
    with pytest.raises(TypeError, match="no setting colour"):
        client.admin.create_queue("q2", colour="blue")  # type: ignore[call-arg]


def test_a_full_queue_refuses_without_waiting_for_the_deadline(client: fila.Client) -> None:
    client.admin.create_queue("small", max_depth=1)
    client.enqueue("small", b"")

    with pytest.raises(fila.errors.ExhaustedError):
        client.enqueue("small", b"", timeout=3600)


def test_no_broker_is_one_clear_error() -> None:
    with (
        fila.Client("127.0.0.1:1", timeout=0.3) as client,
        pytest.raises(fila.errors.UnreachableError, match=r"127\.0\.0\.1:1.*fila-server"),
    ):
        client.enqueue("q", b"")
    with (
        fila.Client("127.0.0.1:1") as client,
        pytest.raises(fila.errors.UnreachableError, match=r"127\.0\.0\.1:1"),
    ):
        client.admin.list_queues()


def test_a_batch_answers_for_each_item(client: fila.Client, queue: str) -> None:
    results = client.enqueue_batch(
        queue, [fila.NewMessage(b"a"), fila.NewMessage(b"b", weight=0), fila.NewMessage(b"c")]
    )

    assert [type(result) for result in results] == [str, fila.errors.InvalidArgumentError, str]
    assert [message.payload for message in take(client, queue, 2)] == [b"a", b"c"]
    assert client.enqueue_batch(queue, []) == []


def test_a_batch_of_any_size_keeps_its_order(client: fila.Client, queue: str) -> None:
    ids = client.enqueue_batch(queue, [fila.NewMessage(b"%d" % n) for n in range(3500)])
    messages = take(client, queue, 3500)

    assert [message.id for message in messages] == ids
    assert [message.payload for message in messages] == [b"%d" % n for n in range(3500)]


async def test_calls_at_the_same_time_share_a_request(
    broker: BrokerProcess, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = 0
    unary = Connection.unary

    async def counting(
        self: Connection,
        path: str,
        request: bytes,
        *,
        timeout: float,  # noqa: ASYNC109 - that of the SDK
        repeatable: bool = False,
    ) -> bytes:
        nonlocal requests
        requests += path.endswith("EnqueueBatch")
        return await unary(self, path, request, timeout=timeout, repeatable=repeatable)

    monkeypatch.setattr(Connection, "unary", counting)
    async with fila.AsyncClient(broker.address) as client:
        ids = await asyncio.gather(*(client.enqueue(queue, b"%d" % n) for n in range(500)))

    assert len(set(ids)) == 500
    assert requests == 1


def test_many_threads_share_one_client(client: fila.Client, queue: str) -> None:
    with ThreadPoolExecutor(50) as threads:
        ids = list(threads.map(lambda n: client.enqueue(queue, b"%d" % n), range(1000)))

    assert {message.id for message in take(client, queue, 1000)} == set(ids)


def test_several_threads_consume_through_one_client(client: fila.Client, queue: str) -> None:
    client.enqueue_batch(queue, [fila.NewMessage(b"%d" % n) for n in range(1000)])
    seen: list[bytes] = []
    lock = threading.Lock()

    def consume() -> None:
        with client.consume(queue) as consumer:
            for message in consumer:
                if message.payload == b"end":
                    client.ack(message)
                    return
                with lock:
                    seen.append(message.payload)
                    done = len(seen) == 1000
                client.ack(message)
                if done:
                    client.enqueue_batch(queue, [fila.NewMessage(b"end")] * 4)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    client.flush()

    assert sorted(seen) == sorted(b"%d" % n for n in range(1000))
    assert client.admin.stats(queue).depth == 0


def test_leased_messages_are_settled_without_a_stream(client: fila.Client, queue: str) -> None:
    for name in (b"acked", b"nacked", b"released", b"rejected"):
        client.enqueue(queue, name)
    messages = {message.payload: message for message in client.lease(queue, 10)}
    client.extend(messages[b"acked"], 60)
    client.ack(messages[b"acked"])
    client.nack(messages[b"nacked"], "boom", delay=0)
    client.release(messages[b"released"])
    client.nack(messages[b"rejected"], "bad", dead_letter=True)
    client.flush()

    again = {message.payload: message for message in client.lease(queue, 10, wait=2)}
    (dead,) = client.lease(f"{queue}.dlq", 10)

    assert {name: message.attempts for name, message in again.items()} == {
        b"nacked": 1,
        b"released": 0,
    }
    assert dead.dead_letter is not None
    assert (dead.dead_letter.reason, dead.dead_letter.last_error) == ("rejected", "bad")
    assert dead.dead_letter.source_queue == queue
    assert client.lease(queue) == []


def test_a_message_is_settled_once(client: fila.Client, queue: str) -> None:
    client.enqueue(queue, b"")
    (message,) = client.lease(queue)
    client.ack(message)
    client.flush()

    with pytest.raises(fila.errors.LeaseNotFoundError):
        client.ack(message)


def test_a_refused_settle_surfaces_on_flush(client: fila.Client, queue: str) -> None:
    client.enqueue(queue, b"")
    (message,) = client.lease(queue)
    client.admin.purge_queue(queue, include_leased=True)
    client.ack(message)

    with pytest.raises(fila.errors.LeaseNotFoundError):
        client.flush()
    client.flush()


async def test_a_refused_settle_surfaces_on_a_later_call(broker: BrokerProcess, queue: str) -> None:
    async with fila.AsyncClient(broker.address) as client:
        await client.enqueue_batch(queue, [fila.NewMessage(b"")] * 2)
        first, second = await client.lease(queue, 2)
        await client.admin.purge_queue(queue, include_leased=True)
        await client.ack(first)

        async def later_call() -> None:
            while True:
                await client.extend(second)
                await asyncio.sleep(0)

        with pytest.raises(fila.errors.LeaseNotFoundError):
            await asyncio.wait_for(later_call(), 10)


def test_the_admin_calls_work(client: fila.Client, queue: str) -> None:
    admin = client.admin
    message_id = client.enqueue(queue, b"later", delay=3600)
    kept = client.enqueue(queue, b"now", fairness_key="acme")

    described = admin.update_queue(queue, max_attempts=3)
    assert (described.settings.max_attempts, described.settings.retry_delay_ms) == (3, 0)
    assert described.dead_letter_queue == f"{queue}.dlq"
    assert admin.get_queue(f"{queue}.dlq").dead_letter_queue is None
    stats = admin.stats(queue)
    assert (stats.depth, stats.ready, stats.delayed) == (2, 1, 1)
    assert [key.key for key in stats.per_key_stats if key.pending_count] != []
    browsed = {one.message.id: one for one in admin.browse(queue, page_size=1)}
    assert browsed[message_id].state is fila.MessageState.DELAYED
    assert browsed[kept].state is fila.MessageState.READY
    due = datetime.now(UTC) + timedelta(days=1)
    admin.reschedule(queue, message_id, deliver_at=due)
    (moved,) = [one for one in admin.browse(queue) if one.message.id == message_id]
    assert moved.due_at is not None
    assert abs(moved.due_at - due) < timedelta(milliseconds=2)
    admin.remove_message(queue, message_id)
    admin.pause_queue(queue)
    assert client.lease(queue) == []
    assert [info.paused for info in admin.list_queues() if info.name == queue] == [True]
    admin.resume_queue(queue)
    assert admin.purge_queue(queue) == 1
    with client.consume(queue, name="me", prefetch=5):
        while not (seen := admin.consumers(queue)):
            pass
    assert [(info.name, info.credit, info.queues) for info in seen] == [("me", 5, (queue,))]
    admin.delete_queue(queue)
    with pytest.raises(fila.errors.QueueNotFoundError):
        admin.get_queue(queue)


def test_runtime_settings_are_kept(client: fila.Client) -> None:
    admin = client.admin
    admin.set_config("tier:acme", "gold")

    assert admin.get_config("tier:acme") == "gold"
    assert admin.list_config("tier:") == {"tier:acme": "gold"}
    assert admin.delete_config("tier:acme")
    assert not admin.delete_config("tier:acme")
    assert admin.get_config("tier:acme") is None


def test_a_client_outlives_an_event_loop(broker: BrokerProcess, queue: str) -> None:
    client = fila.AsyncClient(broker.address)

    first = asyncio.run(client.enqueue(queue, b"1"))
    second = asyncio.run(client.enqueue(queue, b"2"))

    assert first != second
    asyncio.run(client.close())


def test_a_closed_client_says_so(broker: BrokerProcess, queue: str) -> None:
    client = fila.Client(broker.address)
    client.enqueue(queue, b"")
    client.close()

    with pytest.raises(RuntimeError, match="closed"):
        client.enqueue(queue, b"")


def test_a_settle_after_the_end_says_so(broker: BrokerProcess, queue: str) -> None:
    client = fila.Client(broker.address)
    client.enqueue(queue, b"")
    (message,) = client.lease(queue)
    client.close()

    with pytest.raises(RuntimeError, match="the client is closed"):
        client.ack(message)


def test_a_name_that_can_not_be_sent_is_refused_at_once(client: fila.Client, queue: str) -> None:
    message = fila.NewMessage(b"")
    calls: list[Callable[[str], object]] = [
        lambda name: client.enqueue(name, b""),
        lambda name: client.enqueue_batch(name, [message]),
        client.lease,
        lambda name: next(client.consume(name)),
        lambda name: next(client.consume([name])),
        lambda name: next(client.consume(queue, name=name)),
    ]
    for call in calls:
        with pytest.raises(fila.errors.InvalidArgumentError, match="can't be sent"):
            call("\ud800")
        with pytest.raises(TypeError):
            call(5)  # type: ignore[arg-type]


def test_an_error_text_of_any_kind_is_sent(client: fila.Client, queue: str) -> None:
    client.admin.update_queue(queue, max_attempts=1)
    client.enqueue_batch(queue, [fila.NewMessage(b"")] * 2)
    (leased,) = client.lease(queue)
    client.nack(leased, "no such file: \udcff")
    client.nack(next(client.consume(queue)), "no such file: \udcff")
    client.flush()

    for dead in client.lease(f"{queue}.dlq", 2):
        assert dead.dead_letter is not None
        assert dead.dead_letter.last_error == r"no such file: \udcff"
    assert client.admin.stats(f"{queue}.dlq").in_flight == 2


async def test_a_part_of_a_batch_for_which_there_was_no_room_fails_by_itself(
    broker: BrokerProcess, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_room(_self: Producer, _timeout: float) -> None:
        raise DeadlineError("no room")

    async with fila.AsyncClient(broker.address) as client:
        monkeypatch.setattr(
            Producer, "is_full", property(lambda self: bool(self._batcher.outstanding))
        )
        monkeypatch.setattr(Producer, "wait_for_room", no_room)
        results = await client.enqueue_batch(queue, [fila.NewMessage(b"")] * 2500)
        depth = (await client.admin.stats(queue)).depth

    errors = [result for result in results if isinstance(result, fila.FilaError)]
    assert (depth, len(errors)) == (1000, 1500)
    assert {type(error) for error in errors} == {DeadlineError}
