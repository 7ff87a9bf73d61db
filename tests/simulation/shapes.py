"""What a world is like: how big, how wild, and what its clients ask for. All from its seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from fila.model import (
    NS_PER_MS,
    NS_PER_S,
    FailureAction,
    FailureDecision,
    QueueSettings,
    Spec,
    Timing,
)

HOUR_NS = 3600 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of world. The weights say how often each thing happens."""

    name: str
    steps: int
    queues: tuple[str, ...]
    keys: int
    actions: dict[str, int]
    backlog: int = 0
    mixed_costs: bool = False
    mixed_weights: bool = False
    priorities: bool = True
    timings: float = 0.0
    credit_max: int = 8
    batch_max: int = 6
    lost_replies: float = 0.0
    # How often a nack comes with what a script decided.
    decisions: float = 0.0
    deliveries_max: int = 2000
    quantum_choices: tuple[int, ...] = (0, 0, 1, 1000)
    # Throttle keys, how many of them a message has, and how likely that is one at most in a world.
    limits: int = 0
    limits_a_message: tuple[int, ...] = (1,)
    single_limits: float = 0.0
    # Whether messages of the first fairness key have them all, and nobody else's have several.
    first_needs_all: bool = False
    rates: tuple[str, ...] = ("0", "0.3", "1", "2.5", "7", "33.333333333", "400")
    bursts: tuple[str, ...] = ("", "1", "1", "2.5", "10")
    odd_limits: float = 0.1


_CALM = {
    "pass": 30,
    "sync": 24,
    "transmit": 22,
    "settle": 26,
    "enqueue": 12,
    "credit": 2,
    "stream": 2,
    "time": 12,
}
_ROUGH = _CALM | {
    "retry": 8,
    "stream": 6,
    "credit": 5,
    "disconnect": 3,
    "stale": 3,
    "admin": 6,
    "due": 8,
    "idle": 1,
    "jump": 1,
    "producer_crash": 1,
    "kill": 2,
    "cut": 3,
}

SHAPES = (
    Shape(
        name="backlog",
        steps=400,
        queues=("q",),
        keys=5,
        backlog=160,
        priorities=False,
        quantum_choices=(0,),
        actions=_CALM | {"enqueue": 3, "settle": 40, "transmit": 34},
    ),
    Shape(
        name="come-and-go",
        steps=480,
        queues=("q",),
        keys=6,
        backlog=60,
        mixed_weights=True,
        quantum_choices=(0, 1, 3),
        actions=_CALM | {"enqueue": 20, "settle": 40, "transmit": 34, "update": 2, "kill": 1},
    ),
    Shape(
        name="costs",
        steps=400,
        queues=("q", "r"),
        keys=4,
        backlog=90,
        mixed_costs=True,
        mixed_weights=True,
        quantum_choices=(0, 1, 7, 1000),
        actions=_CALM | {"settle": 40, "transmit": 34, "update": 2, "cut": 1},
    ),
    Shape(
        name="rough",
        steps=620,
        queues=("q", "r", "s"),
        keys=4,
        mixed_weights=True,
        timings=0.2,
        lost_replies=0.15,
        decisions=0.4,
        actions=_ROUGH,
    ),
    Shape(
        name="crashes",
        steps=620,
        queues=("q", "r"),
        keys=3,
        mixed_weights=True,
        mixed_costs=True,
        timings=0.2,
        lost_replies=0.3,
        decisions=0.4,
        actions=_ROUGH | {"kill": 8, "cut": 12, "retry": 20, "admin": 2},
    ),
    Shape(
        name="operators",
        steps=640,
        queues=("q", "r", "r.dlq", "s.dlq", "s"),
        keys=3,
        mixed_weights=True,
        timings=0.25,
        lost_replies=0.05,
        decisions=0.4,
        actions=_ROUGH | {"admin": 40, "enqueue": 24},
    ),
    Shape(
        name="clocks",
        steps=560,
        queues=("q", "r"),
        keys=3,
        timings=0.6,
        decisions=0.4,
        actions=_ROUGH | {"jump": 8, "due": 30, "idle": 6, "admin": 10, "time": 30},
    ),
    Shape(
        name="limits",
        steps=380,
        queues=("q", "r"),
        keys=10,
        backlog=60,
        timings=0.05,
        mixed_weights=True,
        limits=4,
        limits_a_message=(0, 1, 1, 1, 2, 3),
        single_limits=0.5,
        lost_replies=0.05,
        actions=_ROUGH | {"limit": 30, "time": 40, "due": 50, "settle": 40, "admin": 8},
    ),
    Shape(
        name="limits and crashes",
        steps=380,
        queues=("q",),
        keys=4,
        backlog=60,
        limits=3,
        limits_a_message=(1, 1, 2),
        single_limits=0.5,
        rates=("0.01", "0.5", "3", "40"),
        odd_limits=0.3,
        actions=_CALM
        | {"limit": 14, "time": 30, "due": 30, "kill": 10, "cut": 12, "jump": 14, "stream": 5},
    ),
    Shape(
        name="scarce",
        steps=420,
        queues=("q",),
        keys=4,
        backlog=200,
        priorities=False,
        quantum_choices=(0,),
        limits=1,
        rates=("2.5", "7"),
        bursts=("1", "1", "3"),
        odd_limits=0.0,
        credit_max=60,
        actions=_CALM
        | {"enqueue": 6, "due": 50, "settle": 60, "transmit": 50, "time": 6, "limit": 4},
    ),
    Shape(
        name="contended",
        steps=420,
        queues=("q",),
        keys=4,
        backlog=200,
        priorities=False,
        quantum_choices=(0,),
        limits=2,
        first_needs_all=True,
        rates=("2.5", "2", "3"),
        bursts=("1",),
        odd_limits=0.0,
        credit_max=60,
        actions=_CALM | {"enqueue": 8, "due": 90, "settle": 60, "transmit": 50, "time": 2},
    ),
    Shape(
        name="short passes",
        steps=420,
        queues=("q", "r", "s"),
        keys=4,
        backlog=40,
        mixed_weights=True,
        timings=0.1,
        credit_max=20,
        deliveries_max=6,
        decisions=0.4,
        actions=_ROUGH,
    ),
)


@dataclass(slots=True)
class Palette:
    """What messages of a world look like; equal specs are one object, as in the broker."""

    rng: Random
    shape: Shape
    names: list[str] = field(init=False)
    base_weights: dict[str, int] = field(init=False)
    throttle_names: list[str] = field(init=False)
    single_limits: bool = field(init=False)
    _specs: dict[Spec, Spec] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = [f"k{index}" for index in range(self.shape.keys)]
        self.throttle_names = [f"t:{index}" for index in range(self.shape.limits)]
        self.single_limits = self.rng.random() < self.shape.single_limits
        self.base_weights = {name: self.rng.choice((1, 1, 2, 3, 4, 5)) for name in self.names}

    def spec(self, key: str | None = None) -> Spec:
        """What one message asks of the scheduler."""
        rng, shape = self.rng, self.shape
        key = key or rng.choice(self.names)
        weight = self.base_weights[key]
        if shape.mixed_weights and rng.random() < 0.1:
            weight = rng.choice((1, 2, 7, 50))
        cost = rng.choice((1, 1, 2, 3, 10, 40)) if shape.mixed_costs else 1
        priority = rng.choice((0, 0, 0, 0, 1, 9)) if shape.priorities else 0
        throttle_keys = self._throttle_keys(key) if shape.limits else ()
        spec = Spec(
            fairness_key=key,
            weight=weight,
            throttle_keys=throttle_keys,
            priority=priority,
            cost=cost,
        )
        return self._specs.setdefault(spec, spec)

    def _throttle_keys(self, key: str) -> tuple[str, ...]:
        rng, shape = self.rng, self.shape
        if shape.first_needs_all and key == self.names[0]:
            return tuple(self.throttle_names)
        names = [*self.throttle_names, "unlimited"] if shape.odd_limits else self.throttle_names
        count = rng.choice(shape.limits_a_message)
        return tuple(rng.sample(names, min(count, 1) if self.single_limits else count))

    def timing(self, wall: int) -> Timing | None:
        """When it may be delivered; mostly at once."""
        rng = self.rng
        if rng.random() >= self.shape.timings:
            return None
        ttl = rng.choice((0, 0, 500, 5000, 90_000))
        kind = rng.random()
        if kind < 0.4:
            return Timing(delay_ms=self.span_ms(), ttl_ms=ttl)
        if kind < 0.7:
            at = wall + rng.choice((-1, 1, 1, 1)) * self.span_ms() * NS_PER_MS
            return Timing(deliver_at_ns=at + rng.randrange(NS_PER_MS), ttl_ms=ttl)
        return Timing(ttl_ms=ttl or 2000)

    def decision(self) -> FailureDecision | None:
        """What a script says of a failed delivery; often nothing, seldom everything."""
        rng = self.rng
        if rng.random() < 0.2:
            return None
        weights = (None, None, 1, 7) if self.shape.mixed_weights else (None,)
        return FailureDecision(
            action=rng.choice((None, None, *FailureAction)) if rng.random() < 0.5 else None,
            delay_ms=rng.choice((None, 0, 0, self.span_ms())),
            fairness_key=rng.choice((None, *self.names)),
            weight=rng.choice(weights),
            throttle_keys=rng.choice((None, None, (), ("x",), ("x", "y"))),
            priority=rng.choice((None, None, 0, 9)) if self.shape.priorities else None,
        )

    def span_ms(self) -> int:
        """A short or a long while."""
        rng = self.rng
        return rng.choice(
            (1, rng.randint(1, 50), rng.randint(100, 9000), rng.randint(1, 4_000_000))
        )

    def settings(self) -> QueueSettings:
        """How a queue is set."""
        rng = self.rng
        return QueueSettings(
            visibility_timeout_ms=rng.choice((1000, 5000, 30_000, 30_000)),
            max_attempts=rng.choice((0, 1, 2, 3, 20)),
            max_depth=rng.choice((0, 0, 0, 0, 12, 40)) if not self.shape.backlog else 0,
            retry_delay_ms=rng.choice((0, 1, 1000)),
            retry_backoff=rng.choice((1.0, 1.5, 2.0)),
            retry_delay_max_ms=rng.choice((1500, 300_000)),
            quantum=rng.choice(self.shape.quantum_choices),
        )

    def pause_ns(self) -> int:
        """A little time, seldom a whole number of anything."""
        rng = self.rng
        return rng.choice((rng.randrange(NS_PER_MS), rng.randrange(NS_PER_S), 3 * NS_PER_S))


def shape_of(seed: int) -> Shape:
    """Which kind of world a seed makes."""
    return SHAPES[seed % len(SHAPES)]
