"""Deficit round robin from outside: what was served to whom, against what the weights promise.

A window is a stretch in which the same keys stay deliverable with the same weights. Inside it, at
every single delivery, each key's served cost is compared with its weight's share of the total.

The bound. Within a window any two keys have had the same number of turns, give or take one, and a
key keeps between turns less than its largest cost. With w the weight, q the quantum, L the largest
cost and W the sum of weights, that gives for key i

    w·q  +  (L - 1)  +  w/W · Σ (L_j - 1)

With unit costs this is `w·q`, and what is asserted is the specification's `w·q + L`. With mixed
costs no deficit round robin can do without the last term: ten keys of weight 1 that save up for
messages of cost 10 are served nothing for nine laps, while a key of weight 5 is served 40. A key
that sleeps through several laps stands first in the one it wakes in: that shifts turns by one more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulation.books import Shelf
from tests.simulation.violation import require


@dataclass(slots=True)
class _Newcomer:
    """A key that has become active and was not served yet."""

    joined: int
    served: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Window:
    shelf: Shelf
    quantum: int
    weights: dict[str, int]
    spells: dict[str, int]
    # Which message of a key is the newest may be open; then its weight is as well.
    certain: bool
    served: dict[str, int]
    newcomers: dict[str, _Newcomer] = field(default_factory=dict)
    joined: dict[str, int] = field(default_factory=dict)
    total: int = 0
    run_key: str = ""
    run_cost: int = 0
    # After a change of weights what is left of the turn in progress counts for nobody.
    settling: bool = False

    def stands_like(self, other: _Window) -> bool:
        """Whether nothing has changed that shares depend on."""
        mine = (self.quantum, self.weights, self.spells, self.certain)
        return mine == (other.quantum, other.weights, other.spells, other.certain)


class Shares:
    """The shares of every queue."""

    def __init__(self, server_quantum: int) -> None:
        self._server_quantum = server_quantum
        self._windows: dict[str, _Window] = {}
        self._passes = 0
        # How much was judged, so that a run can tell that it proved something.
        self.judged = 0

    def restart(self, server_quantum: int) -> None:
        """The broker starts with an empty ring."""
        self._server_quantum = server_quantum
        self._windows.clear()

    def begin_deliveries(self, shelves: list[Shelf]) -> None:
        """The commands of a pass are done: see who is active now."""
        self._passes += 1
        names = {shelf.name for shelf in shelves}
        for name in [name for name in self._windows if name not in names]:
            del self._windows[name]
        for shelf in shelves:
            self._observe(shelf)

    def served(self, shelf: Shelf, key: str, cost: int) -> None:
        """A delivery: judge it, before the books know that the message is gone."""
        window = self._windows[shelf.name]
        if window.settling:
            window.settling = key in {window.run_key, ""}
        window.newcomers.pop(key, None)
        self._count_run(window, key, cost)
        if window.certain and not window.settling:
            window.total += cost
            window.served[key] += cost
            self._judge_newcomers(window, shelf, key, cost)
            self._judge_run(window, shelf, key)
            self._judge_shares(window, shelf)

    def left(self, shelf: Shelf, key: str) -> None:
        """A key has nothing ready any more."""
        if key not in shelf.ready:
            self._observe(shelf)

    def _observe(self, shelf: Shelf) -> None:
        quantum = shelf.settings.quantum or self._server_quantum
        weights = {key: max(shelf.weights(key)) for key in shelf.ready}
        certain = all(len(shelf.weights(key)) == 1 for key in shelf.ready)
        spells = {key: shelf.spells[key] for key in shelf.ready}
        old = self._windows.get(shelf.name)
        if old and old.shelf is not shelf:
            # The queue was deleted and created again.
            old = None
        new = _Window(shelf, quantum, weights, spells, certain, dict.fromkeys(weights, 0))
        if old and old.stands_like(new):
            return
        self._windows[shelf.name] = new
        if old is None:
            new.newcomers = {key: _Newcomer(self._passes) for key in weights}
            new.joined = dict.fromkeys(weights, self._passes)
            return
        new.run_key = old.run_key
        stayed = {key for key in spells if old.spells.get(key) == spells[key]}
        changed = not old.certain or quantum != old.quantum
        changed = changed or any(old.weights[k] != weights[k] for k in stayed)
        new.settling = changed or (old.settling and old.run_key in stayed)
        for key in spells:
            if key not in stayed:
                new.newcomers[key] = _Newcomer(self._passes)
            elif key in old.newcomers and not changed:
                new.newcomers[key] = old.newcomers[key]
            new.joined[key] = old.joined[key] if key in stayed else self._passes

    def _judge_newcomers(self, window: _Window, shelf: Shelf, key: str, cost: int) -> None:
        """A key that has become active waits at most one turn of each other key."""
        for name, newcomer in window.newcomers.items():
            credit = window.weights[name] * window.quantum
            turns = -(-shelf.largest[name] // credit)
            served = newcomer.served.get(key, 0) + cost
            newcomer.served[key] = served
            bound = turns * window.weights[key] * window.quantum + shelf.largest[key] - 1
            if turns == 1 and window.joined[key] > newcomer.joined:
                bound = 0
            self.judged += 1
            require(
                served <= bound,
                "shares",
                f"{shelf.name}: key {name} waits since {newcomer.joined}, and {key} was served "
                f"{served} meanwhile, more than {bound}; weights {window.weights}",
            )

    def _count_run(self, window: _Window, key: str, cost: int) -> None:
        if key != window.run_key:
            window.run_key, window.run_cost = key, 0
        window.run_cost += cost

    def _judge_run(self, window: _Window, shelf: Shelf, key: str) -> None:
        """A turn does not go on for longer than weight and quantum allow."""
        others = [name for name in window.weights if name != key]
        awake = all(shelf.largest[name] <= window.weights[name] * window.quantum for name in others)
        if others and awake:
            bound = window.weights[key] * window.quantum + shelf.largest[key] - 1
            require(
                window.run_cost <= bound,
                "shares",
                f"{shelf.name}: a turn of {key} served {window.run_cost}, more than {bound}; "
                f"weights {window.weights}",
            )

    def _judge_shares(self, window: _Window, shelf: Shelf) -> None:
        weights, quantum = window.weights, window.quantum
        if len(weights) < 2:
            return
        whole = sum(weights.values())
        largest = {key: shelf.largest[key] for key in weights}
        sleepers = any(largest[key] > weights[key] * quantum for key in weights)
        saved = sum(largest.values()) - len(largest)
        for key, weight in weights.items():
            off = abs(window.served[key] * whole - window.total * weight)
            bound = (weight * quantum + largest[key]) * whole
            if saved:
                credit = weight * quantum * (2 if sleepers else 1)
                derived = (credit + largest[key] - 1) * whole + weight * saved
                bound = max(bound, derived)
            self.judged += 1
            require(
                off <= bound,
                "shares",
                f"{shelf.name}: key {key} was served {window.served[key]} of {window.total}; "
                f"weights {weights}, quantum {quantum}, largest costs {largest}",
            )
