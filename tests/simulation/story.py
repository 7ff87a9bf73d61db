"""Running worlds by their seeds, and telling how it went."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.simulation.violation import ViolationError
from tests.simulation.world import World

# Lines of the trace that a failure shows.
_TRACE_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Story:
    """One world, from beginning to end."""

    seed: int
    shape: str
    trace_hash: str
    passes: int
    crashes: int
    delivered: int
    acknowledged: int
    # Comparisons of shares.
    judged: int
    # Deliveries that took tokens, and comparisons of who got them.
    tokens: int
    scarce: int
    # What went wrong and who noticed; empty if nothing did.
    failure: str = ""
    checker: str = ""
    trace: tuple[str, ...] = ()

    def report(self) -> str:
        """A failure, with the end of its trace and how to see it again."""
        shown = "\n".join(f"    {line}" for line in self.trace[-_TRACE_SHOWN:])
        return (
            f"seed {self.seed} ({self.shape}), trace {self.trace_hash}: {self.failure}\n{shown}\n"
            f"replay with: make sim SEED={self.seed}"
        )


def tell(seed: int) -> Story:
    """Run one world."""
    world = World(seed)
    failure = checker = ""
    try:
        world.run()
    except ViolationError as error:
        failure, checker = str(error), error.checker
    return Story(
        seed=seed,
        shape=world.shape.name,
        trace_hash=world.trace_hash,
        passes=world.judge.passes,
        crashes=world.crashes,
        delivered=world.ledger.delivered,
        acknowledged=world.ledger.acknowledged,
        judged=world.judge.shares.judged,
        tokens=world.judge.takes.count,
        scarce=world.judge.scarcity.judged,
        failure=failure,
        checker=checker,
        trace=tuple(world.trace) if failure else (),
    )


def figures(stories: Iterable[Story]) -> dict[str, int]:
    """What was gone through, in all."""
    told = list(stories)
    return {
        "worlds": len(told),
        "failed": sum(bool(story.failure) for story in told),
        "passes": sum(story.passes for story in told),
        "crashes": sum(story.crashes for story in told),
        "delivered": sum(story.delivered for story in told),
        "acknowledged": sum(story.acknowledged for story in told),
        "shares_judged": sum(story.judged for story in told),
        "tokens": sum(story.tokens for story in told),
        "scarcity_judged": sum(story.scarce for story in told),
    }
