"""`fila doctor`: is the broker there, and is this machine fit for one, on one screen."""

import os
import platform
import time
from pathlib import Path

import click
from rich.text import Text

import fila
from fila.cli import checks
from fila.cli.checks import Check
from fila.cli.output import console, number, table
from fila.cli.release import installed_version
from fila.cli.session import Session, takes_session

_STYLES = {"ok": "green", "look": "yellow", "bad": "bold red"}


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Where the data is or will be; else FILA_DATA_DIR, ./fila-data.",
)
@takes_session
def doctor(session: Session, /, data_dir: Path | None) -> None:
    """Check the broker and this machine: reachability, disk, limits, versions.

    Exit code 1 when something is bad.
    """
    chosen = data_dir or Path(os.environ.get("FILA_DATA_DIR") or "fila-data")
    folder = checks.existing(chosen)
    found = [
        _version(),
        _broker(session),
        Check(name="data", verdict="ok", text=f"{folder} ({checks.filesystem(folder)})"),
        *(checks.guarded(name, check, folder) for name, check in checks.MACHINE.items()),
    ]
    if session.output.as_json:
        session.output.document(
            [
                {
                    "name": check.name,
                    "verdict": check.verdict,
                    "text": check.text,
                    "advice": check.advice or None,
                }
                for check in found
            ]
        )
    else:
        _print(found)
    if any(check.verdict == "bad" for check in found):
        click.get_current_context().exit(1)


def _print(found: list[Check]) -> None:
    rows: list[tuple[str | Text, ...]] = []
    for check in found:
        rows.append((Text(check.verdict, style=_STYLES[check.verdict]), check.name, check.text))
        if check.advice:
            rows.append(("", "", Text(check.advice, style="dim")))
    console().print(table(("", "", ""), rows))


def _version() -> Check:
    text = f"fila {installed_version()}, Python {platform.python_version()}"
    return Check(name="version", verdict="ok", text=text)


def _broker(session: Session) -> Check:
    begin = time.perf_counter()
    try:
        with fila.Client(session.addr) as client:
            queues = client.admin.list_queues()
            begin = time.perf_counter()
            client.admin.list_queues()
            took = checks.round_trip(begin)
    except fila.errors.UnreachableError:
        return Check(
            name="broker",
            verdict="bad",
            text=f"none answers at {session.addr}",
            advice="start one with `fila-server`, or say where it is with --addr or FILA_ADDR",
        )
    except fila.FilaError as error:
        return Check(name="broker", verdict="bad", text=f"{session.addr}: {error}")
    held = sum(info.depth for info in queues)
    paused = sum(info.paused for info in queues)
    text = f"{session.addr} answers in {took}: {number(len(queues))} queues"
    text += f", {number(held)} messages" + (f", {number(paused)} paused" if paused else "")
    return Check(name="broker", verdict="ok", text=text)
