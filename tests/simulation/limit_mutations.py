"""Planted bugs of limits; `mutations` says what the others are, and who must notice which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from fila.core.bucket import Bucket
from fila.core.claim import Claim
from fila.core.effects import Delivery, Mutation, PutLevels
from fila.core.gate import Gate
from fila.core.lane import Lane
from fila.core.line import Line
from fila.core.queue import Queue
from fila.core.throttle import Throttle
from tests.simulation.planted import drop_mutations


@contextmanager
def levels_not_written() -> Iterator[None]:
    """What buckets hold is written down nowhere: a restart gives the tokens back."""

    def unwanted(mutation: Mutation) -> bool:
        return isinstance(mutation, PutLevels)

    with drop_mutations(unwanted):
        yield


@contextmanager
def levels_not_awaited() -> Iterator[None]:
    """What a bucket gave for leaves before that is on disk: a power cut gives the tokens back."""
    original = Gate._must_wait

    def must_wait(self: Gate, delivery: Delivery) -> bool:
        levels, self._levels = self._levels, 0
        try:
            return original(self, delivery)
        finally:
            self._levels = levels

    with patch.object(Gate, "_must_wait", must_wait):
        yield


@contextmanager
def jump_fills_buckets() -> Iterator[None]:
    """Nobody writes down that the wall clock was set."""

    def begin_pass(self: Throttle, *, now_ns: int, wall_ns: int) -> None:
        self._now_ns, self._wall_ns = now_ns, wall_ns

    with patch.object(Throttle, "begin_pass", begin_pass):
        yield


@contextmanager
def refill_rounded_up() -> Iterator[None]:
    """A bucket gains a thousandth of a token a second more than its rate says."""
    original = Bucket._set_limit

    def set_limit(self: Bucket, rate: float, burst: float) -> None:
        original(self, rate, burst)
        self.per_ns += 10**6 if rate else 0

    with patch.object(Bucket, "_set_limit", set_limit):
        yield


@contextmanager
def old_level_forgotten() -> Iterator[None]:
    """A limit that is taken away and set again gives a full bucket."""
    original = Throttle.remove

    def remove(self: Throttle, name: str) -> None:
        original(self, name)
        self._retired.pop(name, None)

    with patch.object(Throttle, "remove", remove):
        yield


@contextmanager
def rate_0_lets_go() -> Iterator[None]:
    """A bucket that was stopped goes on giving what it holds."""

    original = Bucket._set_limit

    def set_limit(self: Bucket, rate: float, burst: float) -> None:
        original(self, rate, burst)
        self.cap = self._size

    with patch.object(Bucket, "_set_limit", set_limit):
        yield


@contextmanager
def taken_for_nothing() -> Iterator[None]:
    """A message that misses one bucket's token costs those of its other buckets."""
    original = Throttle._put_aside

    def put_aside(self: Throttle, queue: Queue, lane: Lane, lacking: list[Line]) -> None:
        for line in lane.limits:
            if line not in lacking and line.bucket.take(self._now_ns):
                self.drained[line.bucket] = None
        original(self, queue, lane, lacking)

    with patch.object(Throttle, "_put_aside", put_aside):
        yield


@contextmanager
def lost_wake() -> Iterator[None]:
    """Every fifth time a bucket is not looked at again."""
    original = Throttle._due_ns
    count = 0

    def due_ns(self: Throttle, bucket: Bucket) -> int | None:
        nonlocal count
        count += 1
        return original(self, bucket) if count % 5 else None

    with patch.object(Throttle, "_due_ns", due_ns):
        yield


@contextmanager
def change_not_noticed() -> Iterator[None]:
    """Who waits for a token is not told that the rate has changed."""
    original = Throttle.define

    def define(self: Throttle, name: str, *, rate: float, burst: float) -> None:
        unsettled = dict(self._unsettled)
        original(self, name, rate=rate, burst=burst)
        self._unsettled = unsettled

    with patch.object(Throttle, "define", define):
        yield


@contextmanager
def head_of_line_blocks() -> Iterator[None]:
    """What a limit holds back holds back all of its key that has a limit."""
    original = Throttle.admit

    def admit(self: Throttle, queue: Queue, lane: Lane, wanted: int) -> int:
        others = lane.key.waiters.items()
        blocked = [line for line, waiter in others if not waiter.grants]
        if lane.limits and any(line not in lane.limits for line in blocked):
            self._put_aside(queue, lane, list(lane.limits))
            return 0
        return original(self, queue, lane, wanted)

    with patch.object(Throttle, "admit", admit):
        yield


@contextmanager
def tokens_in_order_of_arrival() -> Iterator[None]:
    """Who came first to a scarce bucket has all its tokens."""

    def grant(self: Line, tokens: int) -> int:
        given = 0
        for waiter in list(self.waiters.values()):
            while given < tokens and waiter.grants < waiter.ready:
                waiter.grants += 1
                self.granted += 1
                given += 1
                self.settle(waiter)
        return given

    with patch.object(Line, "grant", grant):
        yield


@contextmanager
def claim_never_heard() -> Iterator[None]:
    """Nothing is kept for a lane that needs several buckets."""
    with patch.object(Claim, "is_heard", False):
        yield
