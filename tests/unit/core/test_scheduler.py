"""The pass as a whole."""

from fila.core import commands as c
from fila.core.effects import Effects, SettleResult
from fila.core.scheduler import Scheduler
from fila.errors import QueueNotFoundError
from fila.model import Outcome, ProducerSequence, QueueSettings, Spec, Timing
from tests.unit.core.driver import DLQ, QUEUE, START_WALL_NS, Driver


def test_commands_of_one_pass_are_carried_out_in_order() -> None:
    driver = Driver()

    replies = driver.run(
        c.Enqueue(tag=0, queue=QUEUE, bodies=[b""], specs=[Spec()]),
        c.CreateQueue(tag=1, queue=QUEUE, settings=QueueSettings()),
        c.Enqueue(tag=2, queue=QUEUE, bodies=[b""], specs=[Spec()]),
        c.PurgeQueue(tag=3, queue=QUEUE),
        c.PurgeQueue(tag=4, queue=QUEUE),
    )

    assert isinstance(replies[0], QueueNotFoundError)
    assert isinstance(replies[2], Outcome)
    assert [replies[1], replies[3], replies[4]] == [None, 1, 0]


def test_each_reply_carries_the_tag_of_its_command() -> None:
    driver = Driver()
    tags = [object(), object()]

    effects = driver.step(
        c.CreateQueue(tag=tags[0], queue=QUEUE, settings=QueueSettings()),
        c.PauseQueue(tag=tags[1], queue=QUEUE, paused=True),
    )

    assert [tag for tag, _ in effects.replies] == tags


def test_a_refused_command_changes_nothing() -> None:
    driver = Driver()
    driver.create()

    effects = driver.step(
        c.CreateQueue(tag=0, queue=QUEUE, settings=QueueSettings(max_depth=1)),
        c.DeleteQueue(tag=0, queue=DLQ),
        c.Enqueue(tag=0, queue="nowhere", bodies=[b""], specs=[Spec()]),
    )

    assert not effects.mutations
    assert driver.scheduler.settings(QUEUE).max_depth == 0


def test_what_is_due_falls_due_before_the_commands_of_the_pass() -> None:
    driver = Driver()
    driver.create()
    driver.enqueue()
    late = driver.take_one()
    driver.now_ns += 30_000_000_000

    result = driver.settle(c.Action.ACK, late)

    assert isinstance(result, SettleResult)
    assert result.errors


def test_an_idle_broker_has_nothing_to_wait_for() -> None:
    driver = Driver()
    driver.create()
    driver.enqueue()
    driver.ack(driver.take_one())
    driver.consume()

    assert driver.due_ns() is None
    effects = driver.step()
    assert effects == Effects()


def test_outcomes_are_swept_without_a_command() -> None:
    driver = Driver()
    driver.create()
    driver.accept([Spec()], producer=ProducerSequence(b"p", 1))
    driver.purge()
    passes = 0

    while (due_ns := driver.due_ns()) is not None:
        driver.pass_time(due_ns / 1_000_000_000)
        passes += 1

    assert passes < 20
    assert not driver.scheduler.needs_lookup(QUEUE, ProducerSequence(b"p", 1))


def _story(scheduler: Scheduler) -> list[str]:
    told = []
    commands: list[list[c.Command]] = [
        [c.CreateQueue(tag=0, queue=QUEUE, settings=QueueSettings())],
        [
            c.Enqueue(
                tag=1,
                queue=QUEUE,
                bodies=[b""] * 6,
                specs=[Spec(fairness_key=key, weight=2) for key in "abcabc"],
                timings={4: Timing(delay_ms=1000), 5: Timing(ttl_ms=1)},
            ),
            c.OpenConsumer(consumer=1, credit=3),
            c.Subscribe(tag=2, consumer=1, queue=QUEUE),
        ],
        [c.SetCredit(consumer=1, credit=10)],
        [c.CloseConsumer(consumer=1)],
        [],
    ]
    for number, batch in enumerate(commands):
        at_ns = number * 10_000_000_000
        effects = scheduler.handle(batch, now_ns=at_ns, wall_ns=START_WALL_NS + at_ns)
        told.append(f"{effects.replies} {[type(change).__name__ for change in effects.mutations]}")
        told += [
            f"{consumer} {message.sequence} {token}"
            for consumer, batch_out in effects.deliveries.items()
            for message, token in batch_out
        ]
    return told


def test_the_same_commands_at_the_same_times_give_the_same_effects() -> None:
    assert _story(Scheduler(epoch=3)) == _story(Scheduler(epoch=3))
