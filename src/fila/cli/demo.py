"""`fila demo`: a noisy tenant, a quiet one, a real broker, with fairness and without."""

import asyncio
import signal
import sys
from typing import Protocol

import click
from rich.live import Live
from rich.text import Text

import fila
from fila.cli import demo_screen
from fila.cli.demo_act import Act, Plan, Tally
from fila.cli.demo_broker import broker
from fila.cli.output import Json, console
from fila.cli.session import Session, takes_session

_FRAME_S = 0.1
_LINE_S = 1.0


class _Screen(Protocol):
    """Where an act is shown while it runs."""

    async def show(self, act: Act) -> None:
        """Show the act until cancelled."""


class _TerminalScreen:
    """Redraws the act in place."""

    def __init__(self) -> None:
        self._console = console()
        self._signs = "utf" in (sys.stdout.encoding or "").lower()

    async def show(self, act: Act) -> None:
        """Draw ten times a second, and once more at the end."""
        with Live(console=self._console, auto_refresh=False) as live:
            try:
                while True:
                    live.update(demo_screen.drawing(act, signs=self._signs), refresh=True)
                    await asyncio.sleep(_FRAME_S)
            finally:
                live.update(demo_screen.drawing(act, signs=self._signs), refresh=True)


class _LineScreen:
    """Prints a line a second."""

    async def show(self, act: Act) -> None:
        """Print now and then, and once more at the end."""
        click.echo(demo_screen.title(act))
        try:
            while True:
                await asyncio.sleep(_LINE_S)
                click.echo(demo_screen.line(act))
        finally:
            click.echo(demo_screen.line(act))


class _SilentScreen:
    """Shows nothing: the result is a document."""

    async def show(self, act: Act) -> None:
        """Wait for the end."""
        del act
        await asyncio.Event().wait()


@click.command()
@click.option("--noisy", default=20_000, type=click.IntRange(min=1), hidden=True)
@click.option("--quiet", default=50, type=click.IntRange(min=1), hidden=True)
@click.option("--handlers", default=16, type=click.IntRange(min=1), help="Workers at once (16).")
@click.option("--work-ms", default=10.0, type=click.FloatRange(min=0), help="Of each message (10).")
@takes_session
def demo(session: Session, /, noisy: int, quiet: int, handlers: int, work_ms: float) -> None:
    """Watch a quiet tenant beside a noisy one, with fairness and without.

    Starts a broker of its own on a free port and removes it again. --addr means nothing here.
    """
    plan = Plan(
        noisy_count=noisy,
        quiet_count=quiet,
        handlers=handlers,
        work_s=work_ms / 1000,
        quiet_gap_s=0.02,
    )
    # What stops a program politely stops the demo as Ctrl-C does: broker and data go away.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # So does a terminal that is closed, unless nohup has it outlive that.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        with broker() as addr:
            fair, unfair = asyncio.run(_run(addr, plan, _screen(session)))
    except KeyboardInterrupt:
        click.echo("fila: demo stopped; its broker and its data are gone", err=True)
        raise
    if session.output.as_json:
        session.output.document({"fair": _document(fair), "unfair": _document(unfair)})
    else:
        console().print(Text(demo_screen.verdict(fair, unfair), style="bold"), soft_wrap=True)


def _screen(session: Session) -> _Screen:
    if session.output.as_json:
        return _SilentScreen()
    return _TerminalScreen() if console().is_terminal else _LineScreen()


async def _run(addr: str, plan: Plan, screen: _Screen) -> tuple[Tally, Tally]:
    async with fila.AsyncClient(addr) as client:
        fair = await _show(Act(client, plan, fair=True), screen)
        unfair = await _show(Act(client, plan, fair=False), screen)
    return fair, unfair


async def _show(act: Act, screen: _Screen) -> Tally:
    async with asyncio.TaskGroup() as tasks:
        shown = tasks.create_task(screen.show(act))
        try:
            await act.run()
        finally:
            shown.cancel()
    return act.tally


def _document(tally: Tally) -> dict[str, Json]:
    return {
        "served": dict(tally.served),
        "quiet_wait_p50_ms": tally.wait_ms(0.5),
        "quiet_wait_p99_ms": tally.wait_ms(0.99),
        "noisy_begun_meanwhile_p99": tally.overtaken(0.99),
    }
