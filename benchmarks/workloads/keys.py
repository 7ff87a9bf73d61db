"""W6 and W10: what many fairness keys cost.

Every key has messages waiting all the time: in a queue that is nearly empty, a thousand keys would
be a handful.
"""

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.bench import Bench, Reading
from benchmarks.figures import Figure, Unit, of_readings
from benchmarks.processes import Broker


@dataclass(slots=True)
class Variant:
    """A broker with a backlog over so many keys."""

    broker: Broker
    queue: str
    keys: int
    rich: bool = False
    readings: list[Reading] = field(default_factory=list)

    def measure(self, bench: Bench, count: int) -> None:
        """Let so many messages through; the backlog stays as it is."""
        self.readings.append(
            bench.flow(self.broker, self.queue, count, keys=self.keys, rich=self.rich)
        )

    @property
    def server_us(self) -> list[float]:
        """CPU time per message in the broker, of each reading."""
        return [reading.server_us for reading in self.readings]

    @property
    def rate(self) -> float:
        """Messages per second, median."""
        return statistics.median(reading.rate for reading in self.readings)


def many_against_one(bench: Bench) -> Iterator[Figure]:
    """W6: 1,000 keys against one, in interleaved pairs."""
    with ExitStack() as stack:
        one, many = _variants(bench, stack, (1, 1_000), backlog=10_000)
        interleave(bench, (one, many), bench.size(10_000, 40_000), bench.size(7, 9))
    yield _cost("W6", "server CPU per message, 1 key", one)
    yield _cost("W6", "server CPU per message, 1,000 keys", many)
    yield added("W6", "  1,000 keys over 1", many.server_us, one.server_us, must=5, aim=2)


def cardinality(bench: Bench) -> Iterator[Figure]:
    """W10: from ten keys to a hundred thousand."""
    counts = (10, 1_000, 100_000)
    with ExitStack() as stack:
        variants = _variants(bench, stack, counts, backlog=bench.size(20_000, 200_000))
        interleave(bench, variants, bench.size(10_000, 40_000), bench.size(3, 7))
    few = variants[0]
    yield _cost("W10", "server CPU per message, 10 keys", few)
    for variant in variants[1:]:
        what = f"  {variant.keys:,} keys over 10"
        yield added("W10", what, variant.server_us, few.server_us, must=10, aim=2)


def interleave(bench: Bench, variants: Sequence[Variant], count: int, rounds: int) -> None:
    """Measure the variants in turn, after a warm-up."""
    for variant in variants:
        variant.measure(bench, count // 4)
        variant.readings.clear()
    for number in range(rounds):
        # The other way round every second time: neither is always the first.
        for variant in variants if number % 2 else reversed(variants):
            variant.measure(bench, count)


def added(
    workload: str,
    what: str,
    server_us: Sequence[float],
    base_us: Sequence[float],
    *,
    must: float,
    aim: float,
) -> Figure:
    """What a variant costs more, from the pairs."""
    pairs = zip(server_us, base_us, strict=True)
    percents = [100 * (more / less - 1) for more, less in pairs]
    return of_readings(workload, what, percents, Unit.PERCENT, must=must, aim=aim)


def _cost(workload: str, what: str, variant: Variant) -> Figure:
    return of_readings(workload, f"{what} ({variant.rate:,.0f}/s)", variant.server_us, Unit.US)


def _variants(
    bench: Bench, stack: ExitStack, key_counts: Sequence[int], *, backlog: int
) -> list[Variant]:
    variants = []
    for keys in key_counts:
        # A broker each: they must not share a heap.
        broker = stack.enter_context(bench.broker())
        queue = bench.queue(broker)
        bench.fill(broker, queue, max(backlog, keys), keys=keys)
        variants.append(Variant(broker, queue, keys))
    return variants
