"""W9: how long a quiet tenant waits beside a noisy one."""

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Unit, percentile
from benchmarks.processes import Broker

_SERVICE_S = 0.005
_PAUSE_S = 0.2


def quiet_beside_noisy(bench: Bench) -> Iterator[Figure]:
    """Eight handlers of 5 ms, a quiet tenant with 5 messages a second, alone and in a backlog."""
    with bench.broker() as broker:
        alone = _waits_ms(bench, broker, backlog=0, quiet=bench.size(20, 100))
        beside = _waits_ms(
            bench, broker, backlog=bench.size(10_000, 100_000), quiet=bench.size(25, 250)
        )
    alone_p99 = percentile(alone, 0.99)
    yield _figure("quiet tenant alone, p99 of its wait", alone, alone_p99)
    yield Figure(
        workload="W9",
        what="beside a noisy one, p99",
        value=percentile(beside, 0.99),
        unit=Unit.MS,
        readings=len(beside),
        must=alone_p99 + 2000 * _SERVICE_S,
        aim=alone_p99 + 1000 * _SERVICE_S,
    )
    yield _figure("  median", beside, percentile(beside, 0.5))


def _figure(what: str, waits: list[float], value: float) -> Figure:
    return Figure(workload="W9", what=what, value=value, unit=Unit.MS, readings=len(waits))


def _waits_ms(bench: Bench, broker: Broker, *, backlog: int, quiet: int) -> list[float]:
    queue = bench.queue(broker)
    bench.fill(broker, queue, backlog, keys=1)
    arguments = {"queue": queue, "service_s": _SERVICE_S, "quiet": quiet}
    bench.consumer.begin("handle", broker.address, **arguments)
    bench.producer.run("trickle", broker.address, queue=queue, count=quiet, pause_s=_PAUSE_S)
    found = bench.consumer.result()
    return [wait * 1000 for wait in found["waits_s"]]
