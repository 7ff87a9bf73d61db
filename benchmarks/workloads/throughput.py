"""W1–W4: how many messages a second go in, out, and through."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.bench import Bench, Reading, measure
from benchmarks.figures import Figure, Unit, of_readings, percentile
from benchmarks.processes import Broker

_TASKS = 256
_THREADS = 64


def enqueue(bench: Bench) -> Iterator[Figure]:
    """W1: plain enqueue, whose calls the SDK lets travel together."""
    with bench.broker() as broker:
        run = _Repeated(bench, broker, "enqueue", tasks=_TASKS)
        what = f"enqueue, {_TASKS} tasks"
        yield from _rates("W1", what, run(bench.size(20_000, 100_000)), 20_000, 40_000)
        run = _Repeated(bench, broker, "enqueue_threads", threads=_THREADS)
        what = f"sync client, {_THREADS} threads"
        yield from _rates("W1", what, run(bench.size(5_000, 20_000)))


def enqueue_batches(bench: Bench) -> Iterator[Figure]:
    """W2: the batch API."""
    count = bench.size(40_000, 200_000)
    with bench.broker() as broker:
        run = _Repeated(bench, broker, "enqueue_batches")
        yield from _rates("W2", "enqueue, batches of 500", run(count), 80_000, 150_000)
        slowest = [percentile(found["replies_s"], 0.99) * 1000 for found in run.found]
        yield of_readings("W2", "  a batch's reply, p99", slowest, Unit.MS)
        run = _Repeated(bench, broker, "enqueue_batches_threads")
        yield from _rates("W2", "sync client, 4 threads", run(count))


def consume(bench: Bench) -> Iterator[Figure]:
    """W3: a backlog is leased and acked."""
    count = bench.size(30_000, 150_000)
    with bench.broker() as broker:
        for job, what, must, aim in (
            ("consume", "lease and ack a backlog", 40_000, 100_000),
            ("consume_sync", "sync client", None, None),
        ):
            run = _Repeated(bench, broker, job, backlog=True)
            yield from _rates("W3", what, run(count), must, aim)


def together(bench: Bench) -> Iterator[Figure]:
    """W4: a producer and a consumer at the same time."""
    count = bench.size(30_000, 150_000)
    with bench.broker() as broker:
        bench.flow(broker, bench.queue(broker), count // 4)
        readings = [bench.flow(broker, bench.queue(broker), count) for _ in range(bench.size(3, 7))]
        yield from _rates("W4", "enqueue, deliver, ack together", readings, 25_000, 50_000)


class _Repeated:
    """A job of the client process, warmed up and repeated, each time on a fresh queue."""

    def __init__(
        self, bench: Bench, broker: Broker, job: str, *, backlog: bool = False, **arguments: object
    ) -> None:
        self._bench = bench
        self._broker = broker
        self._job = job
        self._backlog = backlog
        self._arguments = arguments
        self.found: list[dict[str, Any]] = []

    def __call__(self, count: int) -> list[Reading]:
        self._once(count // 4)
        self.found.clear()
        return [self._once(count) for _ in range(self._bench.size(3, 7))]

    def _once(self, count: int) -> Reading:
        queue = self._bench.queue(self._broker)
        if self._backlog:
            self._bench.fill(self._broker, queue, count)
        return measure(self._broker, count, self._run(queue, count))

    def _run(self, queue: str, count: int) -> Callable[[], Sequence[dict[str, float]]]:
        def run() -> list[dict[str, Any]]:
            load = self._bench.consumer if self._backlog else self._bench.producer
            address, arguments = self._broker.address, self._arguments
            found = load.run(self._job, address, queue=queue, count=count, **arguments)
            self.found.append(found)
            return [found]

        return run


def _rates(
    workload: str,
    what: str,
    readings: Sequence[Reading],
    must: float | None = None,
    aim: float | None = None,
) -> Iterator[Figure]:
    rates = [reading.rate for reading in readings]
    yield of_readings(workload, what, rates, Unit.RATE, must=must, aim=aim)
    server = [reading.server_us for reading in readings]
    yield of_readings(workload, "  server CPU per message", server, Unit.US)
    client = [reading.client_us for reading in readings]
    yield of_readings(workload, "  client CPU per message", client, Unit.US)
