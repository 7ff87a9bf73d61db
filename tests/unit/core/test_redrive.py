"""Dead letters go back through the front door: at the end of the line, as if nothing had been."""

import pytest

from fila.core import commands as c
from fila.core.effects import DropKeyWeight, RedriveResult
from fila.errors import InvalidArgumentError, PreconditionError, QueueNotFoundError
from fila.model import FailureDecision, QueueSettings, Reason, Spec, Timing
from fila.wire._pb import messages_pb2 as pb
from tests.unit.core.driver import DLQ, QUEUE, Driver, after_ms


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def _order(driver: Driver, queue: str = QUEUE) -> list[int]:
    return [taken.sequence for taken in driver.take(100, queue=queue)]


def _queue_id(driver: Driver, sequence: int) -> str:
    assert driver.storage is not None
    (stored,) = driver.storage.read_messages(driver.scheduler.partition_of(QUEUE), [sequence])
    assert stored is not None
    return pb.Message.FromString(stored).metadata.queue_id


def test_dead_letters_move_back_with_nothing_left_of_their_death(driver: Driver) -> None:
    buried = driver.bury(3)

    assert driver.redrive() == RedriveResult(3)

    assert driver.depth(DLQ) == 0
    taken = driver.take(100)
    assert [each.sequence for each in taken] == buried
    assert [each.attempts for each in taken] == [0, 0, 0]
    assert [(each.message.dead, each.message.last_error) for each in taken] == [(None, "")] * 3


def test_what_was_redriven_is_still_so_after_a_restart(driver: Driver) -> None:
    buried = driver.bury(3)
    driver.redrive()

    driver.restart()

    assert driver.depth(DLQ) == 0
    taken = driver.take(100)
    assert [each.sequence for each in taken] == buried
    assert all((each.attempts, each.message.dead) == (0, None) for each in taken)


def test_redriven_messages_stand_behind_all_others_also_after_a_restart(driver: Driver) -> None:
    buried = driver.bury(2)
    waiting = driver.enqueue(2)
    driver.redrive()
    later = driver.enqueue(1)
    expected = waiting + buried + later

    driver.restart()

    assert _order(driver) == expected


def test_the_oldest_dead_letter_goes_first(driver: Driver) -> None:
    first, second = driver.enqueue(2)
    taken = driver.take(2)
    driver.nack(taken[1], dead_letter=True)
    driver.nack(taken[0], dead_letter=True)

    assert driver.redrive(1).moved == 1

    assert _order(driver) == [second]
    assert _order(driver, DLQ) == [first]


def test_a_count_moves_so_many_and_leaves_the_rest_in_order(driver: Driver) -> None:
    buried = driver.bury(5)

    driver.redrive(2)

    assert _order(driver) == buried[:2]
    assert _order(driver, DLQ) == buried[2:]


def test_a_dead_letter_that_was_given_back_is_the_oldest_still(driver: Driver) -> None:
    buried = driver.bury(3)
    driver.release(driver.take_one(queue=DLQ))

    driver.redrive(1)

    assert _order(driver) == buried[:1]


def test_leased_dead_letters_are_skipped(driver: Driver) -> None:
    buried = driver.bury(3)
    held = driver.take_one(queue=DLQ)

    assert driver.redrive().moved == 2

    assert _order(driver) == buried[1:]
    assert not driver.ack(held).errors


def test_what_was_leased_since_it_was_looked_up_is_skipped(driver: Driver) -> None:
    buried = driver.bury(3)
    command = driver.dead_letters()
    held = driver.take_one(queue=DLQ)

    assert driver.do(command) == RedriveResult(2)

    assert _order(driver) == buried[1:]
    assert not driver.ack(held).errors


def test_what_moved_since_it_was_looked_up_is_not_moved_twice(driver: Driver) -> None:
    buried = driver.bury(3)
    command = driver.dead_letters()
    driver.redrive()
    driver.nack(*driver.take(3), dead_letter=True)

    assert driver.do(command) == RedriveResult(0)

    assert _order(driver, DLQ) == buried


def test_what_failed_again_since_it_was_looked_up_is_left_to_its_delay(driver: Driver) -> None:
    driver.bury(1)
    command = driver.dead_letters()
    driver.nack(driver.take_one(queue=DLQ), delay_ms=0)
    driver.nack(driver.take_one(queue=DLQ), delay_ms=60_000)

    assert driver.do(command) == RedriveResult(0)


def test_a_lease_given_back_in_between_keeps_its_place_and_moves(driver: Driver) -> None:
    driver.bury(1)
    command = driver.dead_letters()
    driver.release(driver.take_one(queue=DLQ))

    assert driver.do(command) == RedriveResult(1)


def test_delayed_dead_letters_move_too(driver: Driver) -> None:
    (buried,) = driver.bury()
    driver.nack(driver.take_one(queue=DLQ), delay_ms=60_000)

    assert driver.redrive().moved == 1

    assert _order(driver) == [buried]
    driver.pass_time(3600)
    assert driver.depth(DLQ) == 0


def test_what_was_enqueued_into_the_dead_letter_queue_goes_to_its_queue(driver: Driver) -> None:
    (direct,) = driver.enqueue(queue=DLQ)
    (later,) = driver.enqueue(queue=DLQ, timing=Timing(delay_ms=60_000))

    assert driver.redrive().moved == 2

    driver.restart()
    assert _order(driver) == [direct, later]
    assert [_queue_id(driver, sequence) for sequence in (direct, later)] == [QUEUE, QUEUE]


def test_direct_and_dead_ones_move_in_the_order_of_their_places(driver: Driver) -> None:
    direct = driver.enqueue(2, queue=DLQ, spec=Spec("b"))
    buried = driver.bury(2)
    last = driver.enqueue(2, queue=DLQ, spec=Spec("a"))

    driver.redrive(5)

    assert _order(driver, DLQ) == last[1:]
    assert driver.depth() == 5
    assert sorted(_order(driver)) == sorted(direct + buried + last[:1])


def test_a_message_asks_for_what_it_is_given_when_it_is_redriven(driver: Driver) -> None:
    driver.enqueue(spec=Spec("a"))
    driver.nack(driver.take_one(), decisions=[FailureDecision(delay_ms=0, fairness_key="b")])
    driver.nack(driver.take_one(), dead_letter=True)
    wanted = Spec("c", 5, ("mail",), 7, 2)

    driver.redrive(spec=wanted)
    driver.restart()

    assert driver.take_one().spec == wanted


def test_max_depth_holds_and_what_fits_moves(driver: Driver) -> None:
    driver.create("small", QueueSettings(max_depth=3))
    driver.enqueue(3, queue="small")
    driver.nack(*driver.take(3, queue="small"), dead_letter=True)
    driver.enqueue(2, queue="small")

    assert driver.redrive(queue="small.dlq") == RedriveResult(1, is_full=True)
    assert driver.redrive(queue="small.dlq") == RedriveResult(0, is_full=True)

    assert (driver.depth("small"), driver.depth("small.dlq")) == (3, 2)


def test_the_time_to_live_starts_anew(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=10_000))
    driver.pass_time(10)
    assert driver.depth(DLQ) == 1
    driver.pass_time(3600)
    driver.redrive(timing=Timing(ttl_ms=10_000))

    driver.restart(down_s=5)

    assert driver.depth() == 1
    driver.pass_time(4.999)
    assert driver.depth() == 1
    driver.pass_time(0.001)
    dead = driver.take_one(queue=DLQ).message.dead
    assert dead is not None
    assert dead.reason is Reason.EXPIRED


def test_without_a_time_to_live_the_old_one_is_over(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=10_000))
    driver.pass_time(10)
    driver.redrive()

    driver.restart()

    driver.pass_time(3600)
    assert driver.depth() == 1


def test_a_hooks_delay_holds_across_a_restart_and_the_time_to_live_counts_from_its_end(
    driver: Driver,
) -> None:
    driver.bury()
    driver.redrive(timing=Timing(delay_ms=60_000, ttl_ms=5_000))

    driver.restart(down_s=30)

    driver.pass_time(29.999)
    assert driver.take() == []
    driver.pass_time(0.001)
    driver.release(driver.take_one())
    driver.bury()
    driver.redrive(timing=Timing(delay_ms=60_000, ttl_ms=5_000))
    driver.pass_time(65)
    assert driver.depth(DLQ) == 1


def test_a_hooks_delay_does_not_follow_the_wall_clock(driver: Driver) -> None:
    driver.enqueue(queue=DLQ, timing=Timing(deliver_at_ns=after_ms(driver, 5000)))
    driver.redrive(timing=Timing(delay_ms=60_000))

    driver.jump(3600)

    assert driver.take() == []
    driver.pass_time(60)
    assert len(driver.take()) == 1


def test_the_weight_that_outlived_its_message_goes_with_the_key(driver: Driver) -> None:
    driver.accept([Spec("a", 2), Spec("a", 5, priority=1)], queue=DLQ)
    driver.take_one(queue=DLQ)
    command = driver.dead_letters()

    driver.step(command)

    assert any(isinstance(change, DropKeyWeight) for change in driver.mutations)


def test_a_redriven_and_delayed_message_can_be_moved_to_another_time(driver: Driver) -> None:
    (buried,) = driver.bury()
    wanted = Spec("other")
    driver.redrive(spec=wanted, timing=Timing(delay_ms=60_000, ttl_ms=5_000))

    driver.reschedule(buried, after_ms(driver, 1000))
    driver.restart()

    driver.pass_time(1)
    assert driver.take_one().spec == wanted


def test_a_move_and_a_new_time_in_one_pass_forget_neither(driver: Driver) -> None:
    (buried,) = driver.bury()
    moving = driver.dead_letters()
    moving.specs = [Spec("other")]
    moving.timings = {0: Timing(delay_ms=60_000, ttl_ms=5_000)}
    assert driver.storage is not None
    rescheduling = c.Reschedule(
        tag=0,
        queue=QUEUE,
        message_id="",
        partition=moving.partition,
        entry=driver.storage.read_entry(moving.partition, buried),
        deliver_at_ns=after_ms(driver, 1000),
    )

    assert driver.run(moving, rescheduling) == [RedriveResult(1), None]
    driver.restart()

    driver.pass_time(1)
    assert driver.take_one().key == "other"
    entry = driver.storage.read_entry(moving.partition, buried)
    assert entry is not None
    assert entry.expires_at_ns == entry.deliver_at_ns + 5_000_000_000


def test_pausing_either_queue_does_not_stop_it(driver: Driver) -> None:
    driver.bury(2)
    driver.pause(QUEUE)
    driver.pause(DLQ)

    assert driver.redrive().moved == 2


def test_redriven_messages_go_to_who_waits_for_them(driver: Driver) -> None:
    (buried,) = driver.bury()
    driver.consume()

    driver.redrive()

    assert driver.delivered[-1].queue == QUEUE
    assert driver.delivered[-1].sequence == buried


def test_a_redriven_message_can_die_again_and_say_why(driver: Driver) -> None:
    driver.bury()
    driver.redrive()

    driver.nack(driver.take_one(), error="still broken", dead_letter=True)
    driver.restart()

    dead = driver.take_one(queue=DLQ)
    assert dead.attempts == 1
    assert dead.message.dead is not None
    assert dead.message.dead.last_error == "still broken"


def test_what_is_no_dead_letter_queue_is_refused(driver: Driver) -> None:
    command = c.Redrive(tag=0, queue=QUEUE, partition=1, entries=(), places=(), specs=())

    with pytest.raises(InvalidArgumentError, match=r"not a dead-letter queue"):
        driver.do(command)
    with pytest.raises(InvalidArgumentError, match=r"not a dead-letter queue"):
        driver.scheduler.source_of(QUEUE)


def test_an_unknown_queue_is_refused(driver: Driver) -> None:
    with pytest.raises(QueueNotFoundError):
        driver.scheduler.source_of("nowhere.dlq")


def test_a_dead_letter_queue_without_a_queue_is_refused(driver: Driver) -> None:
    driver.create("alone.dlq")

    with pytest.raises(PreconditionError, match="no source queue"):
        driver.scheduler.source_of("alone.dlq")


def test_a_queue_replaced_since_the_look_up_is_not_touched(driver: Driver) -> None:
    driver.bury()
    command = driver.dead_letters()
    driver.do(c.DeleteQueue(tag=0, queue=QUEUE))
    driver.create()
    again = driver.bury()

    with pytest.raises(QueueNotFoundError):
        driver.do(command)

    assert _order(driver, DLQ) == again


def test_a_backlog_is_gone_through_in_order_while_it_changes(driver: Driver) -> None:
    buried = driver.bury(4)
    backlog = driver.scheduler.backlog(DLQ)
    seen = [sequence for sequence, _ in backlog.take(2)]
    driver.redrive(3)
    driver.nack(*driver.take(3), dead_letter=True)

    rest = backlog.take(10)

    assert seen == buried[:2]
    # One is gone, and known by its place to be so; those that came back are not in it.
    assert len(rest) == 2
    assert rest[-1][0] == buried[3]


def test_a_queue_taken_apart_from_the_front_leaves_no_memory_of_it(driver: Driver) -> None:
    driver.bury(2000)

    driver.redrive(1999)

    lane = next(iter(driver.scheduler._state.queue(DLQ)._lanes.values()))
    assert not lane.fifo._gone
    assert len(lane.fifo._places) < 1100
