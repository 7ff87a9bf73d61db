"""`fila enqueue`: messages from a shell."""

from collections.abc import Iterator

import click

import fila
from fila.cli.session import Session, takes_session
from fila.cli.values import HEADER, PAYLOAD, SPAN

_BATCH = 500


@click.command()
@click.argument("queue")
@click.argument("payload", type=PAYLOAD, default=b"", metavar="[PAYLOAD|@FILE|-]")
@click.option("--header", "-H", "headers", type=HEADER, multiple=True, help="May be repeated.")
@click.option("--key", "fairness_key", help="Fairness key: whose message it is.")
@click.option("--weight", type=int, help="Share of the key, 1 to 10000.")
@click.option("--priority", type=int, help="Within the key, 0 to 255, higher first.")
@click.option("--cost", type=int, help="What a delivery takes from the key's share.")
@click.option("--throttle-key", "throttle_keys", multiple=True, help="May be repeated.")
@click.option("--delay", type=SPAN, help="Invisible for so long: 30, 500ms, 5m, 2h.")
@click.option("--ttl", type=SPAN, help="Dead-lettered when not delivered in this time.")
@click.option("--count", type=click.IntRange(min=1), default=1, help="So many of them.")
@takes_session
def enqueue(
    session: Session,
    /,
    *,
    queue: str,
    payload: bytes,
    headers: tuple[tuple[str, str], ...],
    fairness_key: str | None,
    weight: int | None,
    priority: int | None,
    cost: int | None,
    throttle_keys: tuple[str, ...],
    delay: float | None,
    ttl: float | None,
    count: int,
) -> None:
    """Put a message into QUEUE and print its id, which means that it is on disk.

    \b
    fila enqueue orders '{"id": 7}' --header tenant=acme --key acme
    fila enqueue orders @order.json
    date | fila enqueue orders - --delay 5m
    """
    message = fila.NewMessage(
        payload,
        headers=dict(headers),
        fairness_key=fairness_key,
        weight=weight,
        priority=priority,
        cost=cost,
        throttle_keys=list(throttle_keys) or None,
        delay=delay,
        ttl=ttl,
    )
    with session.connect() as client:
        for message_id in _send(client, queue, message, count):
            session.output.done(message_id, {"id": message_id})


def _send(client: fila.Client, queue: str, message: fila.NewMessage, count: int) -> Iterator[str]:
    for start in range(0, count, _BATCH):
        for result in client.enqueue_batch(queue, [message] * min(_BATCH, count - start)):
            if isinstance(result, fila.FilaError):
                raise result
            yield result
