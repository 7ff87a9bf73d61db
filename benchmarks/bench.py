"""One run of the benchmarks: its folder, its client processes, and the brokers it starts."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from benchmarks.machine import ROOT, Machine, inspect
from benchmarks.processes import Broker, Load


@dataclass(frozen=True, slots=True)
class Reading:
    """What one run of a load came to."""

    rate: float
    server_us: float
    client_us: float


class Bench:
    """Everything a workload needs; leaving it ends every process and removes the data."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self._stack = ExitStack()
        # Beside the code: temporary directories are in memory on some machines.
        results = ROOT / "benchmarks" / "results"
        results.mkdir(exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="data-", dir=results))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._brokers = 0
        self._queues = 0
        try:
            self.machine: Machine = inspect(self.folder)
            self.producer = self._stack.enter_context(Load(self.folder / "producer.log"))
            self.consumer = self._stack.enter_context(Load(self.folder / "consumer.log"))
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> "Bench":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def size(self, quick: int, full: int) -> int:
        """How many, in this run."""
        return quick if self.quick else full

    @contextmanager
    def broker(self) -> Iterator[Broker]:
        """A fresh broker; its data goes when it does."""
        self._brokers += 1
        data_dir = self.folder / f"broker-{self._brokers}"
        try:
            with Broker(data_dir) as broker:
                yield broker
                self.leave()
        finally:
            shutil.rmtree(data_dir, ignore_errors=True)

    def leave(self) -> None:
        """Disconnect the clients."""
        for load in (self.producer, self.consumer):
            load.run("leave", "")

    def queue(self, broker: Broker, *, script: str = "") -> str:
        """A new queue."""
        self._queues += 1
        name = f"queue-{self._queues}"
        self.producer.run("create", broker.address, queue=name, script=script)
        return name

    def fill(self, broker: Broker, queue: str, count: int, **kind: object) -> None:
        """Put a backlog into a queue; `kind` says which keys the messages have."""
        if count:
            self.producer.run("enqueue_batches", broker.address, queue=queue, count=count, **kind)

    def flow(self, broker: Broker, queue: str, count: int, **kind: object) -> Reading:
        """Producer and consumer together: so many enqueued, delivered and acked."""
        place = {"queue": queue, "count": count}

        def both() -> list[dict[str, float]]:
            self.consumer.begin("consume", broker.address, **place)
            self.producer.begin("enqueue_batches", broker.address, **place, **kind)
            return [self.producer.result(), self.consumer.result()]

        return measure(broker, count, both)


def measure(broker: Broker, count: int, run: Callable[[], Sequence[dict[str, float]]]) -> Reading:
    """Rate and CPU time per message of a load whose parts run at the same time."""
    cpu_s = broker.cpu_s()
    parts = run()
    cpu_s = broker.cpu_s() - cpu_s
    elapsed_s = max(part["ended_s"] for part in parts) - min(part["began_s"] for part in parts)
    client_s = sum(part["cpu_s"] for part in parts)
    return Reading(count / elapsed_s, cpu_s / count * 1e6, client_s / count * 1e6)
