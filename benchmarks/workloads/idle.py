"""W13: what a broker costs that does nothing."""

import time
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Unit

# The start is over after that.
_SETTLE_S = 1.0


def empty_broker(bench: Bench) -> Iterator[Figure]:
    """A broker that was just started, without queues or clients."""
    with bench.broker() as broker:
        time.sleep(_SETTLE_S)
        cpu_s, begin = broker.cpu_s(), time.monotonic()
        time.sleep(bench.size(4, 30))
        percent = 100 * (broker.cpu_s() - cpu_s) / (time.monotonic() - begin)
        memory_mb = broker.resident_bytes() / 1e6
    yield Figure(workload="W13", what="idle CPU", value=percent, unit=Unit.PERCENT, must=1, aim=0.3)
    yield Figure(
        workload="W13",
        what="memory of an empty broker",
        value=memory_mb,
        unit=Unit.MEGABYTES,
        must=120,
        aim=80,
    )
