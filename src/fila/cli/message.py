"""`fila message`: one message, by its id."""

from datetime import datetime

import click

from fila.cli.output import moment, stamp
from fila.cli.session import Session, takes_session
from fila.cli.values import MOMENT, SPAN


@click.group()
def message() -> None:
    """Remove a waiting message, or move a delayed one to another time.

    `fila queue browse` shows the ids.
    """


@message.command()
@click.argument("queue")
@click.argument("message_id")
@takes_session
def remove(session: Session, /, queue: str, message_id: str) -> None:
    """Remove the waiting message MESSAGE_ID from QUEUE for good."""
    with session.connect() as client:
        client.admin.remove_message(queue, message_id)
    session.output.done(f"removed {message_id}", {"queue": queue, "id": message_id})


@message.command()
@click.argument("queue")
@click.argument("message_id")
@click.option("--delay", type=SPAN, help="From now: 30, 500ms, 5m, 2h; 0 is at once.")
@click.option("--at", type=MOMENT, help="At this time: 2030-01-31T08:00, or with Z.")
@takes_session
def reschedule(
    session: Session,
    /,
    queue: str,
    message_id: str,
    delay: float | None,
    at: datetime | None,
) -> None:
    """Move the delayed message MESSAGE_ID of QUEUE to another time."""
    if (delay is None) == (at is None):
        raise click.UsageError("give either --delay or --at")
    with session.connect() as client:
        client.admin.reschedule(queue, message_id, delay=delay, deliver_at=at)
    when = f"in {delay:g} s" if at is None else f"at {moment(at)}"
    session.output.done(
        f"{message_id} is due {when}",
        {"queue": queue, "id": message_id, "delay": delay, "deliver_at": stamp(at)},
    )
