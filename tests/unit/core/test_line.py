"""A line at a bucket: keys are granted tokens by deficit round robin, and pay for what they use."""

import pytest

from fila.core.bucket import Bucket
from fila.core.line import Line
from fila.model import Spec
from tests.unit.core.lanes import Lanes


class Queueing:
    """Keys of one queue whose lanes all stand in line."""

    def __init__(self, *, quantum: int = 1) -> None:
        self.lanes = Lanes(quantum=quantum)
        queue = self.lanes.queue
        self.line = Line(Bucket("p", rate=1, burst=1, now_ns=0), queue)
        queue.lines[self.line] = None

    def stand(self, key: str, count: int, *, weight: int = 1, cost: int = 1) -> None:
        spec = Spec(fairness_key=key, weight=weight, cost=cost, throttle_keys=("p",))
        self.lanes.add(spec, count)
        lane = self.lanes.queue._lanes[spec]
        self.line.stand(lane)
        self.lanes.queue.close_source(lane.key, lane)

    def grants(self) -> dict[str, int]:
        return {key.name: waiter.grants for key, waiter in self.line.waiters.items()}


def test_grants_go_by_weight() -> None:
    queueing = Queueing()
    queueing.stand("a", 100)
    queueing.stand("b", 100, weight=3)

    assert queueing.line.grant(40) == 40

    assert queueing.grants() == {"a": 10, "b": 30}


def test_grants_go_by_cost() -> None:
    queueing = Queueing()
    queueing.stand("dear", 100, cost=4)
    queueing.stand("cheap", 100)

    queueing.line.grant(50)

    assert queueing.grants() == {"dear": 10, "cheap": 40}


def test_nobody_is_granted_more_than_it_has_messages() -> None:
    queueing = Queueing()
    queueing.stand("a", 3)
    queueing.stand("b", 10)

    assert queueing.line.grant(100) == 13

    assert queueing.grants() == {"a": 3, "b": 10}
    assert queueing.line.throttled_count == 0


def test_a_granted_key_may_deliver_and_one_without_grant_may_not() -> None:
    queueing = Queueing()
    queueing.stand("a", 3)
    queueing.stand("b", 3)

    queueing.line.grant(1)

    open_keys = [key.name for key in queueing.lanes.queue.keys.values() if key.is_open]
    assert open_keys == ["a"]
    assert len(queueing.lanes.queue.ring) == 1


def test_withdrawn_grants_cost_nothing() -> None:
    queueing = Queueing()
    queueing.stand("a", 3, weight=3)
    queueing.line.grant(2)
    (waiter,) = queueing.line.waiters.values()

    queueing.line.withdraw(waiter)

    assert waiter.grants == queueing.line.granted == 0
    assert waiter.deficit == 3
    assert not waiter.key.is_open


def test_a_grant_is_paid_by_the_message_that_uses_it() -> None:
    queueing = Queueing(quantum=10)
    queueing.stand("a", 1, cost=8)
    (waiter,) = queueing.line.waiters.values()
    queueing.line.grant(1)
    assert waiter.deficit == 2

    queueing.line.spend(waiter, cost=1)

    assert waiter.deficit == 9


def test_a_token_taken_out_of_turn_delays_the_next_turn() -> None:
    queueing = Queueing()
    queueing.stand("a", 20)
    queueing.stand("b", 20)
    waiter = next(iter(queueing.line.waiters.values()))

    for _ in range(5):
        queueing.line.spend(waiter, 1)
    queueing.line.grant(15)

    assert queueing.grants() == {"a": 5, "b": 10}


def test_another_weight_counts_from_the_next_turn_on() -> None:
    queueing = Queueing()
    queueing.stand("a", 100)
    queueing.stand("b", 100)
    queueing.line.grant(2)

    queueing.lanes.queue.note_weight(queueing.lanes.key("b"), 10_000, 4)
    queueing.line.grant(20)

    assert queueing.grants() == {"a": 5, "b": 17}


@pytest.mark.parametrize("quantum", [3, 10])
def test_another_quantum_makes_turns_longer_in_every_line(quantum: int) -> None:
    queueing = Queueing()
    queueing.stand("a", 100)
    queueing.stand("b", 100)
    queueing.line.grant(2)

    queueing.lanes.queue.set_quantum(quantum)
    queueing.line.grant(quantum)

    assert queueing.grants() == {"a": 1 + quantum, "b": 1}


def test_it_counts_the_messages_of_those_who_wait() -> None:
    queueing = Queueing()
    queueing.stand("a", 5)
    queueing.stand("b", 2)
    queueing.line.grant(3)

    assert (queueing.line.ready, queueing.line.granted) == (7, 3)
    assert queueing.line.throttled_count == 4
