"""Token buckets: which lanes may deliver, which wait in line, and who is called when a token comes.

A lane whose buckets have tokens delivers as if there were none. One that finds a bucket empty goes
into that bucket's line and costs nothing until its turn: nobody looks for it, nobody polls. A
bucket with a line is due when its next token comes, and calls no more than it has tokens for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fila.core import claim as claims
from fila.core.bucket import ONE, Bucket
from fila.core.line import Line
from fila.core.records import BucketLevel
from fila.core.timers import Timers
from fila.model import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fila.core.lane import Lane
    from fila.core.queue import Queue

# So many in one pass, which must not hold the loop.
_BUCKETS_DUE_MAX = 1000
_GRANTS_MAX = 1000
# A limit that was taken away and comes back within this time finds its old level.
KEEP_NS = 3600 * NS_PER_S


@dataclass(slots=True)
class _Retired:
    nano_tokens: int
    until_wall_ns: int


class Throttle:
    """All buckets."""

    def __init__(self) -> None:
        self.buckets: dict[str, Bucket] = {}
        # Of what is limited; lanes look their limits up again when it changes.
        self.version = 1
        # What the pass in progress has to write down.
        self.drained: dict[Bucket, None] = {}
        # How often a lane was found to have to wait.
        self.aside_count = 0
        # Queues where something was called since this was last looked at.
        self.called: dict[Queue, None] = {}
        self._timers: Timers[Bucket] = Timers()
        self._unsettled: dict[Bucket, None] = {}
        self._retired: dict[str, _Retired] = {}
        self._now_ns = 0
        self._wall_ns = 0

    def begin_pass(self, *, now_ns: int, wall_ns: int) -> None:
        """What time it is."""
        self._now_ns = now_ns
        self._wall_ns = wall_ns

    # Limits

    def define(self, name: str, *, rate: float, burst: float) -> None:
        """Limit a throttle key, or change its limit."""
        bucket = self.buckets.get(name)
        if bucket is None:
            bucket = Bucket(name, rate=rate, burst=burst, now_ns=self._now_ns)
            self.buckets[name] = bucket
            self.version += 1
            retired = self._retired.pop(name, None)
            if retired is not None and retired.until_wall_ns > self._wall_ns:
                bucket.restore(retired.nano_tokens)
        else:
            bucket.configure(rate=rate, burst=burst, now_ns=self._now_ns)
        self.drained[bucket] = None
        self._schedule(bucket)

    def remove(self, name: str) -> None:
        """Take a limit away; who waits for it is let go a few at a time."""
        bucket = self.buckets.pop(name, None)
        if bucket is None:
            return
        self.version += 1
        self._retired[name] = _Retired(bucket.exact_level(self._now_ns), self._wall_ns + KEEP_NS)
        self.drained[bucket] = None
        for claim in list(bucket.claims):
            self._drop_claim(claim.lane)
        bucket.lift()
        self._schedule(bucket)

    def restore(self, level: BucketLevel) -> None:
        """Take up a level from before a restart."""
        elapsed_ns = max(0, self._wall_ns - level.at_wall_ns)
        bucket = self.buckets.get(level.name)
        if bucket is not None:
            bucket.restore(bucket.refilled(level.nano_tokens, elapsed_ns))
        else:
            self._retired[level.name] = _Retired(level.nano_tokens, level.at_wall_ns + KEEP_NS)

    def forget_retired(self) -> list[str]:
        """Forget limits that were taken away long ago; which those are."""
        old = [
            name
            for name, retired in self._retired.items()
            if retired.until_wall_ns <= self._wall_ns
        ]
        for name in old:
            del self._retired[name]
        return old

    @property
    def has_retired(self) -> bool:
        """Whether there is something to forget one day."""
        return bool(self._retired)

    def end_pass(self) -> list[BucketLevel]:
        """The levels that the pass has to write down."""
        self._settle_timers()
        written = []
        for bucket in self.drained:
            retired = self._retired.get(bucket.name)
            if self.buckets.get(bucket.name) is bucket:
                nano_tokens = bucket.note_level(self._now_ns)
            elif retired is not None:
                nano_tokens = retired.nano_tokens
            else:
                continue
            written.append(
                BucketLevel(name=bucket.name, nano_tokens=nano_tokens, at_wall_ns=self._wall_ns)
            )
        self.drained.clear()
        return written

    # Deliveries

    def admit(self, queue: Queue, lane: Lane) -> bool:
        """Take a token from each of a lane's buckets; from none, and let it wait, if one is empty.

        The lane is the next of a key that is in its turn.
        """
        if lane.limits_version != self.version:
            self._look_up_limits(queue, lane)
        lacking = [line for line in lane.limits if not self._serves(line, lane)]
        if lacking:
            self.aside_count += 1
            self._put_aside(queue, lane, lacking)
            return False
        for line in lane.limits:
            if line.bucket.take():
                self.drained[line.bucket] = None
        if lane.waiter is not None:
            lane.waiter.line.spend(lane.waiter)
        if lane.claim is not None:
            self._drop_claim(lane)
        return True

    def took(self, lane: Lane, place: int, count: int) -> None:
        """Messages left the front or the middle of a lane that stands in line."""
        waiter = lane.waiter
        assert waiter is not None
        waiter.ready -= count
        if len(lane.fifo):
            waiter.front_changed(lane)
        else:
            waiter.remove(lane)
            self._drop_claim(lane)
        waiter.line.settle(waiter, place)
        self._schedule(waiter.line.bucket)

    def added(self, lane: Lane, count: int, first_before: int) -> None:
        """Messages joined a lane that stands in line."""
        waiter = lane.waiter
        assert waiter is not None
        waiter.ready += count
        if lane.fifo.peek() != first_before:
            waiter.front_changed(lane)
            waiter.line.settle(waiter, first_before=0)
        else:
            waiter.line.settle(waiter)
        self._schedule(waiter.line.bucket)

    def gone(self, lane: Lane) -> None:
        """A lane that stood in no line is empty."""
        if lane.claim is not None:
            self._drop_claim(lane)

    def forget_queue(self, queue: Queue, lanes: Iterable[Lane]) -> None:
        """A queue has nothing that waits any more."""
        for lane in lanes:
            self.gone(lane)
        for line in queue.lines:
            line.bucket.lines.pop(queue, None)
        queue.lines.clear()
        self.called.pop(queue, None)

    # Time

    def wake(self) -> None:
        """Call those for whom a token has come."""
        for bucket in self._timers.take_due(self._now_ns, _BUCKETS_DUE_MAX):
            bucket.due_ns = None
            self._call_claimant(bucket)
            room = bucket.tokens(self._now_ns) - self._kept(bucket, None)
            for line in list(bucket.lines.values()):
                if len(line.ring) and line.grant(min(room - line.granted, _GRANTS_MAX)):
                    self.called[line.queue] = None
                elif not line.waiters and self.buckets.get(bucket.name) is not bucket:
                    self._close_line(line)
            self._schedule(bucket)

    def next_due_ns(self) -> int | None:
        """When there is something to do."""
        return self._timers.next_due_ns()

    def _look_up_limits(self, queue: Queue, lane: Lane) -> None:
        """Find the buckets of a lane's throttle keys as they are now."""
        self._drop_claim(lane)
        names = lane.spec.throttle_keys
        buckets = [self.buckets[name] for name in names if name in self.buckets]
        lane.limits = tuple([self._line_at(bucket, queue) for bucket in buckets])
        lane.limits_version = self.version
        if lane.waiter is not None and lane.waiter.line not in lane.limits:
            self._free(queue, lane)

    def _line_at(self, bucket: Bucket, queue: Queue) -> Line:
        line = bucket.lines.get(queue)
        if line is None:
            line = bucket.lines[queue] = Line(bucket, queue)
            queue.lines[line] = None
        return line

    def _close_line(self, line: Line) -> None:
        line.bucket.lines.pop(line.queue, None)
        line.queue.lines.pop(line, None)

    def _serves(self, line: Line, lane: Lane) -> bool:
        """Whether a bucket has a token that is this lane's to take."""
        bucket = line.bucket
        level = bucket.level(self._now_ns)
        if level < ONE:
            return False
        if bucket.claims:
            claim = bucket.claims[0]
            if claim is lane.claim and claim.is_heard:
                return True
            level -= ONE * self._kept(bucket, lane)
        if lane.waiter is not None and lane.waiter.line is line:
            return level >= ONE
        # Nobody is overtaken: neither who waits, nor who was called and has not delivered yet.
        return not len(line.ring) and level >= ONE * (1 + line.granted)

    def _put_aside(self, queue: Queue, lane: Lane, lacking: list[Line]) -> None:
        """Let a lane wait where it takes longest."""
        waiter = lane.waiter
        if waiter is not None and waiter.line in lacking:
            # Another queue was quicker. The turn is kept for the next token.
            waiter.line.withdraw(waiter)
            self._schedule(waiter.line.bucket)
            return
        line = max(lacking, key=self._wait_ns)
        if waiter is None:
            line.stand(lane)
            queue.close_source(lane.key, lane)
        else:
            # It was its turn here, and in vain: from now on it has a claim.
            waiter.line.leave(lane)
            line.stand(lane)
            claims.stake(lane)
            self._schedule(waiter.line.bucket)
        if lane.claim is not None:
            lane.claim.called = False
            for bucket in lane.claim.buckets:
                self._schedule(bucket)
        else:
            self._schedule(line.bucket)

    def _wait_ns(self, line: Line) -> int:
        wait_ns = line.bucket.ready_in_ns(self._now_ns)
        return KEEP_NS if wait_ns is None else wait_ns

    def _free(self, queue: Queue, lane: Lane) -> None:
        """Let a lane deliver by itself that stood in a line."""
        waiter = lane.waiter
        assert waiter is not None
        before = waiter.first_place()
        waiter.remove(lane)
        # In this order, so that its key is not without a source in between.
        queue.open_source(lane.key, lane)
        waiter.line.settle(waiter, before)
        self._schedule(waiter.line.bucket)

    # Claims

    def _kept(self, bucket: Bucket, lane: Lane | None) -> int:
        """How many tokens of a bucket are kept for a claim that is not this lane's."""
        while bucket.claims:
            claim = bucket.claims[0]
            if claim.lane is lane or not claim.is_heard:
                return 0
            ready_in_ns = claim.ready_in_ns(self._now_ns)
            if ready_in_ns is not None and claim.queue.can_take:
                # Sooner than that, the bucket's next token will do.
                return int(ready_in_ns <= bucket.interval_ns)
            self._drop_claim(claim.lane)
        return 0

    def _call_claimant(self, bucket: Bucket) -> None:
        claim = bucket.claims[0] if bucket.claims else None
        if claim is None or not claim.is_heard or claim.called or not claim.queue.can_take:
            return
        if claim.ready_in_ns(self._now_ns) == 0:
            claim.called = True
            if claim.lane.waiter is not None:
                self._free(claim.queue, claim.lane)
            self.called[claim.queue] = None

    def _drop_claim(self, lane: Lane) -> None:
        for bucket in claims.drop(lane):
            self._schedule(bucket)

    # Timers

    def _schedule(self, bucket: Bucket) -> None:
        """When a bucket is due may have changed; worked out once, at the end of the pass."""
        self._unsettled[bucket] = None

    def _settle_timers(self) -> None:
        """Look at buckets again when that is of use, and not before."""
        while self._unsettled:
            bucket, _ = self._unsettled.popitem()
            due_ns = self._due_ns(bucket)
            if due_ns == bucket.due_ns:
                continue
            if bucket.due_ns is not None:
                self._timers.cancel(bucket, bucket.due_ns)
            bucket.due_ns = due_ns
            if due_ns is not None:
                self._timers.set(bucket, due_ns)

    def _due_ns(self, bucket: Bucket) -> int | None:
        waits: list[int | None] = []
        granted = [line.granted for line in bucket.lines.values() if len(line.ring)]
        if granted:
            wanted = min(granted) + 1 + self._kept(bucket, None)
            waits.append(bucket.ready_in_ns(self._now_ns, wanted))
        claim = bucket.claims[0] if bucket.claims else None
        if claim is not None and claim.is_heard and not claim.called:
            waits.append(claim.ready_in_ns(self._now_ns))
        known = [wait for wait in waits if wait is not None]
        return self._now_ns + min(known) if known else None
