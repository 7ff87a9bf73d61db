"""The loop around the core: what is answered when, what is refused, and how it ends."""

import asyncio
from collections.abc import Sequence

import pytest

from fila.core import commands as c
from fila.core.effects import Closed, Delivery, Reply
from fila.errors import (
    ExhaustedError,
    QueueExistsError,
    QueueNotFoundError,
    ShuttingDownError,
    StorageError,
)
from fila.model import Outcome, ProducerSequence, QueueSettings, Spec
from fila.server.runner import Answer, Fsync
from tests.unit.server.conftest import World

PATIENCE_S = 10


class Inbox:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.closed: list[Closed] = []
        self.changed = asyncio.Event()

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        self.deliveries.extend(deliveries)
        self.changed.set()

    def close_queue(self, closed: Closed) -> None:
        self.closed.append(closed)
        self.changed.set()

    async def wait(self) -> None:
        await asyncio.wait_for(self.changed.wait(), PATIENCE_S)
        self.changed.clear()


def create(answer: Answer, queue: str = "q") -> c.CreateQueue:
    return c.CreateQueue(tag=answer, queue=queue, settings=QueueSettings())


def enqueue(
    answer: Answer, count: int = 1, producer: ProducerSequence | None = None, queue: str = "q"
) -> c.Enqueue:
    return c.Enqueue(
        tag=answer,
        queue=queue,
        bodies=[b"\x1a\x01x"] * count,
        specs=[Spec()] * count,
        producer=producer,
    )


async def turns(count: int = 5) -> None:
    """Let the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


async def subscribed(world: World, *, credit: int = 10) -> tuple[int, Inbox]:
    inbox = Inbox()
    consumer = world.runner.attach(inbox)
    world.runner.submit(c.OpenConsumer(consumer=consumer, credit=credit))
    await world.runner.ask(lambda answer: c.Subscribe(tag=answer, consumer=consumer, queue="q"))
    return consumer, inbox


async def test_a_reply_waits_for_the_disk(world: World) -> None:
    await world.runner.ask(create)
    world.disk.open_gate.clear()
    syncs = world.disk.syncs

    pending = asyncio.create_task(world.runner.ask(enqueue))
    await turns(20)

    assert not pending.done()
    world.disk.open_gate.set()
    assert isinstance(await pending, Outcome)
    assert world.disk.syncs == syncs + 1


async def test_commands_that_arrive_together_share_one_sync(world: World) -> None:
    await world.runner.ask(create)
    syncs = world.disk.syncs

    await asyncio.gather(*(world.runner.ask(enqueue) for _ in range(4)))

    assert world.disk.syncs == syncs + 1


async def test_a_sync_that_began_earlier_does_not_cover_what_came_after(world: World) -> None:
    await world.runner.ask(create)
    world.disk.open_gate.clear()
    first = asyncio.create_task(world.runner.ask(enqueue))
    await turns(20)
    second = asyncio.create_task(world.runner.ask(enqueue))
    await turns(20)
    syncs = world.disk.syncs

    world.disk.open_gate.set()
    await asyncio.gather(first, second)

    assert world.disk.syncs == syncs + 2


async def test_small_enqueues_gather_while_the_disk_is_busy_and_a_settle_takes_them_along(
    world: World,
) -> None:
    await world.runner.ask(create)
    world.disk.open_gate.clear()
    replies: list[Reply] = []
    world.runner.submit(enqueue(replies.append))
    await turns(20)
    written = world.disk.unsynced_count

    world.runner.submit(enqueue(replies.append))
    world.runner.submit(enqueue(replies.append))
    await turns(20)

    assert world.disk.unsynced_count == written
    settle = c.Settle(tag=replies.append, queue="q", action=c.Action.ACK, sequences=[1], tokens=[1])
    world.runner.submit(settle)
    await turns(20)
    assert world.disk.unsynced_count == written + 1
    world.disk.open_gate.set()
    await asyncio.wait_for(world.runner.drain(), PATIENCE_S)
    assert len(replies) == 4


async def test_a_large_enqueue_does_not_wait_for_the_disk_to_be_free(world: World) -> None:
    await world.runner.ask(create)
    world.disk.open_gate.clear()
    world.runner.submit(enqueue(lambda _: None))
    await turns(20)
    written = world.disk.unsynced_count

    world.runner.submit(enqueue(lambda _: None), size=100_000)
    await turns(20)

    assert world.disk.unsynced_count == written + 1


async def test_a_refusal_is_raised(world: World) -> None:
    await world.runner.ask(create)

    with pytest.raises(QueueExistsError):
        await world.runner.ask(create)


@pytest.mark.parametrize("during", ["write", "sync"])
async def test_a_failed_commit_answers_nothing_and_ends_the_process(
    world: World, during: str
) -> None:
    await world.runner.ask(create)
    replies: list[Reply] = []
    if during == "sync":
        world.disk.open_gate.clear()
        world.runner.submit(enqueue(replies.append))
        await turns(20)
    world.disk.fails = True
    world.disk.open_gate.set()
    world.runner.submit(enqueue(replies.append))

    await asyncio.wait_for(world.runner.drain(), PATIENCE_S)
    await turns(20)

    assert replies == []
    assert [type(error) for error in world.failures] == [StorageError]


async def test_too_many_waiting_commands_are_refused_but_settles_never(world: World) -> None:
    await world.runner.ask(create)
    world.disk.open_gate.clear()
    replies: list[Reply] = []
    for _ in range(5):
        world.runner.submit(enqueue(replies.append))
    settle = c.Settle(tag=replies.append, queue="q", action=c.Action.ACK, sequences=[1], tokens=[1])

    with pytest.raises(ExhaustedError, match="commands_waiting_max"):
        world.runner.submit(enqueue(replies.append))
    world.runner.submit(settle)
    world.disk.open_gate.set()
    await asyncio.wait_for(world.runner.drain(), PATIENCE_S)

    assert len(replies) == 6
    world.runner.submit(enqueue(replies.append))


async def test_a_repeat_in_the_same_pass_is_stored_once(world: World) -> None:
    await world.runner.ask(create)
    key = ProducerSequence(b"p", 1)

    first, second = await asyncio.gather(
        *(world.runner.ask(lambda answer: enqueue(answer, 3, key)) for _ in range(2))
    )
    third = await world.runner.ask(lambda answer: enqueue(answer, 3, key))

    assert first == second == third
    assert world.runner.scheduler.summary("q").depth == 3


async def test_a_large_backlog_of_commands_takes_several_passes(world: World) -> None:
    await world.runner.ask(create)
    written = world.disk.unsynced_count
    world.disk.open_gate.clear()
    replies: list[Reply] = []

    for _ in range(3):
        world.runner.submit(enqueue(replies.append, 3000))
    await turns(20)

    assert world.disk.unsynced_count - written == 2
    world.disk.open_gate.set()
    await asyncio.wait_for(world.runner.drain(), PATIENCE_S)
    assert len(replies) == 3


async def test_deliveries_go_to_their_sink_and_the_end_of_a_queue_too(world: World) -> None:
    await world.runner.ask(create)
    _, inbox = await subscribed(world)

    await world.runner.ask(enqueue)
    await inbox.wait()
    await world.runner.ask(lambda answer: c.DeleteQueue(tag=answer, queue="q"))

    assert len(inbox.deliveries) == 1
    assert [type(closed.error) for closed in inbox.closed] == [QueueNotFoundError]


async def test_what_is_delivered_to_nobody_any_more_is_given_back(world: World) -> None:
    await world.runner.ask(create)
    consumer, inbox = await subscribed(world)
    world.disk.open_gate.clear()
    world.runner.submit(enqueue(lambda _: None))
    await turns(20)

    # The message is leased, and waits for its enqueue to be on disk.
    assert world.runner.scheduler.summary("q").in_flight == 1
    world.runner.detach(consumer)
    world.runner.submit(c.CloseConsumer(consumer=consumer))
    world.disk.open_gate.set()
    await asyncio.wait_for(world.runner.drain(), PATIENCE_S)

    assert inbox.deliveries == []
    assert world.runner.scheduler.summary("q").in_flight == 0
    assert world.runner.scheduler.summary("q").depth == 1


async def test_a_lease_that_ran_out_is_noticed_without_a_command(world: World) -> None:
    await world.runner.ask(create)
    _, inbox = await subscribed(world)
    await world.runner.ask(enqueue)
    await inbox.wait()

    world.clock.advance(31)
    world.runner.wake()
    await inbox.wait()

    assert [message.attempts for message, _ in inbox.deliveries] == [1, 1]


async def test_while_stopping_only_settles_are_taken(world: World) -> None:
    await world.runner.ask(create)
    world.runner.refuse_new_work()

    with pytest.raises(ShuttingDownError):
        await world.runner.ask(enqueue)
    settle = await world.runner.ask(
        lambda answer: c.Settle(
            tag=answer, queue="q", action=c.Action.ACK, sequences=[1], tokens=[1]
        )
    )

    assert settle is not None


@pytest.mark.parametrize("fsync", [Fsync.NEVER])
async def test_without_fsync_nothing_waits_and_nothing_syncs(world: World) -> None:
    world.disk.open_gate.clear()

    await asyncio.wait_for(world.runner.ask(create), PATIENCE_S)
    await world.runner.ask(enqueue)

    assert world.disk.syncs == 0


@pytest.mark.parametrize("fsync", [Fsync.INTERVAL])
async def test_with_an_interval_replies_do_not_wait_and_the_disk_follows(world: World) -> None:
    world.disk.open_gate.clear()
    await asyncio.wait_for(world.runner.ask(create), PATIENCE_S)
    world.disk.open_gate.set()

    await asyncio.wait_for(asyncio.to_thread(world.disk.synced.wait), PATIENCE_S)

    assert world.disk.syncs == 1
