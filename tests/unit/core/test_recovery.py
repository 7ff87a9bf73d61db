"""From what is stored back to what is known: a restart changes nothing that was promised."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.core.effects import DropKeyWeight, PutKeyWeight
from fila.model import QueueSettings, Reason, Spec, Timing
from tests.unit.core.driver import DLQ, QUEUE, Driver


@pytest.fixture
def driver() -> Driver:
    found = Driver()
    found.create()
    return found


def _order(driver: Driver) -> list[int]:
    return [taken.sequence for taken in driver.take(100)]


def test_queues_come_back_with_their_settings(driver: Driver) -> None:
    odd = QueueSettings(visibility_timeout_ms=5000, max_attempts=3, retry_backoff=1.5, quantum=9)
    driver.create("odd", odd)

    driver.restart()

    assert driver.scheduler.settings("odd") == odd
    assert driver.scheduler.queue_names() == [QUEUE, DLQ, "odd", "odd.dlq"]


def test_messages_come_back_in_their_order(driver: Driver) -> None:
    first, second, third, fourth, fifth = driver.enqueue(5)
    a, b, *_ = driver.take(3)
    driver.nack(a, delay_ms=0)
    driver.release(b)

    driver.restart()

    assert _order(driver) == [second, fourth, fifth, first]
    driver.pass_time(30)
    assert third in _order(driver)


def test_places_given_to_retried_messages_are_not_given_again(driver: Driver) -> None:
    (retried,) = driver.enqueue()
    driver.nack(driver.take_one(), delay_ms=0)
    driver.restart()

    new = driver.enqueue_one()

    assert _order(driver) == [retried, new]


def test_priorities_keys_and_lanes_come_back(driver: Driver) -> None:
    specs = [
        Spec(fairness_key=key, priority=priority, throttle_keys=lane)
        for key in "ab"
        for priority in (0, 5)
        for lane in ((), ("x",))
    ]
    driver.accept(specs)
    other = Driver()
    other.create()
    other.accept(specs)

    driver.restart()

    assert _order(driver) == _order(other)


def test_a_lease_survives_with_its_token_and_its_deadline(driver: Driver) -> None:
    driver.enqueue(2)
    kept, lost = driver.take(2)
    driver.pass_time(10)

    driver.restart(down_s=5)

    assert driver.scheduler.summary(QUEUE).in_flight == 2
    assert not driver.ack(kept).errors
    driver.pass_time(14.999)
    assert driver.take() == []
    driver.pass_time(0.001)
    assert driver.take_one().sequence == lost.sequence


def test_a_lease_that_ended_while_the_broker_was_down_is_over_at_once(driver: Driver) -> None:
    driver.enqueue()
    stale = driver.take_one()

    driver.restart(down_s=31)

    assert driver.ack(stale).errors
    assert driver.take_one().attempts == 1


def test_a_clock_set_back_while_down_makes_no_lease_longer_than_it_was(driver: Driver) -> None:
    driver.enqueue()
    driver.take_one()
    driver.enqueue(timing=Timing(delay_ms=20_000))

    driver.restart(down_s=-3600)

    driver.pass_time(20)
    assert len(driver.take()) == 1
    driver.pass_time(10)
    assert len(driver.take()) == 1


def test_a_delay_survives(driver: Driver) -> None:
    driver.enqueue(timing=Timing(delay_ms=10_000))
    driver.pass_time(3)

    driver.restart(down_s=4)

    driver.pass_time(2.999)
    assert driver.take() == []
    driver.pass_time(0.001)
    assert len(driver.take()) == 1


def test_a_delivery_time_survives_and_still_follows_the_wall_clock(driver: Driver) -> None:
    driver.enqueue(timing=Timing(deliver_at_ns=driver.wall_ns + 3600 * 1_000_000_000))

    driver.restart()
    driver.jump(3599)
    assert driver.take() == []
    driver.jump(1)

    assert len(driver.take()) == 1


def test_a_delay_of_a_nack_survives_with_its_attempt(driver: Driver) -> None:
    driver.enqueue()
    driver.nack(driver.take_one(), delay_ms=5000, error="later")

    driver.restart()
    driver.pass_time(5)

    again = driver.take_one()
    assert again.attempts == 1
    assert again.message.last_error == "later"


def test_a_time_to_live_survives(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=10_000))

    driver.restart(down_s=9)
    assert driver.depth(DLQ) == 0
    driver.pass_time(1)

    assert driver.depth(DLQ) == 1


def test_what_expired_while_the_broker_was_down_is_not_delivered(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=10_000))

    driver.restart(down_s=11)

    assert driver.take() == []
    assert driver.depth(DLQ) == 1


def test_a_dead_letter_comes_back_with_all_that_is_known_of_it(driver: Driver) -> None:
    (sequence,) = driver.bury()
    driver.restart()

    dead = driver.take_one(queue=DLQ)

    assert (dead.sequence, dead.attempts) == (sequence, 1)
    assert dead.message.dead is not None
    assert dead.message.dead.reason is Reason.REJECTED
    assert dead.message.dead.last_error == "broken"
    assert dead.message.dead.source_queue == QUEUE


def test_a_message_that_was_to_expire_does_not_once_it_is_dead(driver: Driver) -> None:
    driver.enqueue(timing=Timing(ttl_ms=1000))
    driver.pass_time(1)
    assert driver.depth(DLQ) == 1

    driver.restart(down_s=3600)

    assert driver.depth(DLQ) == 1
    assert driver.depth() == 0


def test_what_was_enqueued_into_a_dead_letter_queue_comes_back_there(driver: Driver) -> None:
    driver.enqueue(2)
    driver.enqueue(3, queue=DLQ)

    driver.restart()

    assert (driver.depth(), driver.depth(DLQ)) == (2, 3)


def test_a_weight_comes_back_after_its_newest_message_has_gone(driver: Driver) -> None:
    driver.enqueue(2, spec=Spec(fairness_key="k", weight=2))
    driver.enqueue(spec=Spec(fairness_key="k", weight=9, priority=1))
    driver.ack(driver.take_one())
    assert driver.key("k").weight == 9

    driver.restart()

    assert driver.key("k").weight == 9


def test_a_weight_comes_back_when_an_older_message_was_given_back(driver: Driver) -> None:
    driver.enqueue(spec=Spec(fairness_key="k", weight=2))
    older = driver.take_one()
    driver.enqueue(spec=Spec(fairness_key="k", weight=9, priority=1))
    driver.release(older)
    driver.ack(driver.take_one())
    assert driver.key("k").weight == 9

    driver.restart()

    assert driver.key("k").weight == 9


def test_a_stored_weight_goes_with_the_last_message_of_its_key(driver: Driver) -> None:
    driver.enqueue(2, spec=Spec(fairness_key="k", weight=2))
    driver.enqueue(spec=Spec(fairness_key="k", weight=9, priority=1))
    driver.take_one()
    stored = len([change for change in driver.mutations if isinstance(change, PutKeyWeight)])
    driver.enqueue(spec=Spec(fairness_key="other"))
    driver.purge()

    assert stored <= 1
    assert any(isinstance(change, DropKeyWeight) for change in driver.mutations)
    driver.enqueue(spec=Spec(fairness_key="k", weight=1))
    driver.restart()
    assert driver.key("k").weight == 1


def test_a_weight_is_not_stored_where_all_messages_have_it(driver: Driver) -> None:
    driver.enqueue(5, spec=Spec(fairness_key="k", weight=2))

    for _ in range(5):
        driver.take_one()
        assert not [change for change in driver.mutations if isinstance(change, PutKeyWeight)]


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enqueue", "delay", "take", "ack", "nack", "bury", "release", "wait"]),
        st.integers(0, 12),
        st.integers(0, 12),
    ),
    max_size=30,
)


def _step(driver: Driver, action: str, number: int, other: int) -> None:
    if action == "enqueue":
        spec = Spec(fairness_key=f"k{number % 3}", weight=1 + other, priority=number % 2)
        driver.enqueue(1 + other % 3, spec=spec)
    elif action == "delay":
        driver.enqueue(timing=Timing(delay_ms=1 + number * 1000, ttl_ms=other * 1000))
    elif action == "take":
        driver.take(1 + number, queue=DLQ if other % 4 == 3 else QUEUE)
    elif action == "wait":
        driver.pass_time(number)
    elif driver.delivered:
        delivery = driver.delivered[-1 - number % len(driver.delivered)]
        if action == "ack":
            driver.ack(delivery)
        elif action == "release":
            driver.release(delivery)
        else:
            driver.nack(delivery, delay_ms=other * 500, dead_letter=action == "bury")


def _picture(driver: Driver) -> dict[str, object]:
    """All that a restart must not change."""
    found: dict[str, object] = {}
    for name in (QUEUE, DLQ):
        queue = driver.scheduler._state.queues[name]
        for lane in queue._lanes.values():
            found[f"{name} {lane.spec}"] = list(lane.fifo)
        for message in (*queue.delayed.values(), *queue.leased.values()):
            found[f"{name} {message.sequence}"] = (
                message.status,
                message.attempts,
                message.token,
                message.wall_timed,
                message.due_ns - (driver.wall_ns if message.wall_timed else driver.now_ns),
            )
        for key in queue.keys.values():
            if key.ready:
                found[f"{name} {key.name}"] = (key.weight, key.ready, key.delayed, key.in_flight)
    found["due"] = driver.due_ns() if driver.depth() + driver.depth(DLQ) else None
    return found


@given(_STEPS)
@settings(max_examples=200, deadline=None)
def test_a_restart_changes_nothing_that_is_waiting(steps: list[tuple[str, int, int]]) -> None:
    driver = Driver()
    driver.create()
    for action, number, other in steps:
        _step(driver, action, number, other)
    before = _picture(driver)

    driver.restart()

    assert _picture(driver) == before
