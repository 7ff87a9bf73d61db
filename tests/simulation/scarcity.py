"""Who gets the tokens of a scarce bucket: keys that wait for it by weight, and nobody never.

A window is a stretch in which the same keys of one queue wait for one bucket, with the same
weights, under the same limit, and consumers always have room. Inside it, after every pass, what
each key took is compared with its weight's share of what all took: it may differ by a turn and its
largest cost, as in any deficit round robin; costs are 1 in the worlds that are judged.

A message that needs several buckets, and is the first of its key that needs any of them, has its
turn at the bucket where it waits after one turn of every key there. If it misses another bucket's
token then, it is served after those that did before it, at the price of a token each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.simulation.books import Msg, Shelf
from tests.simulation.buckets import ONE, Buckets
from tests.simulation.violation import require


@dataclass(slots=True)
class _Window:
    # Weights, quantum, rate and burst.
    conditions: object
    weights: dict[str, int]
    quantum: int
    served: dict[str, int]
    # How many messages of each key wait for the bucket and for no other.
    ready: dict[str, int]
    total: int = 0


@dataclass(slots=True)
class _Wait:
    """A message with several buckets is first: the tokens that others took since."""

    limits: object
    taken: Counter[str]


class Scarcity:
    """The windows of every queue at every bucket."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], _Window] = {}
        self._waits: dict[int, _Wait] = {}
        self._dealt: list[Msg] = []
        # How much was judged.
        self.judged = 0

    def restart(self) -> None:
        """Lines begin anew."""
        self._windows.clear()
        self._waits.clear()
        self._dealt.clear()

    def dealt(self, msg: Msg) -> None:
        """A delivery of this pass."""
        self._dealt.append(msg)

    def judge(
        self, shelves: list[Shelf], able: list[Shelf], buckets: Buckets, default: int
    ) -> None:
        """After the passes of a moment; `able` are the queues whose consumers have room."""
        dealt, self._dealt = self._dealt, []
        windows: dict[tuple[str, str], _Window] = {}
        for shelf in able:
            quantum = shelf.settings.quantum or default
            for name, window in _windows(shelf, buckets, quantum).items():
                windows[shelf.name, name] = self._continued(shelf, name, window, buckets, dealt)
        self._windows = windows
        self._judge_waits(shelves, able, buckets, default, dealt)

    def _continued(
        self, shelf: Shelf, name: str, new: _Window, buckets: Buckets, dealt: Iterable[Msg]
    ) -> _Window:
        old = self._windows.get((shelf.name, name))
        if old is None or old.conditions != new.conditions:
            return new
        served = Counter(msg.spec.fairness_key for msg in dealt if name in buckets.limited(msg))
        others = any(msg.queue != shelf.name for msg in dealt if name in buckets.limited(msg))
        # One that had nothing left for a moment has begun anew.
        if others or any(served[key] >= old.ready.get(key, 0) for key in served):
            return new
        for key, count in served.items():
            old.served[key] += count
            old.total += count
        old.ready = new.ready
        whole = sum(old.weights.values())
        for key, weight in old.weights.items():
            self.judged += 1
            off = abs(old.served[key] * whole - old.total * weight)
            require(
                off <= (weight * old.quantum + 1) * whole,
                "scarcity",
                f"{shelf.name}: of {old.total} tokens of {name} key {key} got {old.served[key]}; "
                f"weights {old.weights}, quantum {old.quantum}",
            )
        return old

    def _judge_waits(
        self,
        shelves: list[Shelf],
        able: list[Shelf],
        buckets: Buckets,
        default: int,
        dealt: list[Msg],
    ) -> None:
        bound = _bound(shelves, default)
        limits = sorted((name, pail.rate, pail.burst) for name, pail in buckets.pails.items())
        taken = Counter(name for msg in dealt for name in buckets.limited(msg))
        waits = {}
        for shelf in able:
            for msg in _firsts(shelf, buckets):
                wait = self._waits.get(msg.item)
                if wait is None or wait.limits != limits:
                    wait = _Wait(limits, Counter())
                else:
                    wait.taken.update(taken)
                waits[msg.item] = wait
                names = buckets.limited(msg)
                slowest = min(names, key=lambda each: buckets.pails[each].rate)
                self.judged += 1
                text = f"{msg} waits while {wait.taken[slowest]} tokens of {slowest} went to others"
                require(wait.taken[slowest] <= bound, "scarcity", text, "of at most", bound)
        self._waits = waits


def _windows(shelf: Shelf, buckets: Buckets, quantum: int) -> dict[str, _Window]:
    """For each empty bucket at which only messages wait that need nothing else: whose they are."""
    waiting: dict[str, Counter[str]] = {}
    mixed: set[str] = set()
    for key, messages in shelf.ready.items():
        for msg in messages.values():
            names = buckets.limited(msg)
            for name in names:
                waiting.setdefault(name, Counter())[key] += 1
            if len(names) > 1:
                mixed.update(names)
    found = {}
    for name, keys in waiting.items():
        pail = buckets.pails[name]
        certain = all(len(shelf.weights(key)) == 1 for key in keys)
        if name not in mixed and pail.least < ONE and certain:
            weights = {key: max(shelf.weights(key)) for key in sorted(keys)}
            conditions = (weights, quantum, pail.rate, pail.burst)
            served = dict.fromkeys(weights, 0)
            found[name] = _Window(conditions, weights, quantum, served, dict(keys))
    return found


def _firsts(shelf: Shelf, buckets: Buckets) -> list[Msg]:
    """Messages that need several buckets, and are the first of their key that need any of them."""
    firsts = []
    for messages in shelf.ready.values():
        for msg in messages.values():
            names = set(buckets.limited(msg))
            if len(names) > 1 and not any(
                not msg.goes_before(other) and names & set(other.spec.throttle_keys)
                for other in messages.values()
                if other is not msg
            ):
                firsts.append(msg)
    return firsts


def _bound(shelves: list[Shelf], default: int) -> int:
    """Tokens that go to others, at most, before a turn of every key and every claim are over."""
    turns = lanes = 0
    for shelf in shelves:
        quantum = shelf.settings.quantum or default
        turns += sum(max(shelf.weights(key)) * quantum for key in shelf.ready)
        lanes += len({msg.spec for messages in shelf.ready.values() for msg in messages.values()})
    return 2 * (turns + lanes)
