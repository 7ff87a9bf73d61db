"""`fila redrive`: dead letters back to where they came from."""

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import fila
from fila import errors
from fila.cli.output import Json, console, number
from fila.cli.session import Session, takes_session
from fila.model import DLQ_SUFFIX

# Moved by one call: what is drawn, and where Ctrl-C stops.
_AT_ONCE = 2000


@click.command()
@click.argument("dlq")
@click.option(
    "--count", type=click.IntRange(min=1), help="At most so many, the oldest first; else all."
)
@takes_session
def redrive(session: Session, /, dlq: str, count: int | None) -> None:
    """Move waiting dead letters of DLQ back into the queue that they came from.

    They go to the end of the line as if they were enqueued now, with no attempts counted. What
    consumers hold stays. When the queue has no room for more (max_depth) the rest stays, too.
    """
    with session.connect() as client:
        stats = client.admin.stats(dlq)
        waiting = stats.ready + stats.delayed
        job = _Job(client, dlq, wanted=min(count or waiting, waiting))
        with _progress(shown=job.wanted > _AT_ONCE and not session.output.as_json) as progress:
            task = progress.add_task(f"redriving {dlq}", total=job.wanted)
            while job.goes_on:
                job.step()
                progress.update(task, completed=job.moved)
    if job.moved or job.refusal is None:
        facts: dict[str, Json] = {"queue": dlq, "redriven": job.moved}
        source = dlq.removesuffix(DLQ_SUFFIX)
        session.output.done(f"moved {number(job.moved)} messages back to {source}", facts)
    if job.refusal is not None:
        raise job.refusal


class _Job:
    """A redrive in steps: the oldest go first, so that each goes on where the last one ended."""

    def __init__(self, client: fila.Client, dlq: str, *, wanted: int) -> None:
        self.wanted = wanted
        self.moved = 0
        self.goes_on = True
        # Why it ended early.
        self.refusal: errors.FilaError | None = None
        self._client = client
        self._dlq = dlq

    def step(self) -> None:
        """Move some more. There is always a first step: the broker may refuse the queue."""
        wanted = min(max(1, self.wanted - self.moved), _AT_ONCE)
        try:
            moved = self._client.admin.redrive(self._dlq, wanted)
        except errors.FilaError as error:
            self.refusal = error
            self.goes_on = False
            return
        self.moved += moved
        self.goes_on = moved > 0 and self.moved < self.wanted


def _progress(*, shown: bool) -> Progress:
    """A bar on a terminal, gone when it is full."""
    screen = console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=not (shown and screen.is_terminal),
    )
