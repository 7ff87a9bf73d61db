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
from fila.model import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fila.core.claim import Claim
    from fila.core.lane import Lane
    from fila.core.queue import Queue

# So many in one pass, which must not hold the loop.
_BUCKETS_DUE_MAX = 1000
_GRANTS_MAX = 2000
# A limit that was taken away and comes back within this time finds its old level.
KEEP_NS = 3600 * NS_PER_S
# A claim whose queue takes nothing for so long is dropped, if others wait behind it.
_PATIENCE_NS = NS_PER_S
# How far the clocks may drift apart before levels are written down with the new wall time.
_DRIFT_NS = 5 * NS_PER_MS


@dataclass(slots=True)
class _Retired:
    nano_tokens: int
    until_ns: int


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
        # Claims that are heard, and whether their queues could take something when last looked at.
        self._heard: dict[Claim, bool] = {}
        self._now_ns = 0
        self._wall_ns = 0
        # What lies between the clocks, for the levels that are written down.
        self._offset_ns: int | None = None

    def begin_pass(self, *, now_ns: int, wall_ns: int) -> None:
        """What time it is.

        Where the wall clock was set forward, a restart would take that for time in which buckets
        have filled: so their levels are written down again, with the time as it is now.
        """
        self._now_ns = now_ns
        self._wall_ns = wall_ns
        offset_ns = wall_ns - now_ns
        if self._offset_ns is None or abs(offset_ns - self._offset_ns) > _DRIFT_NS:
            self._offset_ns = offset_ns
            self.drained.update(
                (bucket, None) for bucket in self.buckets.values() if not bucket.is_full(now_ns)
            )

    # Limits

    def define(self, name: str, *, rate: float, burst: float) -> None:
        """Limit a throttle key, or change its limit."""
        bucket = self.buckets.get(name)
        if bucket is None:
            bucket = Bucket(name, rate=rate, burst=burst, now_ns=self._now_ns)
            self.buckets[name] = bucket
            self.version += 1
            retired = self._retired.pop(name, None)
            if retired is not None and retired.until_ns > self._now_ns:
                bucket.restore(retired.nano_tokens, self._now_ns)
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
        self._retired[name] = _Retired(bucket.exact_level(self._now_ns), self._now_ns + KEEP_NS)
        self.drained[bucket] = None
        while bucket.first_claim is not None:
            self._drop_claim(bucket.first_claim.lane)
        bucket.lift()
        # At once: what comes now must not overtake them.
        self._grant(bucket, _GRANTS_MAX)

    def restore(self, level: BucketLevel) -> None:
        """Take up a level from before a restart."""
        elapsed_ns = max(0, self._wall_ns - level.at_wall_ns)
        bucket = self.buckets.get(level.name)
        if bucket is not None:
            # The clocks may have drifted apart, either way, and nobody has written that down.
            elapsed_ns = max(0, elapsed_ns - 2 * _DRIFT_NS)
            bucket.restore(bucket.refilled(level.nano_tokens, elapsed_ns), self._now_ns)
        else:
            until_ns = self._now_ns + KEEP_NS - elapsed_ns
            self._retired[level.name] = _Retired(level.nano_tokens, until_ns)

    def forget_retired(self) -> list[str]:
        """Forget limits that were taken away long ago; which those are."""
        old = [name for name, retired in self._retired.items() if retired.until_ns <= self._now_ns]
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

    def admit(self, queue: Queue, lane: Lane, wanted: int) -> int:
        """Take a token for each of so many messages from each of a lane's buckets; how many.

        The lane is the next of a key that is in its turn. If a bucket is empty, none is taken from
        any, and the lane waits. Several are taken only where nobody stands in line.
        """
        # Once for each message delivered: worth a few calls less.
        if lane.limits_version != self.version:
            self._look_up_limits(queue, lane)
        now_ns = self._now_ns
        for line in lane.limits:
            # `Bucket.level`, without the call.
            bucket = line.bucket
            now = now_ns * bucket.per_ns
            full_at = bucket.full_at
            level = bucket.cap - full_at + now if full_at > now else bucket.cap
            if level < ONE or line.waiters or bucket.claims:
                return int(self._admit_in_turn(queue, lane))
            if wanted > 1:
                wanted = min(wanted, level // ONE)
        units = wanted * ONE
        for line in lane.limits:
            # `Bucket.take`, for all of them.
            bucket = line.bucket
            now = now_ns * bucket.per_ns
            full_at = bucket.full_at
            full_at = bucket.full_at = (full_at if full_at > now else now) + units
            if full_at > bucket.noted_at:
                self.drained[bucket] = None
        return wanted

    def give_back(self, throttle_keys: Iterable[str]) -> None:
        """A message for which tokens were taken in this pass is not delivered after all."""
        for name in throttle_keys:
            bucket = self.buckets.get(name)
            if bucket is not None:
                bucket.give_back()
                self._schedule(bucket)

    def took(self, lane: Lane, place: int, count: int) -> None:
        """Messages left the front or the middle of a lane that stands in line."""
        waiter = lane.waiter
        assert waiter is not None
        waiter.count(-count)
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
        waiter.count(count)
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
        left = _GRANTS_MAX
        for bucket in self._timers.take_due(self._now_ns, _BUCKETS_DUE_MAX):
            bucket.due_ns = None
            self._call_claimant(bucket)
            left -= self._grant(bucket, left)

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

    def _admit_in_turn(self, queue: Queue, lane: Lane) -> bool:
        """The same for one message, where somebody waits or a bucket is empty."""
        lacking = [line for line in lane.limits if not line.serves(lane, self._now_ns)]
        if lacking:
            self.aside_count += 1
            self._put_aside(queue, lane, lacking)
            return False
        cost = lane.spec.cost
        for line in lane.limits:
            if line.bucket.take(self._now_ns):
                self.drained[line.bucket] = None
            waiter = line.waiters.get(lane.key)
            if waiter is not None:
                line.spend(waiter, cost)
                if waiter is not lane.waiter:
                    line.settle(waiter)
                    self._schedule(line.bucket)
        if lane.claim is not None:
            self._drop_claim(lane)
        return True

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
            self._stake_claim(lane)
            self._schedule(waiter.line.bucket)
        if lane.claim is not None:
            lane.claim.called_ns = None
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

    def _grant(self, bucket: Bucket, limit: int) -> int:
        """Grant a bucket's tokens to those whose turn it is, so many at most; how many were."""
        left = limit
        room = bucket.tokens(self._now_ns) - claims.kept(bucket, None, self._now_ns)
        for line in bucket.lines.values():
            if len(line.ring):
                given = line.grant(min(room - line.granted, left))
                if given:
                    left -= given
                    self.called[line.queue] = None
        self._schedule(bucket)
        return limit - left

    # Claims

    def _call_claimant(self, bucket: Bucket) -> None:
        """Let the lane deliver that has first call, once all its tokens are there."""
        claim = bucket.first_claim
        if claim is None or not claim.is_heard:
            return
        if claim.called_ns is not None:
            self._lose_patience(claim)
        elif claim.ready_in_ns(self._now_ns) == 0:
            claim.called_ns = self._now_ns
            if claim.lane.waiter is not None:
                self._free(claim.queue, claim.lane)
            self.called[claim.queue] = None

    def _lose_patience(self, claim: Claim) -> None:
        """End a claim that makes others wait while its queue takes nothing."""
        assert claim.called_ns is not None
        if claim.called_ns + _PATIENCE_NS <= self._now_ns and claim.has_others_behind:
            self._drop_claim(claim.lane)

    def _stake_claim(self, lane: Lane) -> None:
        claim = claims.stake(lane)
        if claim is not None and claim.is_heard:
            self._heard[claim] = claim.queue.can_take

    def _drop_claim(self, lane: Lane) -> None:
        if lane.claim is None:
            return
        self._heard.pop(lane.claim, None)
        for bucket in claims.drop(lane):
            self._schedule(bucket)
            following = bucket.first_claim
            if following is not None and following.is_heard:
                self._heard[following] = following.queue.can_take

    def _look_at_heard(self) -> None:
        """Nothing is kept any more for claims whose queues have come to take nothing."""
        for claim, could_take in self._heard.items():
            if could_take != claim.queue.can_take:
                self._heard[claim] = not could_take
                self._unsettled.update(dict.fromkeys(claim.buckets))

    # Timers

    def _schedule(self, bucket: Bucket) -> None:
        """When a bucket is due may have changed; worked out once, at the end of the pass."""
        self._unsettled[bucket] = None

    def _settle_timers(self) -> None:
        """Look at buckets again when that is of use, and not before."""
        self._look_at_heard()
        while self._unsettled:
            bucket, _ = self._unsettled.popitem()
            if self.buckets.get(bucket.name) is not bucket:
                self._close_lines(bucket)
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
            wanted = min(granted) + 1 + claims.kept(bucket, None, self._now_ns)
            waits.append(bucket.ready_in_ns(self._now_ns, wanted))
        claim = bucket.first_claim
        if claim is not None and claim.is_heard:
            if claim.called_ns is None:
                waits.append(claim.ready_in_ns(self._now_ns))
            elif claim.has_others_behind:
                waits.append(claim.called_ns + _PATIENCE_NS - self._now_ns)
        known = [wait for wait in waits if wait is not None]
        return self._now_ns + min(known) if known else None

    def _close_lines(self, bucket: Bucket) -> None:
        """Forget the lines of a limit that was taken away, once nobody waits in them."""
        for line in [line for line in bucket.lines.values() if not line.waiters]:
            del bucket.lines[line.queue]
            line.queue.lines.pop(line, None)
