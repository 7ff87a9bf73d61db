"""First call on a token of each of several buckets, for a lane that missed one of them.

A lane that needs several buckets could wait for ever beside lanes that need one: whenever one
bucket has a token, another's has just gone. So a lane that was granted a token and found another
bucket empty stakes a claim. Claims stand in line at each bucket, and join those lines in order of
the buckets' names, so that no two ever wait for each other. The first one in all its lines is
heard: just before all its tokens are together, one token of each bucket is kept for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fila.core.bucket import Bucket
    from fila.core.lane import Lane
    from fila.core.queue import Queue


class Claim:
    """One lane's claim."""

    __slots__ = ("buckets", "called", "first_in", "lane", "queue")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.queue: Queue = lane.limits[0].queue
        self.buckets: list[Bucket] = sorted(
            (line.bucket for line in lane.limits), key=lambda bucket: bucket.name
        )
        # In how many of the buckets' lines it has come to be the first.
        self.first_in = 0
        # Whether its lane was told to deliver.
        self.called = False

    @property
    def is_heard(self) -> bool:
        """Whether it is the first in all its lines."""
        return self.first_in == len(self.buckets)

    def ready_in_ns(self, now_ns: int) -> int | None:
        """How long until each bucket has a token; None for never, as things are."""
        longest = 0
        for bucket in self.buckets:
            wait_ns = bucket.ready_in_ns(now_ns)
            if wait_ns is None:
                return None
            longest = max(longest, wait_ns)
        return longest


def stake(lane: Lane) -> None:
    """Let a lane have a claim on its buckets, behind those that are there."""
    if lane.claim is None and len(lane.limits) > 1:
        claim = lane.claim = Claim(lane)
        claim.buckets[0].claims.append(claim)
        _advance(claim)


def drop(lane: Lane) -> list[Bucket]:
    """End a lane's claim, if it has one; the buckets that may have tokens for others now."""
    claim = lane.claim
    if claim is None:
        return []
    lane.claim = None
    for bucket in claim.buckets[: claim.first_in + 1]:
        was_first = bucket.claims[0] is claim
        bucket.claims.remove(claim)
        if was_first and bucket.claims:
            _advance(bucket.claims[0])
    return claim.buckets


def _advance(claim: Claim) -> None:
    """Go on to the next line for as long as it is the first in the last one."""
    buckets = claim.buckets
    while claim.first_in < len(buckets) and buckets[claim.first_in].claims[0] is claim:
        claim.first_in += 1
        if claim.first_in < len(buckets):
            buckets[claim.first_in].claims.append(claim)
