"""A driver that asks why."""

from typing import TypeVar

from fila.core.explanation import Code, Explanation
from tests.unit.core.driver import QUEUE
from tests.unit.core.throttled import Throttled

FactsT = TypeVar("FactsT")


class Explained(Throttled):
    """Explanations as the broker gives them: by what is stored of a message."""

    def why(self, sequence: int, queue: str = QUEUE) -> Explanation:
        """Of a message."""
        assert self.storage is not None
        partition = self.scheduler.partition_of(queue)
        entry = self.storage.read_entry(partition, sequence)
        assert entry is not None
        progress = self.storage.read_progress(partition, sequence)
        message = self.scheduler.find(queue, str(sequence), entry, progress)
        return self.scheduler.explain(
            queue, message=message, now_ns=self.now_ns, wall_ns=self.wall_ns
        )

    def why_key(self, key: str, queue: str = QUEUE) -> Explanation:
        """Of a fairness key."""
        return self.scheduler.explain(queue, key=key, now_ns=self.now_ns, wall_ns=self.wall_ns)

    def why_queue(self, queue: str = QUEUE) -> Explanation:
        """Of a queue."""
        return self.scheduler.explain(queue, now_ns=self.now_ns, wall_ns=self.wall_ns)


def codes(explanation: Explanation) -> list[str]:
    """The causes by name, in order."""
    return [cause.code.name for cause in explanation.causes]


def facts(explanation: Explanation, code: Code, kind: type[FactsT]) -> FactsT:
    """What is known of a cause that must be there."""
    (found,) = (cause.facts for cause in explanation.causes if cause.code is code)
    assert isinstance(found, kind)
    return found


def fill(driver: Explained, credit: int = 1) -> int:
    """A consumer that holds all it asked for; nothing else has happened yet."""
    consumer = driver.consume(credit=credit)
    driver.enqueue_key("filler", credit)
    return consumer


def story_name(case: object) -> str:
    """What to call a case of a table."""
    return str(getattr(case, "__name__", ""))
