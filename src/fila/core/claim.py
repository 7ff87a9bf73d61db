"""First call on a token of each of several buckets, for a lane that missed one of them.

A lane that needs several buckets could wait for ever beside lanes that need one: whenever one
bucket has a token, another's has just gone. So a lane that was granted a token and found another
bucket empty stakes a claim: it joins the claims at all its buckets in one step. Of two claims that
meet anywhere the older one is ahead everywhere, so no two ever wait for each other, and the oldest
of all is the first at each of its buckets. Such a claim is heard: a token is kept for it wherever
giving that token away would make it wait longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fila.core.bucket import Bucket
    from fila.core.lane import Lane
    from fila.core.queue import Queue


class Claim:
    """One lane's claim."""

    __slots__ = ("buckets", "called_ns", "first_in", "lane", "queue")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.queue: Queue = lane.limits[0].queue
        self.buckets: list[Bucket] = [line.bucket for line in lane.limits]
        # At how many of its buckets it has come to be the first.
        self.first_in = 0
        # When its lane was told to deliver.
        self.called_ns: int | None = None

    @property
    def is_heard(self) -> bool:
        """Whether it is the first at all its buckets."""
        return self.first_in == len(self.buckets)

    @property
    def has_others_behind(self) -> bool:
        """Whether others wait for it at any of its buckets."""
        return any(len(bucket.claims) > 1 for bucket in self.buckets)

    def ready_in_ns(self, now_ns: int) -> int | None:
        """How long until each bucket has a token; None for never, as things are."""
        longest = 0
        for bucket in self.buckets:
            wait_ns = bucket.ready_in_ns(now_ns)
            if wait_ns is None:
                return None
            longest = max(longest, wait_ns)
        return longest


def stake(lane: Lane) -> Claim | None:
    """Let a lane have a claim on its buckets, behind those that are there; the new claim."""
    if lane.claim is not None or len(lane.limits) < 2:
        return None
    claim = lane.claim = Claim(lane)
    for bucket in claim.buckets:
        claim.first_in += not bucket.claims
        bucket.claims[claim] = None
    return claim


def drop(lane: Lane) -> list[Bucket]:
    """End a lane's claim, if it has one; the buckets that may have tokens for others now."""
    claim = lane.claim
    if claim is None:
        return []
    lane.claim = None
    for bucket in claim.buckets:
        was_first = bucket.first_claim is claim
        del bucket.claims[claim]
        following = bucket.first_claim
        if was_first and following is not None:
            following.first_in += 1
    return claim.buckets


def kept(bucket: Bucket, lane: Lane | None, now_ns: int) -> int:
    """How many tokens of a bucket are kept for a claim that is not this lane's."""
    claim = bucket.first_claim
    if claim is None or claim.lane is lane or not claim.is_heard or not claim.queue.can_take:
        return 0
    ready_in_ns = claim.ready_in_ns(now_ns)
    # Where a token given away now is made up for by then, it would be kept for nothing.
    return int(ready_in_ns is not None and ready_in_ns < bucket.regain_ns(now_ns))
