"""`fila consume`: messages into a shell."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click
from rich.text import Text

import fila
from fila.cli.output import Json, console, payload_fields, printable, stamp
from fila.cli.session import Session, takes_session
from fila.cli.values import SPAN

_BATCH = 100
# What --no-ack may hold: it gives everything back only when it ends.
_HELD_MAX = 1000
# One look at the broker; a longer wait is made of several.
_WAIT_S = 2.0


@click.command()
@click.argument("queue")
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many.")
@click.option("--ack/--no-ack", default=True, help="Settle each, or give all back at the end.")
@click.option("--timeout", type=SPAN, help="Stop when nothing has come for so long: 5, 500ms, 1m.")
@takes_session
def consume(
    session: Session, /, queue: str, count: int | None, ack: bool, timeout: float | None
) -> None:
    """Take messages of QUEUE and print their payloads, one in a line, until Ctrl-C.

    A message is settled when it is printed. On a terminal a line about each comes before it;
    elsewhere there is the payload alone. --json prints one document in a line for each.

    \b
    fila consume orders --count 1
    fila consume orders --json --timeout 0 | jq .headers
    fila consume orders.dlq --count 10 --no-ack
    """
    if not ack and (count is None or count > _HELD_MAX):
        raise click.UsageError(f"--no-ack needs a --count of at most {_HELD_MAX}")
    with session.connect() as client:
        taken = _Taken(session, client, queue, ack=ack)
        try:
            taken.take(count, timeout)
        finally:
            taken.give_back()


class _Taken:
    """What this run has leased and not settled."""

    def __init__(self, session: Session, client: fila.Client, queue: str, *, ack: bool) -> None:
        self._session = session
        self._client = client
        self._queue = queue
        self._ack = ack
        self._held: dict[str, fila.Message] = {}

    def take(self, count: int | None, timeout: float | None) -> None:
        """Lease and print until there were `count`, or none for `timeout` seconds."""
        left = count
        last = time.monotonic()
        while left is None or left > 0:
            wait = _WAIT_S
            if timeout is not None:
                wait = min(wait, max(0.0, last + timeout - time.monotonic()))
            messages = self._client.lease(self._queue, min(_BATCH, left or _BATCH), wait=wait)
            if messages:
                self._print_all(messages)
                last = time.monotonic()
                left = None if left is None else left - len(messages)
            elif timeout is not None and time.monotonic() >= last + timeout:
                return

    def _print_all(self, messages: list[fila.Message]) -> None:
        self._held.update((message.id, message) for message in messages)
        for message in messages:
            with _ctrl_c_waits():
                self._print(message)
                if self._ack:
                    self._client.ack(message)
                    del self._held[message.id]
        self._client.flush()

    def give_back(self) -> None:
        """Release what is held: each goes back to its place, and no attempt is counted."""
        for message in self._held.values():
            self._client.release(message)
        self._client.flush()

    def _print(self, message: fila.Message) -> None:
        if self._session.output.as_json:
            self._session.output.document(_document(message))
        elif sys.stdout.isatty():
            about = f"{message.id}  key {message.fairness_key}  attempts {message.attempts}"
            headers = "".join(f"  {key}={value}" for key, value in message.headers.items())
            console().print(Text(printable(about + headers), style="dim"), soft_wrap=True)
            self._session.output.line(message.payload.decode(errors="backslashreplace"))
        else:
            sys.stdout.buffer.write(message.payload + b"\n")
            sys.stdout.buffer.flush()


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Let Ctrl-C come only afterwards: what was shown must be settled. A second one breaks in."""
    asked = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


def _document(message: fila.Message) -> dict[str, Json]:
    return {
        "id": message.id,
        "queue": message.queue,
        "attempts": message.attempts,
        "fairness_key": message.fairness_key,
        "weight": message.weight,
        "priority": message.priority,
        "enqueued_at": stamp(message.enqueued_at),
        "headers": dict(message.headers),
        **payload_fields(message.payload),
    }
