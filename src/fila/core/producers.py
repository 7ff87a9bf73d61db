"""Which sequences of which producers were seen, so that a repeated enqueue is answered, not stored.

Only the greatest sequence of a producer is kept in memory. One that is not greater is either a
repeat, whose outcome the store has, or overtook another on the way; the store tells which.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from fila.model import NS_PER_S, Outcome, ProducerSequence

KEEP_NS = 600 * NS_PER_S
_MARK_EVERY_NS = 60 * NS_PER_S


@dataclass(slots=True)
class _Producer:
    high: int
    last_ns: int
    # (time, greatest sequence then): what may be forgotten when that time is long ago.
    marks: deque[tuple[int, int]] = field(default_factory=deque)


class Producers:
    """The producers of one partition."""

    def __init__(self) -> None:
        self._producers: dict[bytes, _Producer] = {}
        # Outcomes of the pass in progress, which the store does not have yet.
        self._recent: dict[ProducerSequence, Outcome] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def may_repeat(self, key: ProducerSequence) -> bool:
        """Whether the store must be asked for an earlier outcome."""
        producer = self._producers.get(key.producer)
        return producer is not None and key.sequence <= producer.high

    def recent(self, key: ProducerSequence) -> Outcome | None:
        """The outcome of an enqueue of this same pass."""
        return self._recent.get(key)

    def note(self, key: ProducerSequence, outcome: Outcome, now_ns: int) -> None:
        """Take in the outcome of a first enqueue."""
        self._recent[key] = outcome
        self.note_high(key.producer, key.sequence, now_ns)

    def note_high(self, name: bytes, sequence: int, now_ns: int) -> None:
        """Take in that a producer came as far as this."""
        producer = self._producers.get(name)
        if producer is None:
            producer = self._producers[name] = _Producer(sequence, now_ns)
            producer.marks.append((now_ns, sequence))
        producer.high = max(producer.high, sequence)
        producer.last_ns = now_ns
        if now_ns - producer.marks[-1][0] >= _MARK_EVERY_NS:
            producer.marks.append((now_ns, producer.high))

    def end_pass(self) -> None:
        """The pass is over: the store has its outcomes now."""
        self._recent.clear()

    def forget_old(self, now_ns: int) -> Iterator[tuple[bytes, int]]:
        """Producers, each with the sequence up to which outcomes are too old to keep."""
        for name, producer in list(self._producers.items()):
            if now_ns - producer.last_ns > KEEP_NS:
                del self._producers[name]
                yield name, producer.high
                continue
            up_to = 0
            while len(producer.marks) > 1 and now_ns - producer.marks[1][0] > KEEP_NS:
                up_to = producer.marks.popleft()[1]
            if up_to:
                yield name, up_to
