"""Whatever happens: what is said to go goes, and what is said to wait waits that long."""

from collections.abc import Callable, Iterator

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from fila.core.explanation import Code, Explanation, MessageState, Throttling, Turn
from fila.core.records import Status
from fila.model import NS_PER_S, QueueSettings, Spec
from tests import proof
from tests.unit.core.driver import QUEUE
from tests.unit.core.explained import Explained, codes, facts
from tests.unit.core.test_throttle_world import NAMES, QUEUES, World
from tests.unit.core.test_throttle_world import _specs as specs_of_a_world
from tests.unit.core.test_throttle_world import _steps as steps_of_a_world

_EXAMPLES = proof.length(reduced=300, full=20_000)


class Asked(World):
    """A world that can be asked why."""

    driver: Explained
    driver_class = Explained

    def live(self, steps: list[tuple[object, ...]], then: list[tuple[Spec, int]]) -> None:
        """Whatever happens; then nobody has room, and these come."""
        deeds: dict[object, Callable[..., None]] = {
            "enqueue": self.enqueue,
            "wait": self.wait,
            "limit": self.limit,
            "lift": self.lift,
            "settle": self.settle,
            "credit": self.credit,
            "pause": self.pause,
            "remove": self.remove,
            "purge": self.purge,
            "consumer": self.consumer_comes,
            "restart": self.restart,
        }
        for what, *details in steps:
            deeds[what](*details)
            self.check()
        self.driver.set_credit(self.consumer, 0)
        for spec, count in then:
            self.enqueue(spec, count, QUEUE)

    def ready(self) -> Iterator[tuple[int, Explanation, MessageState]]:
        """What is said of the queue's ready messages."""
        queue = self.driver.queue_state()
        for key in (*queue.keys, "nobody"):
            assert self.driver.why_key(key).causes
        assert self.driver.why_queue().causes
        for sequence in sorted(set(queue.pending_sequences()) - set(queue.delayed)):
            explanation = self.driver.why(sequence)
            assert isinstance(explanation.subject, MessageState)
            assert explanation.subject.status is Status.READY
            assert explanation.causes
            yield sequence, explanation, explanation.subject

    def open_doors(self, credit: int) -> list[int]:
        """Let the queue deliver so many, to a new consumer; which those were."""
        self.driver.pause(QUEUE, paused=False)
        before = len(self.driver.delivered)
        self.driver.consume(QUEUE, credit=credit)
        return [delivery.sequence for delivery in self.driver.delivered[before:]]


def _some(specs: st.SearchStrategy[Spec]) -> st.SearchStrategy[list[tuple[Spec, int]]]:
    return st.lists(st.tuples(specs, st.integers(1, 4)), min_size=1, max_size=6)


@given(
    steps=st.lists(steps_of_a_world, max_size=40),
    then=_some(specs_of_a_world),
    is_limited=st.booleans(),
)
@settings(max_examples=_EXAMPLES, deadline=None)
def test_what_is_said_to_be_next_goes_with_the_next_pass(
    steps: list[tuple[object, ...]], then: list[tuple[Spec, int]], is_limited: bool
) -> None:
    world = Asked()
    for name in NAMES if is_limited else ():
        world.limit(name, "0.3", "1")
    world.live(steps, then)

    found = [sequence for sequence, _, message in world.ready() if message.is_next]
    event(f"is next: {len(found)}")

    gone = world.open_doors(credit=1)
    assert not found or gone == found


_plain_specs = st.builds(
    Spec,
    fairness_key=st.sampled_from("abc"),
    weight=st.sampled_from([1, 1, 2, 5]),
    priority=st.sampled_from([0, 0, 5]),
    cost=st.sampled_from([1, 1, 3, 9]),
)
_plain_steps = st.one_of(
    st.tuples(st.just("enqueue"), _plain_specs, st.integers(1, 4), st.sampled_from(QUEUES[:1])),
    st.tuples(st.just("consumer"), st.integers(1, 3)),
    st.tuples(st.just("credit"), st.integers(0, 5)),
    st.tuples(st.just("remove"), st.integers(0, 50)),
    st.tuples(st.just("restart"), st.just(0.0)),
)


@given(steps=st.lists(_plain_steps, max_size=30), then=_some(_plain_specs))
@settings(max_examples=_EXAMPLES, deadline=None)
def test_what_goes_next_was_said_to_be_the_first_of_its_key(
    steps: list[tuple[object, ...]], then: list[tuple[Spec, int]]
) -> None:
    world = Asked()
    world.live(steps, then)
    said = {sequence: (explanation, message) for sequence, explanation, message in world.ready()}

    (gone,) = world.open_doors(credit=1)

    explanation, message = said[gone]
    if not message.is_next:
        # Who stands before it can't afford a message in this turn.
        turn = facts(explanation, Code.WAITING_TURN, Turn)
        assert turn.ahead_in_lane == turn.ahead_in_key == 0
    event(f"was next: {message.is_next}")


@given(
    steps=st.lists(steps_of_a_world, max_size=40),
    then=_some(specs_of_a_world),
    number=st.integers(0, 50),
)
@settings(max_examples=_EXAMPLES, deadline=None)
def test_what_is_said_to_wait_for_a_token_does_not_go_before(
    steps: list[tuple[object, ...]], then: list[tuple[Spec, int]], number: int
) -> None:
    world = Asked()
    for name in NAMES:
        world.limit(name, "0.3", "1")
    world.live(steps, then)
    held = [
        (sequence, facts(explanation, Code.THROTTLED, Throttling))
        for sequence, explanation, _ in world.ready()
        if "THROTTLED" in codes(explanation)
    ]
    if not held:
        event("wait: none")
        return
    sequence, throttling = held[number % len(held)]
    wait_ns = throttling.earliest_ns
    event(f"wait: {'never' if wait_ns is None else 'long' if wait_ns else 'in line'}")

    gone = world.open_doors(credit=1000) if wait_ns != 0 else []
    end_ns = world.driver.now_ns + (3600 * NS_PER_S if wait_ns is None else wait_ns)
    while world.driver.now_ns < end_ns - 1:
        due_ns = world.driver.due_ns()
        rest_ns = end_ns - 1 - world.driver.now_ns
        step_ns = rest_ns if due_ns is None else min(due_ns, rest_ns)
        # The leases of what it had are not to run out: those would come back to the front.
        world.driver.now_ns += step_ns
        world.driver.wall_ns += step_ns
        world.driver.run()

    gone += [delivery.sequence for delivery in world.driver.delivered]
    assert sequence not in gone


@given(
    rate=st.sampled_from([0.3, 1, 7, 50]),
    burst=st.sampled_from([1, 2.5, 10]),
    count=st.integers(1, 30),
    passed_s=st.sampled_from([0.0, 0.3, 2.0]),
)
@settings(deadline=None)
def test_alone_at_a_limit_a_message_goes_exactly_when_it_is_said_to(
    rate: float, burst: float, count: int, passed_s: float
) -> None:
    driver = Explained()
    driver.create(settings=QueueSettings(visibility_timeout_ms=86_400_000))
    driver.limit("p", rate, burst)
    driver.consume(credit=1000)
    last = driver.enqueue_throttled("a", "p", count=count)[-1]
    driver.pass_time(passed_s)
    explanation = driver.why(last)
    assume("THROTTLED" in codes(explanation))
    throttling = facts(explanation, Code.THROTTLED, Throttling)
    assert throttling.earliest_ns is not None
    due_at_ns = driver.now_ns + throttling.earliest_ns

    while driver.delivered[-1].sequence != last:
        due_ns = driver.due_ns()
        assert due_ns is not None
        driver.pass_time(due_ns / NS_PER_S)

    assert abs(driver.now_ns - due_at_ns) <= count
    assert throttling.likely_ns == throttling.earliest_ns
