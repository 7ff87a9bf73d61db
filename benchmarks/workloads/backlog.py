"""W11 and W12: what a deep backlog costs, in CPU, in memory, and at the next start."""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Unit
from benchmarks.processes import Broker
from benchmarks.workloads.keys import Variant, added, interleave

_SHALLOW = 10_000
_KEYS = 1_000


def depth_and_restart(bench: Bench) -> Iterator[Figure]:
    """A backlog of priorities, throttle keys and fairness keys, deep against shallow."""
    deep_count = bench.size(100_000, 1_000_000)
    with ExitStack() as stack:
        shallow = _variant(bench, stack, _SHALLOW, _KEYS)
        deep = _variant(bench, stack, deep_count, _KEYS)
        count = bench.size(10_000, 40_000)
        interleave(bench, (shallow, deep), count, bench.size(5, 7))
        what = f"CPU per message, {deep_count:,} over {_SHALLOW:,}"
        yield added("W11", what, deep.server_us, shallow.server_us, must=10, aim=2)
    for keys in (_KEYS,) if bench.quick else (1, _KEYS, 100_000):
        yield from _memory_and_restart(bench, bench.size(100_000, 1_000_000), keys)
    if not bench.quick:
        yield from _very_deep(bench)


def _variant(bench: Bench, stack: ExitStack, count: int, keys: int) -> Variant:
    broker = stack.enter_context(bench.broker())
    queue = bench.queue(broker)
    bench.fill(broker, queue, count, keys=keys, rich=True)
    return Variant(broker, queue, keys, rich=True)


def _memory_and_restart(bench: Bench, count: int, keys: int) -> Iterator[Figure]:
    """Killed and started again: memory is then the backlog's, not that of buffers for writing."""
    with bench.broker() as broker:
        empty = broker.resident_bytes()
        queue = bench.queue(broker)
        bench.fill(broker, queue, count, keys=keys, rich=True)
        bench.leave()
        broker.kill()
        with Broker(broker.data_dir) as again:
            pending = again.resident_bytes() - empty
            found = bench.consumer.run("first", again.address, queue=queue)
            bench.leave()
    yield Figure(
        workload="W11",
        what=f"memory per pending message, {keys:,} keys",
        value=pending / count,
        unit=Unit.BYTES,
        must=200,
        aim=80,
    )
    yield Figure(
        workload="W12",
        what=f"killed with {count:,} pending: first delivery",
        value=found["first_at_s"] - again.started_at,
        unit=Unit.SECONDS,
        # Demanded of a million; less is shown, and meets nothing.
        must=10 if count >= 1_000_000 else None,
        aim=2 if count >= 1_000_000 else None,
    )


def _very_deep(bench: Bench) -> Iterator[Figure]:
    with ExitStack() as stack:
        variants = [_variant(bench, stack, count, _KEYS) for count in (_SHALLOW, 5_000_000)]
        interleave(bench, variants, 40_000, 7)
    shallow, deep = variants
    yield added(
        "W11",
        "CPU per message, 5,000,000 over 10,000",
        deep.server_us,
        shallow.server_us,
        must=10,
        aim=2,
    )
    rate = statistics.median([reading.rate for reading in deep.readings])
    yield Figure(workload="W11", what="  rate at that depth", value=rate, unit=Unit.RATE)
