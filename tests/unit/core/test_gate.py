"""What may leave between the write and the sync."""

import pytest

from fila.core import commands as c
from fila.core.effects import Effects
from fila.core.gate import Gate, Released
from fila.model import Spec
from tests.unit.core.driver import QUEUE, Driver


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def _enqueue(driver: Driver, count: int = 1, tag: object = "enqueue") -> Effects:
    return driver.step(
        c.Enqueue(tag=tag, queue=QUEUE, bodies=[b""] * count, specs=[Spec()] * count)
    )


def _tags(released: Released) -> list[object]:
    return [tag for tag, _ in released.replies]


def _sequences(released: Released) -> list[int]:
    return [message.sequence for batch in released.deliveries.values() for message, _ in batch]


def test_a_reply_waits_for_the_sync_that_began_after_its_write(driver: Driver) -> None:
    gate = Gate()

    assert _tags(gate.pass_through(_enqueue(driver, tag="first"))) == []
    sync = gate.begin_sync()
    assert _tags(gate.pass_through(_enqueue(driver, tag="second"))) == []
    assert _tags(gate.end_sync(sync)) == ["first"]
    assert gate.needs_sync
    assert _tags(gate.end_sync(gate.begin_sync())) == ["second"]
    assert not gate.needs_sync


def test_one_sync_lets_out_the_replies_of_many_passes_in_order(driver: Driver) -> None:
    gate = Gate()
    for number in range(5):
        gate.pass_through(_enqueue(driver, tag=number))

    assert _tags(gate.end_sync(gate.begin_sync())) == [0, 1, 2, 3, 4]


def test_with_everything_on_disk_nothing_waits(driver: Driver) -> None:
    gate = Gate()
    gate.pass_through(_enqueue(driver))
    gate.end_sync(gate.begin_sync())

    refused = driver.step(c.PauseQueue(tag="refused", queue="nowhere", paused=True))

    assert not refused.mutations
    assert _tags(gate.pass_through(refused)) == ["refused"]


def test_a_delivery_waits_until_its_message_is_on_disk(driver: Driver) -> None:
    gate = Gate()
    driver.consume()

    effects = _enqueue(driver)
    assert effects.deliveries
    assert _sequences(gate.pass_through(effects)) == []

    assert _sequences(gate.end_sync(gate.begin_sync())) == [1]


def test_a_delivery_of_what_is_on_disk_does_not_wait_for_its_lease(driver: Driver) -> None:
    gate = Gate()
    gate.pass_through(_enqueue(driver))
    gate.end_sync(gate.begin_sync())
    opened = driver.step(
        c.OpenConsumer(consumer=1, credit=1), c.Subscribe(tag="open", consumer=1, queue=QUEUE)
    )

    released = gate.pass_through(opened)

    assert _sequences(released) == [1]
    assert gate.needs_sync


def test_a_sync_that_covers_only_older_messages_lets_only_those_out(driver: Driver) -> None:
    gate = Gate()
    gate.pass_through(_enqueue(driver, 2))
    sync = gate.begin_sync()
    gate.pass_through(_enqueue(driver, 2))
    gate.end_sync(sync)

    opened = driver.step(
        c.OpenConsumer(consumer=1, credit=2), c.Subscribe(tag=0, consumer=1, queue=QUEUE)
    )
    assert _sequences(gate.pass_through(opened)) == [1, 2]
    grown = driver.step(c.SetCredit(consumer=1, credit=9))
    assert _sequences(gate.pass_through(grown)) == []
    assert _sequences(gate.end_sync(gate.begin_sync())) == [3, 4]


def test_a_consumers_batch_waits_as_a_whole_and_others_do_not_wait_for_it(driver: Driver) -> None:
    gate = Gate()
    driver.create("other")
    gate.pass_through(_enqueue(driver))
    gate.end_sync(gate.begin_sync())

    effects = driver.step(
        c.Enqueue(tag=0, queue="other", bodies=[b""], specs=[Spec()]),
        c.OpenConsumer(consumer=1, credit=1),
        c.OpenConsumer(consumer=2, credit=1),
        c.Subscribe(tag=0, consumer=1, queue="other"),
        c.Subscribe(tag=0, consumer=2, queue=QUEUE),
    )

    assert list(gate.pass_through(effects).deliveries) == [2]
    assert list(gate.end_sync(gate.begin_sync()).deliveries) == [1]


def test_the_end_of_a_stream_waits_until_the_deletion_is_on_disk(driver: Driver) -> None:
    gate = Gate()
    driver.consume()

    assert not gate.pass_through(driver.step(c.DeleteQueue(tag=0, queue=QUEUE))).closed

    assert len(gate.end_sync(gate.begin_sync()).closed) == 1


def test_without_waiting_for_the_disk_everything_leaves_at_once_and_nothing_is_kept(
    driver: Driver,
) -> None:
    gate = Gate(hold_replies=False)
    driver.consume()

    for _ in range(10):
        released = gate.pass_through(_enqueue(driver, tag="now"))
        assert _tags(released) == ["now"]
        assert len(_sequences(released)) == 1

    assert not gate._accepted
    assert not gate._held


def test_a_later_batch_does_not_overtake_one_of_the_same_consumer(driver: Driver) -> None:
    gate = Gate()
    gate.pass_through(_enqueue(driver))
    gate.end_sync(gate.begin_sync())
    opened = driver.step(
        c.OpenConsumer(consumer=1, credit=1), c.Subscribe(tag=0, consumer=1, queue=QUEUE)
    )
    gate.pass_through(opened)
    gate.end_sync(gate.begin_sync())
    (held,) = driver.delivered
    driver.step(c.SetCredit(consumer=1, credit=0))

    gate.pass_through(_enqueue(driver))
    fresh = driver.step(c.SetCredit(consumer=1, credit=2))
    assert _sequences(gate.pass_through(fresh)) == []
    released = driver.step(
        c.SetCredit(consumer=1, credit=3),
        c.Settle(
            tag=0,
            queue=QUEUE,
            action=c.Action.RELEASE,
            sequences=[held.sequence],
            tokens=[held.token],
        ),
    )

    assert _sequences(gate.pass_through(released)) == []
    assert _sequences(gate.end_sync(gate.begin_sync())) == [2, 1]
