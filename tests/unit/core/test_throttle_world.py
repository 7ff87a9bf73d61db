"""Limits under whatever happens to a queue: never exceeded, and never a reason to idle."""

from collections.abc import Callable
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.core import commands as c
from fila.core.bucket import ONE
from fila.core.lane import Lane
from fila.model import Spec
from tests import proof
from tests.unit.core.driver import QUEUE, Delivery
from tests.unit.core.throttled import Permit, Throttled, check_books

QUEUES = (QUEUE, "other")
NAMES = ("p", "q", "r")
RATES = ("0", "0.3", "1", "7", "50", "1000.5")
BURSTS = (None, "1", "2.5", "10", "40")

_specs = st.builds(
    Spec,
    fairness_key=st.sampled_from(["a", "b", "c"]),
    weight=st.sampled_from([1, 1, 3]),
    throttle_keys=st.sampled_from(
        [(), ("p",), ("q",), ("p", "q"), ("q", "r"), ("p", "q", "r"), ("free", "p")]
    ),
    priority=st.sampled_from([0, 0, 5]),
    cost=st.sampled_from([1, 1, 4]),
)
_steps = st.one_of(
    st.tuples(st.just("enqueue"), _specs, st.integers(1, 6), st.sampled_from(QUEUES)),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.001, 0.05, 0.3, 2.0, 30.0])),
    st.tuples(
        st.just("limit"), st.sampled_from(NAMES), st.sampled_from(RATES), st.sampled_from(BURSTS)
    ),
    st.tuples(st.just("lift"), st.sampled_from(NAMES)),
    st.tuples(st.just("settle"), st.sampled_from(list(c.Action)), st.integers(1, 8)),
    st.tuples(st.just("credit"), st.integers(0, 12)),
    st.tuples(st.just("pause"), st.sampled_from(QUEUES), st.booleans()),
    st.tuples(st.just("remove"), st.integers(0, 50)),
    st.tuples(st.just("purge"), st.sampled_from(QUEUES)),
    st.tuples(st.just("consumer"), st.integers(1, 5)),
    st.tuples(st.just("restart"), st.sampled_from([0.0, 0.2, 10.0])),
)


class World:
    """A driver, and a permit for each limit."""

    driver_class = Throttled

    def __init__(self) -> None:
        self.driver = self.driver_class()
        self.permits: dict[str, Permit] = {}
        self.held: list[Delivery] = []
        self.waiting: dict[int, tuple[str, Spec]] = {}
        for queue in QUEUES:
            self.driver.create(queue)
        self.consumer = self.driver.consume(*QUEUES, credit=6)

    @property
    def clock_ns(self) -> int:
        """Goes on through restarts; nothing sets the wall clock here."""
        return self.driver.wall_ns

    def enqueue(self, spec: Spec, count: int, queue: str) -> None:
        for sequence in self.driver.enqueue(count, spec=spec, queue=queue):
            self.waiting[sequence] = queue, spec

    def wait(self, seconds: float) -> None:
        self.driver.pass_time(seconds)

    def limit(self, name: str, rate: str, burst: str | None) -> None:
        if burst is not None:
            self.driver.configure(f"throttle:{name}:burst", burst)
            self._follow(name)
        self.driver.configure(f"throttle:{name}:rate", rate)
        self._follow(name)

    def lift(self, name: str) -> None:
        self.driver.configure(f"throttle:{name}:rate", "")
        self._follow(name)
        self.driver.configure(f"throttle:{name}:burst", "")

    def settle(self, action: c.Action, count: int) -> None:
        chosen, self.held = self.held[:count], self.held[count:]
        for queue in QUEUES:
            mine = [each for each in chosen if each.queue == queue]
            if mine:
                self.driver.settle(action, *mine, delay_ms=10 if action is c.Action.NACK else None)
        if action is c.Action.EXTEND:
            self.held += chosen

    def credit(self, credit: int) -> None:
        self.driver.set_credit(self.consumer, credit)

    def pause(self, queue: str, paused: bool) -> None:
        self.driver.pause(queue, paused=paused)

    def remove(self, number: int) -> None:
        for queue in QUEUES:
            waiting = sorted(self.driver.queue_state(queue).pending_sequences())
            if waiting:
                self.driver.remove(waiting[number % len(waiting)], queue)

    def purge(self, queue: str) -> None:
        self.driver.purge(queue)

    def consumer_comes(self, credit: int) -> None:
        self.driver.close(self.driver.consume(*QUEUES, credit=credit))

    def restart(self, down_s: float) -> None:
        self.held.clear()
        self.driver.restart(down_s=down_s)
        self.consumer = self.driver.consume(*QUEUES, credit=6)

    def check(self) -> None:
        for delivery in self.driver.delivered:
            for name in delivery.spec.throttle_keys:
                if name in self.permits:
                    self.permits[name].take(self.clock_ns)
            self.held.append(delivery)
        self.driver.delivered.clear()
        for queue in QUEUES:
            check_books(self.driver.queue_state(queue))
            self._check_nobody_idles(queue)
        assert self.driver.due_ns() != 0

    def _follow(self, name: str) -> None:
        bucket = self.driver.scheduler._state.throttle.buckets.get(name)
        if bucket is None:
            self.permits.pop(name, None)
            return
        rate, burst = Fraction(str(bucket.rate)), Fraction(str(bucket.burst))
        if name in self.permits:
            self.permits[name].change(rate, burst, self.clock_ns)
        else:
            self.permits[name] = Permit(rate, burst, self.clock_ns)

    def _check_nobody_idles(self, name: str) -> None:
        queue = self.driver.queue_state(name)
        consumer = self.driver.scheduler._state.consumers[self.consumer]
        if queue.paused or consumer.room <= 0:
            return
        for lane in queue._lanes.values():
            assert not self._could_go(lane), (lane.spec, lane.waiter, lane.claim)

    def _could_go(self, lane: Lane) -> bool:
        """Whether each of its buckets has a token that is not kept for a claim."""
        for name in lane.spec.throttle_keys:
            bucket = self.driver.scheduler._state.throttle.buckets.get(name)
            if bucket is None:
                continue
            claim = bucket.first_claim
            kept = (
                claim is not None
                and claim.lane is not lane
                and claim.is_heard
                and claim.queue.can_take
            )
            if bucket.level(self.driver.now_ns) < ONE * (1 + kept):
                return False
        return True


@given(steps=st.lists(_steps, max_size=50))
@settings(max_examples=proof.length(reduced=300, full=20_000), deadline=None)
def test_no_bucket_is_exceeded_and_no_consumer_idles_beside_what_could_go(
    steps: list[tuple[object, ...]],
) -> None:
    world = World()
    deeds: dict[object, Callable[..., None]] = {
        "enqueue": world.enqueue,
        "wait": world.wait,
        "limit": world.limit,
        "lift": world.lift,
        "settle": world.settle,
        "credit": world.credit,
        "pause": world.pause,
        "remove": world.remove,
        "purge": world.purge,
        "consumer": world.consumer_comes,
        "restart": world.restart,
    }

    for what, *details in steps:
        deeds[what](*details)
        world.check()
