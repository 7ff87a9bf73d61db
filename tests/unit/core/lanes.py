"""A queue of the core by itself: messages in by key, cost and weight, deliveries out one by one."""

import sys
from collections.abc import Callable
from types import FrameType

from fila.core.key import Key
from fila.core.partition import Partition
from fila.core.queue import Queue
from fila.core.records import PartitionRecord
from fila.core.throttle import Throttle
from fila.model import QueueSettings, Spec


class Lanes:
    """Hands out places itself, so that a test can name what it put in."""

    def __init__(self, *, quantum: int = 1) -> None:
        partition = Partition(PartitionRecord(number=1, base="q"))
        self.queue = Queue("q", partition, QueueSettings(), quantum=quantum, throttle=Throttle())
        self.next_place = 1
        self.waiting: dict[str, list[tuple[int, Spec]]] = {}

    def add(self, spec: Spec, count: int = 1) -> range:
        """Messages that are alike; their places."""
        places = range(self.next_place, self.next_place + count)
        self.next_place += count
        self.queue.add_fresh(spec, places)
        waiting = self.waiting.setdefault(spec.fairness_key, [])
        waiting.extend((place, spec) for place in places)
        return places

    def add_backlog(self, spec: Spec, count: int) -> None:
        """More messages than a test keeps track of one by one."""
        self.queue.add_fresh(spec, range(self.next_place, self.next_place + count))
        self.next_place += count

    def deliver(self) -> tuple[int, Spec]:
        """The next message. There must be one."""
        ((place, spec),) = self.queue.pick(1, now_ns=0, records=[])
        waiting = self.waiting[spec.fairness_key]
        waiting.remove((place, spec))
        if not waiting:
            del self.waiting[spec.fairness_key]
        return place, spec

    def remove(self, place: int, spec: Spec) -> None:
        """Take a message out of the middle."""
        assert self.queue.remove_ready(spec, place) is not None
        waiting = self.waiting[spec.fairness_key]
        waiting.remove((place, spec))
        if not waiting:
            del self.waiting[spec.fairness_key]

    def remove_key(self, name: str) -> None:
        """Take all of a key out, the last first."""
        for place, spec in reversed(self.waiting.get(name, [])[:]):
            self.remove(place, spec)

    def key(self, name: str) -> Key:
        """What the queue knows of a key."""
        return self.queue.keys[name]


def count_calls(work: Callable[[], object]) -> int:
    """How many functions, Python's own among them, some work calls: a measure without a clock."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
