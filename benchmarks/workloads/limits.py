"""W8: what limits cost where none of them holds anything back.

A thousand buckets, all of them too generous to be ever empty, two of them for each message, beside
the same messages under throttle keys that nobody limits.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.bench import Bench, Reading, measure
from benchmarks.figures import Figure, Unit, of_readings
from benchmarks.processes import Broker

_BUCKETS = 1000


@dataclass(slots=True)
class _Variant:
    """A broker that has limits or none."""

    broker: Broker
    throttled: int
    readings: list[Reading] = field(default_factory=list)

    def measure(self, bench: Bench, count: int) -> None:
        """A backlog is leased and acked."""
        queue = bench.queue(self.broker)
        bench.fill(self.broker, queue, count, throttled=self.throttled)

        def run() -> list[dict[str, float]]:
            return [bench.consumer.run("consume", self.broker.address, queue=queue, count=count)]

        self.readings.append(measure(self.broker, count, run))


def buckets(bench: Bench) -> Iterator[Figure]:
    """W8: lease and ack a backlog under two throttle keys each, limited against not limited."""
    count = bench.size(20_000, 60_000)
    with ExitStack() as stack:
        # A broker each: they must not share a heap.
        free, limited = (_Variant(stack.enter_context(bench.broker()), _BUCKETS) for _ in range(2))
        bench.producer.run("limit", limited.broker.address, buckets=_BUCKETS, rate="1000000")
        for variant in (free, limited):
            variant.measure(bench, count // 4)
            variant.readings.clear()
        for number in range(bench.size(7, 9)):
            # The other way round every second time: neither is always the first.
            for variant in (free, limited) if number % 2 else (limited, free):
                variant.measure(bench, count)
    plain = [reading.server_us for reading in free.readings]
    checked = [reading.server_us for reading in limited.readings]
    percents = [100 * (more / less - 1) for more, less in zip(checked, plain, strict=True)]
    yield of_readings("W8", "server CPU per message, no limits", plain, Unit.US)
    yield of_readings("W8", "server CPU per message, 2 of 1,000 buckets", checked, Unit.US)
    yield of_readings("W8", "  buckets over none", percents, Unit.PERCENT, must=15, aim=5)
