"""Seeded worlds against the real core, gate, records and recovery; proof that they notice bugs."""

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tests import proof
from tests.simulation.mutations import MUTATIONS
from tests.simulation.planted import Planted
from tests.simulation.shapes import SHAPES
from tests.simulation.story import Story, figures, tell

ROOT = Path(__file__).resolve().parents[2]
SEEDS = proof.length(reduced=300, full=3000)
# Worlds in one test: few at a time for a test run, all at once, in several processes, for a proof.
_CHUNK = proof.length(reduced=25, full=SEEDS)
# A planted bug must show within as many worlds as a test run has, however few this run is for.
_SEEDS_TO_NOTICE = 300


@pytest.mark.timeout(proof.length(reduced=300, full=7200))
@pytest.mark.proof
@pytest.mark.parametrize("first", range(0, SEEDS, _CHUNK))
def test_the_broker_keeps_its_promises_in_every_world(first: int) -> None:
    stories = _tell_all(range(first, min(first + _CHUNK, SEEDS)))

    failed = [story for story in stories if story.failure]
    assert not failed, "\n\n".join(story.report() for story in failed)
    proof.record("simulation", **figures(stories))


def _tell_all(seeds: range) -> list[Story]:
    if not proof.FULL:
        return [tell(seed) for seed in seeds]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(tell, seeds, chunksize=4))


@pytest.mark.parametrize("planted", MUTATIONS, ids=lambda planted: planted.name)
def test_a_planted_bug_is_noticed_by_the_checker_whose_promise_it_breaks(planted: Planted) -> None:
    with planted.plant():
        noticed = _first_noticed_by(planted.checker)

    assert noticed is not None, f"{planted.checker} noticed nothing in {_SEEDS_TO_NOTICE} worlds"
    assert f"make sim SEED={noticed.seed}" in noticed.report()


def _first_noticed_by(checker: str) -> Story | None:
    for seed in range(_SEEDS_TO_NOTICE):
        story = tell(seed)
        if story.checker == checker:
            return story
    return None


@pytest.mark.parametrize("seed", range(len(SHAPES)))
def test_one_seed_tells_one_story(seed: int) -> None:
    assert tell(seed) == tell(seed)


def test_a_seed_tells_the_same_story_in_another_process_with_other_hashes() -> None:
    seed = len(SHAPES) + 3
    told = {_replayed_hash(seed, hash_seed) for hash_seed in ("1", "2")}

    assert told == {tell(seed).trace_hash}


def _replayed_hash(seed: int, hash_seed: str) -> str:
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    shown = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seed", str(seed)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return shown.stdout.splitlines()[-1].removeprefix("trace ")


def test_a_failure_is_replayed_exactly() -> None:
    planted = MUTATIONS[0]
    with planted.plant():
        first, second = tell(0), tell(0)

    assert first.failure
    assert first == second


def test_the_worlds_go_through_what_they_are_meant_to() -> None:
    stories = [tell(seed) for seed in range(2 * len(SHAPES))]

    assert {story.shape for story in stories} == {shape.name for shape in SHAPES}
    assert all(story.delivered for story in stories)
    assert sum(story.crashes for story in stories) > 50
    # Shares are judged inside backlogs, not over what was drained.
    assert all(story.judged > 500 for story in stories if story.shape == "backlog")
    # Tokens as well, and waits for several buckets.
    assert all(story.scarce > 100 for story in stories if story.shape == "scarce")
    assert all(story.scarce > 10 for story in stories if story.shape == "contended")
    assert all(story.tokens for story in stories if story.shape.startswith("limits"))
