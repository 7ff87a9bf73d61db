"""`fila queue`: create and change queues, and look into them."""

from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from typing import TypedDict, TypeVar, Unpack, cast

import click
from rich.text import Text

import fila
from fila.cli.output import (
    Json,
    console,
    moment,
    number,
    payload_fields,
    preview,
    stamp,
    table,
)
from fila.cli.session import Session, takes_session
from fila.cli.values import SCRIPT
from fila.client.views import QueueOptions

_PREVIEW_WIDTH = 40
_SCRIPTS = ("on_enqueue_script", "on_failure_script")

C = TypeVar("C", bound=Callable[..., object])


class Settings(TypedDict):
    """The options that `create` and `update` share; None where one is not given."""

    on_enqueue_script: str | None
    on_failure_script: str | None
    visibility_timeout_ms: int | None
    max_attempts: int | None
    max_depth: int | None
    retry_delay_ms: int | None
    retry_backoff: float | None
    retry_delay_max_ms: int | None
    quantum: int | None
    hook_timeout_ms: int | None
    hook_memory_bytes: int | None


_OPTIONS = (
    click.option(
        "--on-enqueue",
        "on_enqueue_script",
        type=SCRIPT,
        help="Lua that sets a message's key, weight and limits; '' for none.",
    ),
    click.option(
        "--on-failure",
        "on_failure_script",
        type=SCRIPT,
        help="Lua that says what becomes of a nacked message; '' for none.",
    ),
    click.option(
        "--visibility-timeout",
        "visibility_timeout_ms",
        type=int,
        metavar="MS",
        help="How long a lease lasts (30000).",
    ),
    click.option(
        "--max-attempts", type=int, help="Deliveries, then dead letter (20; 0: no limit)."
    ),
    click.option("--max-depth", type=int, help="Messages held, then refused (0: no limit)."),
    click.option(
        "--retry-delay", "retry_delay_ms", type=int, metavar="MS", help="Before a retry (1000)."
    ),
    click.option("--retry-backoff", type=float, help="Times more each time (2)."),
    click.option(
        "--retry-delay-max",
        "retry_delay_max_ms",
        type=int,
        metavar="MS",
        help="Never longer than (300000).",
    ),
    click.option("--quantum", type=int, help="Credit of a turn (0: the server's, 1)."),
    click.option(
        "--hook-timeout",
        "hook_timeout_ms",
        type=int,
        metavar="MS",
        help="For one call of a script (0: the server's, 10).",
    ),
    click.option(
        "--hook-memory",
        "hook_memory_bytes",
        type=int,
        metavar="BYTES",
        help="For one call of a script (0: the server's, 1 MiB).",
    ),
)


def _takes_settings(command: C) -> C:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _given(settings: Settings) -> QueueOptions:
    given = {name: value for name, value in settings.items() if value is not None}
    return cast(QueueOptions, given)


@click.group()
def queue() -> None:
    """Create and change queues, and look into them.

    \b
    fila queue create orders --visibility-timeout 60000 --max-attempts 5
    fila queue update orders --on-enqueue @tenants.lua
    fila queue list
    fila queue browse orders.dlq
    """


@queue.command()
@click.argument("name")
@_takes_settings
@takes_session
def create(session: Session, /, name: str, **settings: Unpack[Settings]) -> None:
    """Create the queue NAME, and NAME.dlq for its dead letters."""
    with session.connect() as client:
        client.admin.create_queue(name, **_given(settings))
    session.output.done(f"created {name}", {"queue": name})


@queue.command()
@click.argument("name")
@_takes_settings
@takes_session
def update(session: Session, /, name: str, **settings: Unpack[Settings]) -> None:
    """Change what is given; the rest of NAME stays as it is."""
    if all(value is None for value in settings.values()):
        raise click.UsageError("nothing to change; see --help for what can be")
    with session.connect() as client:
        client.admin.update_queue(name, **_given(settings))
    session.output.done(f"updated {name}", {"queue": name})


@queue.command()
@click.argument("name")
@click.option("--keep-dead-letters", is_flag=True, help="Refuse while NAME.dlq has messages.")
@takes_session
def delete(session: Session, /, name: str, keep_dead_letters: bool) -> None:
    """Delete NAME with all its messages and dead letters."""
    with session.connect() as client:
        client.admin.delete_queue(name, keep_dead_letters=keep_dead_letters)
    session.output.done(f"deleted {name}", {"queue": name})


@queue.command("list")
@takes_session
def list_queues(session: Session, /) -> None:
    """List the queues."""
    with session.connect() as client:
        queues = client.admin.list_queues()
    if session.output.as_json:
        session.output.document(
            [
                {
                    "name": info.name,
                    "depth": info.depth,
                    "in_flight": info.in_flight,
                    "active_consumers": info.active_consumers,
                    "paused": info.paused,
                }
                for info in queues
            ]
        )
        return
    if not queues:
        session.output.line("no queues; `fila queue create NAME` makes one")
        return
    rows = [
        (
            info.name,
            info.depth,
            info.in_flight,
            info.active_consumers,
            "paused" if info.paused else "",
        )
        for info in queues
    ]
    console().print(table(("queue", "messages", "in flight", "consumers", ""), rows))


@queue.command()
@click.argument("name")
@takes_session
def inspect(session: Session, /, name: str) -> None:
    """Show how NAME is set and what it holds."""
    with session.connect() as client:
        description = client.admin.get_queue(name)
        stats = client.admin.stats(name)
    settings = asdict(description.settings)
    facts: dict[str, Json] = {
        "queue": name,
        "paused": description.paused,
        "dead_letter_queue": description.dead_letter_queue or None,
        "depth": stats.depth,
        "ready": stats.ready,
        "throttled": stats.throttled,
        "delayed": stats.delayed,
        "in_flight": stats.in_flight,
        "active_consumers": stats.active_consumers,
    }
    if session.output.as_json:
        session.output.document({**facts, "settings": settings})
        return
    scripts = {key: settings.pop(key) for key in _SCRIPTS}
    rows = [(name_, _fact(value)) for name_, value in {**facts, **settings}.items()]
    console().print(table(("", ""), [(key.replace("_", " "), text) for key, text in rows]))
    for key, source in scripts.items():
        if source:
            console().print(Text(f"\n{key.replace('_', ' ')}", style="bold"))
            console().print(Text(source.strip("\n")))


def _fact(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "":
        return "none"
    return number(value) if isinstance(value, int | float) else str(value)


@queue.command()
@click.argument("name")
@click.option("--include-leased", is_flag=True, help="Also what consumers hold.")
@takes_session
def purge(session: Session, /, name: str, include_leased: bool) -> None:
    """Remove all messages that wait in NAME."""
    with session.connect() as client:
        purged = client.admin.purge_queue(name, include_leased=include_leased)
    session.output.done(f"removed {number(purged)} messages", {"queue": name, "purged": purged})


@queue.command()
@click.argument("name")
@takes_session
def pause(session: Session, /, name: str) -> None:
    """Stop deliveries of NAME; everything else goes on."""
    with session.connect() as client:
        client.admin.pause_queue(name)
    session.output.done(f"paused {name}", {"queue": name, "paused": True})


@queue.command()
@click.argument("name")
@takes_session
def resume(session: Session, /, name: str) -> None:
    """Let deliveries of NAME go on."""
    with session.connect() as client:
        client.admin.resume_queue(name)
    session.output.done(f"resumed {name}", {"queue": name, "paused": False})


@queue.command()
@click.argument("name")
@click.option("--limit", type=click.IntRange(min=1), default=20, help="At most so many (20).")
@takes_session
def browse(session: Session, /, name: str, limit: int) -> None:
    """Look at messages of NAME in order of acceptance, without taking them."""
    with session.connect() as client:
        found = list(islice(client.admin.browse(name, page_size=min(limit, 1000)), limit))
    if session.output.as_json:
        for browsed in found:
            session.output.document(_browsed_document(browsed))
        return
    if not found:
        session.output.line(f"{name} is empty")
        return
    headings = ["id", "state", "key", "attempts", "enqueued", "payload"]
    rows = [_browsed_row(browsed) for browsed in found]
    if any(browsed.message.dead_letter for browsed in found):
        headings.append("dead because")
    else:
        rows = [row[:-1] for row in rows]
    console().print(table(headings, rows))


def _browsed_row(browsed: fila.BrowsedMessage) -> tuple[str | int, ...]:
    message, dead = browsed.message, browsed.message.dead_letter
    until = f" until {moment(browsed.due_at)}" if browsed.due_at else ""
    return (
        message.id,
        browsed.state.name.lower() + until,
        message.fairness_key,
        message.attempts,
        moment(message.enqueued_at),
        preview(message.payload, _PREVIEW_WIDTH),
        f"{dead.reason}: {dead.last_error}".removesuffix(": ") if dead else "",
    )


def _browsed_document(browsed: fila.BrowsedMessage) -> Json:
    message, dead = browsed.message, browsed.message.dead_letter
    return {
        "id": message.id,
        "queue": message.queue,
        "state": browsed.state.name.lower(),
        "due_at": stamp(browsed.due_at),
        "fairness_key": message.fairness_key,
        "weight": message.weight,
        "priority": message.priority,
        "attempts": message.attempts,
        "enqueued_at": stamp(message.enqueued_at),
        "headers": dict(message.headers),
        **payload_fields(message.payload),
        "dead_letter": None
        if dead is None
        else {
            "reason": dead.reason,
            "last_error": dead.last_error,
            "source_queue": dead.source_queue,
            "dead_at": stamp(dead.dead_at),
        },
    }
