"""`fila consumers`: who takes messages, and how much they hold."""

import click

from fila.cli.output import console, duration, table
from fila.cli.session import Session, takes_session

_HEADINGS = ("id", "name", "from", "queues", "credit", "held", "idle")


@click.command()
@click.argument("queue", required=False)
@takes_session
def consumers(session: Session, /, queue: str | None) -> None:
    """List the connected consumers, or only those of QUEUE."""
    with session.connect() as client:
        found = list(client.admin.consumers(queue))
    if session.output.as_json:
        session.output.document(
            [
                {
                    "id": consumer.id,
                    "name": consumer.name,
                    "peer": consumer.peer,
                    "queues": list(consumer.queues),
                    "credit": consumer.credit,
                    "held": consumer.held,
                    "idle_ms": consumer.idle_ms,
                }
                for consumer in found
            ]
        )
        return
    if not found:
        session.output.line(f"no consumer takes from {queue}" if queue else "no consumers")
        return
    rows = [
        (
            str(consumer.id),
            consumer.name,
            consumer.peer,
            ", ".join(consumer.queues),
            consumer.credit,
            consumer.held,
            duration(consumer.idle_ms),
        )
        for consumer in found
    ]
    console().print(table(_HEADINGS, rows))
