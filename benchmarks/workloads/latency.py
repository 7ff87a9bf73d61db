"""W5: how long a message takes to a consumer that waits for it."""

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Unit, percentile

_PAUSE_S = 0.003
_WARM_UP = 20


def enqueue_to_delivery(bench: Bench) -> Iterator[Figure]:
    """From the call of enqueue to the message in the consumer's hands, one at a time."""
    fsync_ms = bench.machine.fsync_ms
    count = bench.size(300, 2_000)
    with bench.broker() as broker:
        arguments = {"queue": bench.queue(broker), "pause_s": _PAUSE_S}
        bench.consumer.run("latency", broker.address, count=_WARM_UP, **arguments)
        found = bench.consumer.run("latency", broker.address, count=count, **arguments)
    delays_ms = [delay * 1000 for delay in found["delays_s"]]
    for what, share, must, aim in (
        ("enqueue to delivery, p50 (f = fsync)", 0.5, 1 + fsync_ms, 0.6 + fsync_ms),
        ("enqueue to delivery, p99", 0.99, 3 + 2 * fsync_ms, None),
    ):
        yield Figure(
            workload="W5",
            what=what,
            value=percentile(delays_ms, share),
            unit=Unit.MS,
            readings=count,
            must=must,
            aim=aim,
        )
