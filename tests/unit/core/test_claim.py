"""Claims: the older one is ahead wherever two meet, so that somebody is always heard."""

from random import Random

from fila.core import claim as claims
from fila.core.bucket import Bucket
from fila.core.claim import Claim
from fila.core.key import Key
from fila.core.lane import Lane
from fila.core.line import Line
from fila.model import Spec
from tests.unit.core.lanes import Lanes


class Place:
    """Lanes with claims on the buckets of one queue."""

    def __init__(self) -> None:
        self.queue = Lanes().queue
        self.buckets: dict[str, Bucket] = {}

    def lane(self, *names: str) -> Lane:
        lane = Lane(Spec(throttle_keys=names), Key("k"))
        lane.limits = tuple(self.line(name) for name in names)
        return lane

    def line(self, name: str) -> Line:
        if name not in self.buckets:
            self.buckets[name] = Bucket(name, rate=1, burst=1, now_ns=0)
        bucket = self.buckets[name]
        return bucket.lines.setdefault(self.queue, Line(bucket, self.queue))

    def staked(self, *names: str) -> Claim:
        claim = claims.stake(self.lane(*names))
        assert claim is not None
        return claim


def test_a_lane_with_one_bucket_needs_no_claim() -> None:
    assert claims.stake(Place().lane("p")) is None


def test_a_claim_is_staked_once() -> None:
    lane = Place().lane("p", "q")
    claims.stake(lane)

    assert claims.stake(lane) is None
    assert lane.claim is not None


def test_the_first_claim_is_heard_and_the_next_one_when_it_is_gone() -> None:
    place = Place()
    first, second = place.staked("p", "q"), place.staked("q", "r")
    assert [first.is_heard, second.is_heard] == [True, False]

    claims.drop(first.lane)

    assert second.is_heard
    assert first.lane.claim is None


def test_claims_that_do_not_meet_are_heard_at_once() -> None:
    place = Place()

    assert place.staked("p", "q").is_heard
    assert place.staked("r", "s").is_heard


def test_the_older_of_two_claims_is_ahead_at_every_bucket_whatever_their_order() -> None:
    place = Place()
    first, second = place.staked("p", "q"), place.staked("q", "p")

    assert [bucket.first_claim for bucket in place.buckets.values()] == [first, first]
    assert not second.is_heard


def test_a_claim_that_goes_from_the_middle_moves_nobody_ahead() -> None:
    place = Place()
    first, second, third = (place.staked("p", "q") for _ in range(3))

    claims.drop(second.lane)

    assert first.is_heard
    assert not third.is_heard
    assert first.has_others_behind


def test_of_any_claims_the_oldest_is_always_heard() -> None:
    rng = Random(7)
    place = Place()
    waiting: list[Claim] = []

    for _ in range(2000):
        if waiting and rng.random() < 0.5:
            claims.drop(waiting.pop(rng.randrange(len(waiting))).lane)
        else:
            waiting.append(place.staked(*rng.sample("pqrstu", rng.randint(2, 4))))
        if waiting:
            assert waiting[0].is_heard
        for claim in waiting:
            firsts = sum(bucket.first_claim is claim for bucket in claim.buckets)
            assert claim.first_in == firsts
