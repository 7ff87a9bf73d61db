"""The books of one queue: what waits, what is leased, and that every count fits."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.core import commands as c
from fila.model import Spec, Timing
from tests.unit.core.driver import DLQ, QUEUE, Driver
from tests.unit.core.lanes import Lanes


def test_places_are_kept_when_a_message_is_released_and_new_when_it_is_retried() -> None:
    driver = Driver()
    driver.create()
    first, second, third = driver.enqueue(3)
    a, b = driver.take(2)

    driver.release(a)
    driver.nack(b, delay_ms=0)

    assert [delivery.sequence for delivery in driver.take(3)] == [first, third, second]


def test_alike_messages_share_a_lane_and_lanes_are_dropped_with_their_last_message() -> None:
    lanes = Lanes()
    lanes.add(Spec(fairness_key="k"), 5)
    lanes.add(Spec(fairness_key="k", throttle_keys=("x",)), 5)
    assert len(lanes.queue._lanes) == 2

    for _ in range(10):
        lanes.deliver()

    assert not lanes.queue._lanes


def test_the_oldest_message_is_the_one_with_the_lowest_place() -> None:
    driver = Driver()
    driver.create()
    first, second = driver.enqueue_key("k", 2)
    assert driver.key("k").oldest_sequence == first

    taken = driver.take_one()
    assert driver.key("k").oldest_sequence == second

    driver.nack(taken, delay_ms=0)
    assert driver.key("k").oldest_sequence == second


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enqueue"), st.integers(0, 3)),
        st.tuples(st.just("delay"), st.integers(1, 5)),
        st.tuples(st.just("expire"), st.integers(1, 5)),
        st.tuples(
            st.sampled_from(["take", "ack", "nack", "bury", "release", "remove"]),
            st.integers(0, 20),
        ),
        st.tuples(st.just("wait"), st.integers(1, 40)),
        st.tuples(st.just("purge"), st.integers(0, 3)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=40,
)


@given(_STEPS)
@settings(max_examples=100, deadline=None)
def test_every_count_fits_whatever_happens(steps: list[tuple[str, int]]) -> None:
    driver = Driver()
    driver.create()

    for action, number in steps:
        _step(driver, action, number)
        _check(driver)


def _step(driver: Driver, action: str, number: int) -> None:
    match action:
        case "enqueue":
            driver.enqueue(2, spec=Spec(fairness_key=f"k{number}", weight=number + 1))
        case "delay":
            driver.enqueue(2, timing=Timing(delay_ms=number * 1000))
        case "expire":
            driver.enqueue(2, timing=Timing(ttl_ms=number * 1000))
        case "take":
            driver.take(number + 1, queue=DLQ if number % 4 == 3 else QUEUE)
        case "wait":
            driver.pass_time(number)
        case "purge":
            driver.purge(DLQ if number % 2 else QUEUE, include_leased=number > 1)
        case "restart":
            driver.restart()
        case "remove":
            _remove(driver, number)
        case _:
            _settle(driver, action, number)


def _remove(driver: Driver, number: int) -> None:
    stored = driver.stored_sequences()
    if not stored or driver.storage is None:
        return
    partition = driver.scheduler.partition_of(QUEUE)
    entry = driver.storage.read_entry(partition, stored[number % len(stored)])
    # Refused where it is leased or in the other queue.
    queue = DLQ if number % 2 else QUEUE
    driver.run(c.RemoveMessage(tag=0, queue=queue, message_id="", partition=partition, entry=entry))


def _settle(driver: Driver, action: str, number: int) -> None:
    if not driver.delivered:
        return
    # Stale ones among them: those are refused.
    delivery = driver.delivered[-1 - number % len(driver.delivered)]
    if action == "ack":
        driver.ack(delivery)
    elif action == "release":
        driver.release(delivery)
    else:
        driver.nack(delivery, delay_ms=number * 100, dead_letter=action == "bury")


def _check(driver: Driver) -> None:
    held = 0
    for name in (QUEUE, DLQ):
        queue = driver.scheduler._state.queues[name]
        held += queue.depth
        pending = list(queue.pending_sequences())
        assert len(pending) == len(set(pending)) == queue.ready_count + len(queue.delayed)
        assert sum(key.ready for key in queue.keys.values()) == queue.ready_count
        assert sum(key.delayed for key in queue.keys.values()) == len(queue.delayed)
        assert sum(key.in_flight for key in queue.keys.values()) == len(queue.leased)
        assert len(queue.ring) == sum(bool(key.ready) for key in queue.keys.values())
        assert all(key.ready or key.delayed or key.in_flight for key in queue.keys.values())
    # What is known is what is stored, neither more nor less.
    assert held == len(driver.stored_sequences())
