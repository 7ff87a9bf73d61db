"""Token buckets as the specification describes them, in whole numbers of a very small unit.

Of each bucket two levels are kept: the most that the limit allows it to hold, which no delivery may
overdraw, in whatever window and through whatever restarts; and the least that it must hold, which
no message may be made to wait beside. They part where a restart costs a little, and meet again when
the bucket is full. Time is the clients' own: it goes on while the broker is down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fila.core.scheduler import Scheduler
from tests.simulation.violation import require

if TYPE_CHECKING:
    from tests.simulation.books import Msg, Shelf

ONE = 10**18
_HOUR_NS = 3600 * 10**9


@dataclass(slots=True)
class Pail:
    """One bucket. The rate is in units a nanosecond, which is billionths of a token a second."""

    rate: int
    burst: int
    most: int
    least: int
    age: int

    def pass_time(self, age: int) -> None:
        """It fills."""
        gained = (age - self.age) * self.rate
        self.most = min(self.burst, self.most + gained)
        self.least = min(self.burst, self.least + gained)
        self.age = age

    def change(self, rate: int, burst: int, age: int) -> None:
        """Another limit: what it holds stays, as far as it fits."""
        self.pass_time(age)
        self.rate, self.burst = rate, burst
        self.most, self.least = min(self.most, burst), min(self.least, burst)


@dataclass(frozen=True, slots=True)
class Lifted:
    """A limit that was taken away: what it held, and when; after a restart by the wall clock."""

    most: int
    least: int
    age: int
    wall: int
    # At some start the wall clock said that the hour was over; the broker may have forgotten it
    # then, and no clock that is set back reminds it.
    may_be_forgotten: bool = False


@dataclass(slots=True)
class Buckets:
    """All limits: part of what survives a crash."""

    pails: dict[str, Pail] = field(default_factory=dict)
    lifted: dict[str, Lifted] = field(default_factory=dict)
    # What the wall clock was ahead of the clients' when this was written down.
    offset: int = 0

    def copy(self) -> Buckets:
        """The same again."""
        pails = {name: replace(pail) for name, pail in self.pails.items()}
        return Buckets(pails, dict(self.lifted), self.offset)

    def follow(self, name: str, config: Mapping[str, str], age: int) -> None:
        """The settings of a throttle key have changed."""
        rate = units(config.get(f"throttle:{name}:rate"))
        burst = units(config.get(f"throttle:{name}:burst"))
        pail = self.pails.get(name)
        if rate is None:
            if pail is not None:
                pail.pass_time(age)
                del self.pails[name]
                self.lifted[name] = Lifted(pail.most, pail.least, age, age + self.offset)
            return
        size = max(ONE, rate * 10**9) if burst is None else burst * 10**9
        if pail is None:
            self.pails[name] = self._define(name, rate, size, age)
        else:
            pail.change(rate, size, age)

    def _define(self, name: str, rate: int, size: int, age: int) -> Pail:
        old = self.lifted.pop(name, None)
        if old is None:
            return Pail(rate, size, size, size, age)
        if age - old.age >= _HOUR_NS:
            return Pail(rate, size, size, size, age)
        most = size if old.may_be_forgotten else min(old.most, size)
        return Pail(rate, size, most, min(old.least, size), age)

    def take(self, names: Iterable[str], age: int, what: object) -> None:
        """A delivery: never more than the limit allows."""
        for name in names:
            pail = self.pails.get(name)
            if pail is not None:
                pail.pass_time(age)
                require(pail.rate, "buckets", what, "took from", name, "at rate 0")
                pail.most -= ONE
                pail.least = max(0, pail.least - ONE)
                require(pail.most >= 0, "buckets", what, "overdrew", name, pail)

    def restart(self, age: int, offset: int) -> None:
        """The broker starts again. How far the wall clock was set it can't tell from time."""
        jump = offset - self.offset
        self.offset = offset
        for name, old in self.lifted.items():
            passed = max(0, age + offset - old.wall)
            forgotten = old.may_be_forgotten or passed >= _HOUR_NS
            self.lifted[name] = replace(old, age=age - passed, may_be_forgotten=forgotten)
        for pail in self.pails.values():
            pail.pass_time(age)
            pail.most = min(pail.burst, pail.most + max(0, jump) * pail.rate)

    def judge_levels(self, scheduler: Scheduler, now: int) -> None:
        """After a start: what the broker believes to hold is no more than it may."""
        buckets = scheduler._state.throttle.buckets
        require(buckets.keys() == self.pails.keys(), "levels", buckets.keys(), self.pails.keys())
        for name, pail in self.pails.items():
            held = buckets[name].exact_level(now) * 10**9
            require(held <= pail.most, "levels", name, "holds", held, "of at most", pail)
            pail.least = held

    def limited(self, msg: Msg) -> list[str]:
        """The limited ones of a message's throttle keys."""
        return [name for name in msg.spec.throttle_keys if name in self.pails]

    def could_go(self, msg: Msg, able: Iterable[Shelf], age: int) -> bool:
        """Whether every bucket of a message has a token that is not kept for another message.

        One may be kept for a message that waits for another bucket too.
        """
        for name in self.limited(msg):
            pail = self.pails[name]
            pail.pass_time(age)
            if not pail.rate or pail.least < ONE:
                return False
            if pail.least < 2 * ONE and self._may_be_kept(name, msg, able):
                return False
        return True

    def _may_be_kept(self, name: str, msg: Msg, able: Iterable[Shelf]) -> bool:
        return any(
            other is not msg and name in other.spec.throttle_keys and len(self.limited(other)) > 1
            for shelf in able
            for messages in shelf.ready.values()
            for other in messages.values()
        )


@dataclass(slots=True)
class _Taken:
    """A delivery of which it is not certain yet that it counts."""

    written: int
    age: int
    names: tuple[str, ...]
    token: int
    left: bool = False


class Takes:
    """The latest deliveries: a power cut undoes those that did not leave, and only those."""

    def __init__(self) -> None:
        self._takes: list[_Taken] = []
        self.count = 0

    def taken(self, written: int, age: int, names: tuple[str, ...], token: int) -> None:
        """A delivery was announced, in what was written last."""
        if names:
            self.count += 1
            self._takes.append(_Taken(written, age, names, token))

    def left(self, token: int) -> None:
        """It is on its way to its consumer."""
        for take in self._takes:
            if take.token == token:
                take.left = True

    def synced(self, written: int) -> None:
        """No power cut undoes what was written up to there."""
        self._takes = [take for take in self._takes if take.written > written]

    def survive(self, buckets: Buckets, written: int) -> None:
        """Of what was written, so much is left: what left the broker before counts all the same."""
        for take in self._takes:
            if take.written > written and take.left:
                buckets.take(take.names, take.age, f"a delivery that a power cut undid, {take}")
        self._takes.clear()


def units(value: str | None) -> int | None:
    """A setting in billionths, rounded down."""
    if not value:
        return None
    whole, _, fraction = value.partition(".")
    return int(whole or "0") * 10**9 + int((fraction + "0" * 9)[:9])
