"""A driver with limits, and what must hold of the books of buckets, lines and keys at any time."""

from collections.abc import Iterator
from fractions import Fraction

from fila.core import commands as c
from fila.core.bucket import ONE
from fila.core.key import Key
from fila.core.lane import Lane
from fila.core.line import Line
from fila.core.queue import Queue
from fila.model import NS_PER_S, Spec
from tests.unit.core.driver import QUEUE, Delivery, Driver


class Throttled(Driver):
    """A driver that sets limits."""

    def limit(self, throttle_key: str, rate: float | str, burst: float | str | None = None) -> None:
        """Set a rate, and a burst."""
        if burst is not None:
            self.configure(f"throttle:{throttle_key}:burst", str(burst))
        self.configure(f"throttle:{throttle_key}:rate", str(rate))

    def lift(self, throttle_key: str) -> None:
        """Take a limit away."""
        self.configure(f"throttle:{throttle_key}:rate", "")
        self.configure(f"throttle:{throttle_key}:burst", "")

    def configure(self, key: str, value: str) -> None:
        """A runtime setting."""
        self.do(c.SetConfig(tag=0, key=key, value=value))

    def enqueue_throttled(
        self,
        key: str,
        *throttle_keys: str,
        count: int = 1,
        weight: int = 1,
        priority: int = 0,
        queue: str = QUEUE,
    ) -> list[int]:
        """Messages of a fairness key that need tokens."""
        spec = Spec(fairness_key=key, weight=weight, throttle_keys=throttle_keys, priority=priority)
        return self.enqueue(count, spec=spec, queue=queue)

    def drain(self) -> list[str]:
        """Take note of the fairness keys delivered since the last time, and settle them."""
        delivered, self.delivered = self.delivered, []
        for queue in {delivery.queue for delivery in delivered}:
            self.settle(c.Action.ACK, *(each for each in delivered if each.queue == queue))
        return [delivery.key for delivery in delivered]

    def flow(self, seconds: float) -> Iterator[tuple[float, Delivery]]:
        """Let time pass from one due moment to the next: what is delivered when; all is settled."""
        end_ns = self.now_ns + round(seconds * NS_PER_S)
        while True:
            delivered = self.delivered
            self.drain()
            yield from ((self.now_ns / NS_PER_S, each) for each in delivered)
            if self.delivered:
                continue
            due_ns = self.due_ns()
            if due_ns is None or self.now_ns + due_ns > end_ns:
                break
            self.now_ns += due_ns
            self.wall_ns += due_ns
            self.run()
        self.wall_ns += end_ns - self.now_ns
        self.now_ns = end_ns

    def tokens(self, throttle_key: str) -> float:
        """What a bucket holds."""
        bucket = self.scheduler._state.throttle.buckets[throttle_key]
        return bucket.level(self.now_ns) / ONE

    def queue_state(self, queue: str = QUEUE) -> Queue:
        """The queue itself."""
        return self.scheduler._state.queue(queue)


class Permit:
    """A bucket as generous as the limit allows, in exact arithmetic: it must never be overdrawn."""

    def __init__(self, rate: Fraction, burst: Fraction, at_ns: int) -> None:
        self.rate = rate
        self.burst = burst
        self.level = burst
        self.at_ns = at_ns

    def pass_time(self, now_ns: int) -> None:
        gained = self.rate * (now_ns - self.at_ns) / NS_PER_S
        self.level = min(self.burst, self.level + gained)
        self.at_ns = now_ns

    def change(self, rate: Fraction, burst: Fraction, now_ns: int) -> None:
        self.pass_time(now_ns)
        self.rate, self.burst = rate, burst
        self.level = min(self.level, burst)

    def take(self, now_ns: int) -> None:
        self.pass_time(now_ns)
        self.level -= 1
        assert self.level >= 0, f"overdrawn by {float(-self.level)}"


def check_books(queue: Queue) -> None:
    """Every count fits what it counts."""
    assert queue.ready_count == sum(len(lane.fifo) for lane in queue._lanes.values())
    for lane in queue._lanes.values():
        assert len(lane.fifo)
        assert (lane.waiter is None) or lane.waiter.line in queue.lines
        assert lane.claim is None or lane.claim.lane is lane
    for key in queue.keys.values():
        _check_key(queue, key)
    for line in queue.lines:
        _check_line(queue, line)
    active = [key for key in queue.keys.values() if key.seat is not None]
    assert len(queue.ring) == len(active)


def _check_key(queue: Queue, key: Key) -> None:
    mine = [lane for lane in queue._lanes.values() if lane.key is key]
    free = [lane for lane in mine if lane.waiter is None]
    called = [waiter for waiter in key.waiters.values() if waiter.is_open]
    assert key.ready == sum(len(lane.fifo) for lane in mine)
    assert key._open == len(free) + len(called)
    assert (key.seat is not None) == key.is_open
    assert {source for source in key.sources if isinstance(source, Lane)} == set(free)
    assert {lane for waiter in key.waiters.values() for lane in waiter.lanes} == set(mine) - set(
        free
    )
    if key.is_open:
        sources = [(-lane.spec.priority, lane.fifo.peek()) for lane in free]
        sources += [(-waiter.head().spec.priority, waiter.head().fifo.peek()) for waiter in called]
        head = key.head()
        assert (-head.spec.priority, head.fifo.peek()) == min(sources)


def _check_line(queue: Queue, line: Line) -> None:
    assert line.queue is queue
    assert line.bucket.lines[queue] is line
    assert line.granted == sum(waiter.grants for waiter in line.waiters.values())
    assert len(line.ring) == sum(waiter.seat is not None for waiter in line.waiters.values())
    for key, waiter in line.waiters.items():
        lanes = [lane for lane in queue._lanes.values() if lane.waiter is waiter]
        assert waiter.key is key
        assert key.waiters[line] is waiter
        assert lanes
        assert waiter.lane_count == len(lanes)
        assert waiter.ready == sum(len(lane.fifo) for lane in lanes) >= waiter.grants
        assert waiter.is_open == (waiter.grants > 0)
        assert (waiter.seat is not None) == (waiter.ready > waiter.grants)
        heads = [(-lane.spec.priority, lane.fifo.peek()) for lane in lanes]
        assert (-waiter.head().spec.priority, waiter.head().fifo.peek()) == min(heads)
