"""The simulation from the command line: `make sim SEEDS=1000`, `make sim SEED=17`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext

from tests.simulation.mutations import MUTATIONS
from tests.simulation.story import Story, figures, tell
from tests.simulation.world import World


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="one world, with its whole trace")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--plant", choices=[each.name for each in MUTATIONS], help="a known bug")
    return parser.parse_args()


def _planted(name: str | None) -> AbstractContextManager[None]:
    found = [each for each in MUTATIONS if each.name == name]
    return found[0].plant() if found else nullcontext()


def _replay(seed: int) -> int:
    """One world, line by line."""
    world = World(seed)
    failure = ""
    try:
        world.run()
    except AssertionError as error:
        failure = str(error)
    print("\n".join(world.trace))
    print(f"seed {seed} ({world.shape.name}): {failure or 'all is well'}")
    print(f"trace {world.trace_hash}")
    return 1 if failure else 0


def _run_all(first: int, count: int, jobs: int) -> int:
    start = time.perf_counter()
    stories: list[Story] = []
    with ProcessPoolExecutor(jobs) as pool:
        for story in pool.map(tell, range(first, first + count), chunksize=4):
            stories.append(story)
            if story.failure:
                print(story.report(), flush=True)
    seconds = time.perf_counter() - start
    print(", ".join(f"{name} {value:,}" for name, value in figures(stories).items()))
    print(f"{count / seconds:.1f} worlds a second in {jobs} processes")
    return 1 if any(story.failure for story in stories) else 0


def main() -> int:
    """Run what was asked for; 1 if anything failed."""
    arguments = _arguments()
    with _planted(arguments.plant):
        if arguments.seed is not None:
            return _replay(arguments.seed)
        jobs = 1 if arguments.plant else arguments.jobs
        return _run_all(arguments.first, arguments.seeds, jobs)


if __name__ == "__main__":
    sys.exit(main())
