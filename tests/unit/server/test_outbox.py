"""What is written to a stream, how much at a time, and what is skipped."""

import asyncio

import pytest

from fila.core import commands as c
from fila.core.effects import Delivery
from fila.model import QueueSettings, Spec
from fila.server.outbox import CHUNK_BYTES_MAX, Outbox
from fila.wire import envelope
from fila.wire._pb import service_pb2
from tests.unit.server.conftest import World


def body(size: int) -> bytes:
    return envelope.length_delimited(3, size) + bytes(size)


async def delivered(world: World, sizes: list[int]) -> Outbox:
    """An outbox that holds a delivery of each size."""
    queued = asyncio.Event()
    outbox = Outbox(world.disk, queued.set, world.runner.forget)
    consumer = world.runner.attach(outbox)
    await world.runner.ask(
        lambda answer: c.CreateQueue(tag=answer, queue="q", settings=QueueSettings())
    )
    await world.runner.ask(
        lambda answer: c.Enqueue(
            tag=answer,
            queue="q",
            bodies=[body(size) for size in sizes],
            specs=[Spec()] * len(sizes),
        )
    )
    world.runner.submit(c.OpenConsumer(consumer=consumer, credit=len(sizes)))
    await world.runner.ask(lambda answer: c.Subscribe(tag=answer, consumer=consumer, queue="q"))
    await asyncio.wait_for(queued.wait(), 10)
    return outbox


def sizes_of(chunk: list[bytes]) -> list[int]:
    response = service_pb2.LeaseResponse.FromString(b"".join(chunk))
    return [len(message.payload) for message in response.messages]


async def settle(world: World, action: c.Action, *deliveries: Delivery) -> None:
    await world.runner.ask(
        lambda answer: c.Settle(
            tag=answer,
            queue="q",
            action=action,
            sequences=[message.sequence for message, _ in deliveries],
            tokens=[token for _, token in deliveries],
        )
    )


async def test_a_chunk_is_bounded_by_bytes_and_what_is_over_comes_next(world: World) -> None:
    outbox = await delivered(world, [100_000] * 5)

    chunks = [outbox.next_chunk() for _ in range(4)]

    assert [len(chunk) for chunk in chunks] == [2, 2, 1, 0]


async def test_a_message_larger_than_a_chunk_is_sent_alone(world: World) -> None:
    outbox = await delivered(world, [10, 2 * CHUNK_BYTES_MAX, 20])

    assert [sizes_of(outbox.next_chunk()) for _ in range(3)] == [[10], [2 * CHUNK_BYTES_MAX], [20]]


async def test_a_chunk_is_bounded_by_messages(world: World) -> None:
    outbox = await delivered(world, [1] * 1100)

    assert [len(outbox.next_chunk()) for _ in range(4)] == [500, 500, 100, 0]


async def test_order_is_kept_over_chunks(world: World) -> None:
    sizes = [index % 7 * 1000 + index for index in range(600)]
    outbox = await delivered(world, sizes)

    found: list[int] = []
    while chunk := outbox.next_chunk():
        found.extend(sizes_of(chunk))

    assert found == sizes


async def test_a_lease_that_ended_before_it_was_sent_is_skipped(world: World) -> None:
    outbox = await delivered(world, [1, 2, 3])
    held = outbox.take_unsent()
    outbox.deliver(held)

    await settle(world, c.Action.ACK, held[1])

    assert sizes_of(outbox.next_chunk()) == [1, 3]


async def test_a_message_leased_again_meanwhile_is_sent_only_once(world: World) -> None:
    outbox = await delivered(world, [1])
    [stale] = outbox.take_unsent()
    await settle(world, c.Action.RELEASE, stale)
    [fresh] = outbox.take_unsent()

    outbox.deliver([stale, fresh])
    response = service_pb2.LeaseResponse.FromString(b"".join(outbox.next_chunk()))

    assert [message.delivery.lease_token for message in response.messages] == [fresh[1]]


async def test_what_was_read_but_not_sent_counts_as_unsent(world: World) -> None:
    outbox = await delivered(world, [100_000] * 5)
    outbox.next_chunk()

    assert len(outbox.take_unsent()) == 3
    assert outbox.next_chunk() == []


async def test_only_one_queues_deliveries_are_taken_back(world: World) -> None:
    outbox = await delivered(world, [1, 2])

    assert outbox.take_unsent("another") == []
    assert len(outbox.take_unsent("q")) == 2


async def test_a_message_that_the_disk_has_lost_is_not_leased_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = await delivered(world, [1, 2, 3])
    read = world.disk.read_messages
    monkeypatch.setattr(
        world.disk,
        "read_messages",
        lambda partition, sequences: [None, *read(partition, sequences)[1:]],
    )

    assert sizes_of(outbox.next_chunk()) == [2, 3]
    await world.runner.drain()

    assert world.runner.scheduler.summary("q").in_flight == 2
    assert world.runner.scheduler.summary("q").depth == 2
