"""Deficit round robin over the active keys of one queue.

The ring is swept in laps. A key's position is fixed when it joins, behind all others; a lap visits
positions in ascending order, so a key that joins waits at most one turn of each other key. On its
turn a key is credited `weight × quantum`, and delivers while that covers its next message.

A key that needs several turns to afford its next message is not visited in between: it is put
into the lap in which it can deliver and credited for all laps then. So the work for a delivery
does not depend on the number of keys, whatever the costs.
"""

from collections import deque
from heapq import heapify, heappop, heappush

from fila.core.key import Key, Seat

# Seats of keys that left may lie in the ring up to this number before they are swept out.
_SEATS_LEFT_MAX = 64


class Ring:
    """Whose turn it is."""

    __slots__ = (
        "_cursor",
        "_extra",
        "_joined",
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
        self._joined = 0
        self._size = 0
        # Position of the turn in progress, or of the last one in this lap.
        self._cursor = 0
        # Seats of this lap in ascending order; those that came out of turn; those of the next lap.
        self._now: deque[Seat] = deque()
        self._extra: list[Seat] = []
        self._next: deque[Seat] = deque()
        # Seats of laps further ahead, and a heap of those laps.
        self._later: dict[int, list[Seat]] = {}
        self._later_laps: list[int] = []

    def __len__(self) -> int:
        return self._size

    @property
    def lap(self) -> int:
        """How often the ring has gone round."""
        return self._lap

    def join(self, key: Key) -> None:
        """A key has become active: its turn comes behind all others."""
        self._joined += 1
        self._size += 1
        key.seat = (self._joined, key)
        key.in_turn = False
        key.credited_lap = self._lap - 1
        key.due_lap = self._lap
        self._now.append(key.seat)
        if len(self._now) > 2 * self._size + _SEATS_LEFT_MAX:
            self._now = deque(seat for seat in self._now if seat[1].seat is seat)

    def leave(self, key: Key) -> None:
        """A key is not active any more; its seat is dropped when it is met."""
        key.seat = None
        key.in_turn = False
        self._size -= 1
        if not self._size:
            self._clear()

    def next_key(self) -> Key | None:
        """The key that may deliver now: it is its turn, and it can afford its next message."""
        while True:
            if self._extra:
                seat = self._front()
            elif self._now:
                seat = self._now[0]
            elif self._start_lap():
                continue
            else:
                return None
            key = seat[1]
            if key.seat is not seat or key.due_lap != self._lap:
                self._drop_front(seat)
                continue
            if not key.in_turn:
                self._cursor = seat[0]
                key.deficit += (self._lap - key.credited_lap) * key.weight * self.quantum
                key.credited_lap = self._lap
                key.in_turn = True
            if key.deficit >= key.head().spec.cost:
                return key
            self.pass_turn(key, seat)

    def pass_turn(self, key: Key, seat: Seat) -> None:
        """The key whose turn it is can't afford its next message: it waits for another turn."""
        self._drop_front(seat)
        key.in_turn = False
        if key.deficit + key.weight * self.quantum >= key.head().spec.cost:
            key.due_lap = self._lap + 1
            self._next.append(seat)
        else:
            self._seat_in_lap(seat, self._lap + self._laps_needed(key))

    def before_change(self, key: Key) -> None:
        """Call before the weight or the next message of a key in the ring changes."""
        if key.seat is not None and not key.in_turn:
            self._credit_laps(key)

    def after_change(self, key: Key) -> None:
        """Call after such a change: a wait of several laps may have become shorter or longer."""
        seat = key.seat
        if seat is None or key.in_turn or key.due_lap <= key.credited_lap + 1:
            return
        due_lap = key.credited_lap + self._laps_needed(key)
        if due_lap != key.due_lap:
            key.seat = (seat[0], key)
            self._seat_in_lap(key.seat, due_lap)

    def _front(self) -> Seat:
        """The first seat of this lap, when some came out of turn."""
        now, extra = self._now, self._extra
        return now[0] if now and now[0][0] < extra[0][0] else extra[0]

    def _drop_front(self, seat: Seat) -> None:
        if self._now and self._now[0] is seat:
            self._now.popleft()
        else:
            heappop(self._extra)

    def _start_lap(self) -> bool:
        if self._next:
            self._lap += 1
        elif self._later_laps:
            self._lap = self._later_laps[0]
        else:
            return False
        self._cursor = 0
        self._now, self._next = self._next, self._now
        if self._later_laps and self._later_laps[0] == self._lap:
            heappop(self._later_laps)
            self._extra = self._later.pop(self._lap)
            heapify(self._extra)
        return True

    def _laps_needed(self, key: Key) -> int:
        short = key.head().spec.cost - key.deficit
        return max(1, -(-short // (key.weight * self.quantum)))

    def _credit_laps(self, key: Key) -> None:
        """Credit the laps that have passed the key by, at the weight it had."""
        assert key.seat is not None
        passed = self._lap if key.seat[0] <= self._cursor else self._lap - 1
        if passed > key.credited_lap:
            key.deficit += (passed - key.credited_lap) * key.weight * self.quantum
            key.credited_lap = passed

    def _seat_in_lap(self, seat: Seat, lap: int) -> None:
        seat[1].due_lap = lap
        if lap == self._lap:
            heappush(self._extra, seat)
        elif lap in self._later:
            self._later[lap].append(seat)
        else:
            self._later[lap] = [seat]
            heappush(self._later_laps, lap)

    def _clear(self) -> None:
        """Drop the seats that nobody holds any more."""
        self._now.clear()
        self._next.clear()
        self._extra.clear()
        self._later.clear()
        self._later_laps.clear()
