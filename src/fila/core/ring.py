"""Deficit round robin over fairness keys: a queue's active ones, or those in a bucket's line.

The keys stand in line. The first has its turn: it is credited `weight × quantum`, delivers while
that covers its next message, and goes to the end of the line. A key that becomes active goes to
the end as well: it waits at most one turn of each other key, and no key ever waits longer because
others come and go. Once all that stood in line have had a turn, a lap is over.

A key that needs several turns to afford its next message is not visited in between: it sleeps up
to the lap in which it can deliver, stands first in it, and is credited for all laps then. So the
work for a delivery does not depend on the number of keys, whatever the costs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import chain
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from fila.core.lane import Lane

# Seats of keys that left may lie in the ring up to this number before they are swept out.
_SEATS_LEFT_MAX = 64


class Member(Protocol):
    """Who takes turns: a fairness key among a queue's, or what of it waits for a bucket."""

    weight: int
    deficit: int
    # Its place in the line. A new tuple whenever it moves in it: an old one that still lies
    # somewhere in the ring is known by not being the member's any more.
    seat: Seat | None
    in_turn: bool
    credited_lap: int
    due_lap: int
    # The lane of its next message, where that is known without looking.
    only_lane: Lane | None

    def head(self) -> Lane:
        """The lane of its next message. There must be one."""


Seat: TypeAlias = "tuple[Member]"
MemberT = TypeVar("MemberT", bound=Member)


class Ring(Generic[MemberT]):
    """Whose turn it is."""

    __slots__ = (
        "_asleep",
        "_lap",
        "_later",
        "_later_laps",
        "_next",
        "_now",
        "_size",
        "quantum",
    )

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum
        self._lap = 0
        self._size = 0
        # The line: who has no turn yet in this lap, then who has one in the next.
        self._now: deque[tuple[MemberT]] = deque()
        self._next: deque[tuple[MemberT]] = deque()
        # Who sleeps, by the lap of the next turn; a heap of those laps; how many seats that are.
        self._later: dict[int, list[tuple[MemberT]]] = {}
        self._later_laps: list[int] = []
        self._asleep = 0

    def __len__(self) -> int:
        return self._size

    @property
    def lap(self) -> int:
        """How often the ring has gone round."""
        return self._lap

    def join(self, key: MemberT) -> None:
        """A key has become active: its turn comes behind all others.

        One that a limit stopped in the middle of a turn goes on with what it had left, without
        another credit: else it would save up more with each stop.
        """
        self._size += 1
        key.seat = (key,)
        key.in_turn = False
        has_credit = key.deficit > 0 and key.deficit >= key.head().spec.cost
        key.credited_lap = self._lap + has_credit
        self._line_up(key, key.seat)

    def leave(self, key: MemberT) -> None:
        """A key is not active any more; its seat is dropped when it is met."""
        key.seat = None
        key.in_turn = False
        self._size -= 1
        if not self._size:
            self._clear()

    def next_key(self) -> MemberT | None:
        """The key that may deliver now: it is its turn, and it can afford its next message."""
        # Once or twice for each message delivered: worth a few calls less.
        while self._now or self._start_lap():
            seat = self._now[0]
            key = seat[0]
            if key.seat is not seat:
                self._now.popleft()
                continue
            if not key.in_turn:
                key.deficit += (self._lap - key.credited_lap) * key.weight * self.quantum
                key.credited_lap = self._lap
                key.in_turn = True
            cost = (key.only_lane or key.head()).spec.cost
            if key.deficit >= cost:
                return key
            # It waits for another turn.
            self._now.popleft()
            key.in_turn = False
            if key.deficit + key.weight * self.quantum >= cost:
                key.due_lap = self._lap + 1
                self._next.append(seat)
            else:
                self._wait(key, seat, self._lap + self._laps_needed(key))
        return None

    def line(self) -> Iterator[MemberT]:
        """Who has a turn in this lap and in the next, in order, for those who only look.

        A turn that is over, but was not passed on yet, counts as the one after.
        """
        over: MemberT | None = None
        for seat in chain(self._now, self._later.get(self._lap + 1, ()), self._next):
            key = seat[0]
            if key.seat is not seat:
                continue
            if key.in_turn and key.deficit < key.head().spec.cost:
                over = key
            else:
                yield key
        if over is not None:
            yield over

    def turns_needed(self, key: MemberT, cost: int) -> int:
        """In which turn from now a key in the ring can have delivered so much."""
        credit = key.weight * self.quantum
        due_lap = max(key.due_lap, self._lap)
        if key.in_turn:
            due_lap = self._lap + (key.deficit < key.head().spec.cost)
        short = cost - key.deficit - (due_lap - key.credited_lap) * credit
        return max(1, due_lap - self._lap) + max(0, -(-short // credit))

    def before_change(self, key: MemberT) -> None:
        """Call before the weight or the next message of a key in the ring changes."""
        if key.seat is not None and not key.in_turn:
            # The laps it slept through count at the weight it had.
            passed = min(self._lap, key.due_lap - 1)
            if passed > key.credited_lap:
                key.deficit += (passed - key.credited_lap) * key.weight * self.quantum
                key.credited_lap = passed

    def after_change(self, key: MemberT) -> None:
        """Call after such a change: a sleep may have become shorter or longer."""
        if key.seat is None or key.in_turn or key.due_lap <= self._lap + 1:
            return
        due_lap = key.credited_lap + self._laps_needed(key)
        if due_lap != key.due_lap:
            key.seat = (key,)
            self._wait(key, key.seat, due_lap)

    def _laps_needed(self, key: MemberT) -> int:
        short = key.head().spec.cost - key.deficit
        return max(1, -(-short // (key.weight * self.quantum)))

    def _wait(self, key: MemberT, seat: tuple[MemberT], due_lap: int) -> None:
        """In line for the next lap, asleep for a later one."""
        if due_lap <= self._lap + 1:
            self._line_up(key, seat)
            return
        key.due_lap = due_lap
        self._asleep += 1
        if due_lap in self._later:
            self._later[due_lap].append(seat)
        else:
            self._later[due_lap] = [seat]
            heappush(self._later_laps, due_lap)
        if self._asleep > 2 * self._size + _SEATS_LEFT_MAX:
            self._sweep_later()

    def _line_up(self, key: MemberT, seat: tuple[MemberT]) -> None:
        key.due_lap = self._lap + 1
        self._next.append(seat)
        if len(self._next) > 2 * self._size + _SEATS_LEFT_MAX:
            self._next = deque(_held(self._next))

    def _start_lap(self) -> bool:
        """Begin the next lap in which somebody has a turn; whether there is one."""
        if self._next:
            self._lap += 1
        elif self._later_laps:
            self._lap = self._later_laps[0]
        else:
            return False
        self._now, self._next = self._next, self._now
        if self._later_laps and self._later_laps[0] == self._lap:
            awake = self._later.pop(heappop(self._later_laps))
            self._asleep -= len(awake)
            self._now.extendleft(reversed(awake))
        return True

    def _sweep_later(self) -> None:
        kept = {lap: _held(seats) for lap, seats in self._later.items()}
        self._later = {lap: seats for lap, seats in kept.items() if seats}
        # Sorted, which is all that a heap needs.
        self._later_laps = sorted(self._later)
        self._asleep = sum(map(len, self._later.values()))

    def _clear(self) -> None:
        """Drop the seats that nobody holds any more."""
        self._now.clear()
        self._next.clear()
        self._later.clear()
        self._later_laps.clear()
        self._asleep = 0


def _held(seats: Iterable[tuple[MemberT]]) -> list[tuple[MemberT]]:
    """Those whose keys still count on them."""
    return [seat for seat in seats if seat[0].seat is seat]
