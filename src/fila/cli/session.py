"""What every command has: which broker it speaks to and how it answers."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate

import click

import fila
from fila import errors
from fila.cli.output import Output

DEFAULT_ADDR = "localhost:5555"


@dataclass(frozen=True, slots=True)
class Session:
    """One run of one command."""

    addr: str
    output: Output

    @contextmanager
    def connect(self) -> Iterator[fila.Client]:
        """A client of the broker; says where it looked when there is none."""
        try:
            with fila.Client(self.addr) as client:
                yield client
        except errors.UnreachableError as error:
            raise click.ClickException(unreachable(self.addr)) from error


def unreachable(addr: str) -> str:
    """What to say when no broker answers."""
    return (
        f"no broker answers at {addr}; start one with `fila-server`, "
        "or say where it is with --addr or FILA_ADDR"
    )


def takes_session(function: Callable[Concatenate[Session, ...], None]) -> Callable[..., None]:
    """Give a command `--addr` and `--json`, and hand it the session they make."""

    @click.option(
        "--addr", metavar="HOST:PORT", help=f"The broker; else FILA_ADDR, {DEFAULT_ADDR}."
    )
    @click.option("--json", "as_json", is_flag=True, help="For programs.")
    @click.pass_context
    @wraps(function)
    def command(
        context: click.Context, /, *, addr: str | None, as_json: bool, **arguments: object
    ) -> None:
        chosen = addr or (context.obj or {}).get("addr") or os.environ.get("FILA_ADDR")
        session = Session(addr=chosen or DEFAULT_ADDR, output=Output(as_json=as_json))
        function(session, **arguments)

    return command
