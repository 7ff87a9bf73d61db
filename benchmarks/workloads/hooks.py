"""W7: what a script costs that is asked about every message."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.bench import Bench, Reading, measure
from benchmarks.figures import Figure, Unit, of_readings
from benchmarks.processes import Broker
from benchmarks.workloads.keys import added

SCRIPT = """
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant }
end
"""


@dataclass(slots=True)
class Variant:
    """A broker whose queues have a script, or none."""

    broker: Broker
    script: str
    readings: list[Reading] = field(default_factory=list)
    queue: str = ""

    def measure(self, bench: Bench, count: int) -> None:
        """W2 on a new queue."""
        self.queue = bench.queue(self.broker, script=self.script)
        place = {"queue": self.queue, "count": count}

        def run() -> list[dict[str, float]]:
            return [bench.producer.run("enqueue_batches", self.broker.address, **place)]

        self.readings.append(measure(self.broker, count, run))

    @property
    def server_us(self) -> list[float]:
        """CPU time per message in the broker, of each reading."""
        return [reading.server_us for reading in self.readings]


def with_a_script(bench: Bench) -> Iterator[Figure]:
    """W7: W2 with an `on_enqueue` script and without, in interleaved pairs."""
    count = bench.size(20_000, 100_000)
    with ExitStack() as stack:
        plain, scripted = (
            Variant(stack.enter_context(bench.broker()), script) for script in ("", SCRIPT)
        )
        for variant in (plain, scripted):
            variant.measure(bench, count // 4)
            variant.readings.clear()
        for number in range(bench.size(7, 9)):
            for variant in (plain, scripted) if number % 2 else (scripted, plain):
                variant.measure(bench, count)
        # As the broker itself counts it.
        hook = bench.producer.run("hook_stats", scripted.broker.address, queue=scripted.queue)
    yield of_readings("W7", "server CPU per message, no script", plain.server_us, Unit.US)
    yield of_readings("W7", "server CPU per message, a script", scripted.server_us, Unit.US)
    yield added("W7", "  a script over none", scripted.server_us, plain.server_us, must=25, aim=10)
    yield of_readings("W7", "  a call, p99", [hook["p99_us"]], Unit.US, must=50, aim=10)
