"""`fila demo`: tenants with fairness and without, then providers with a limit, on a real broker."""

import asyncio
import signal
import sys
from dataclasses import dataclass
from typing import Protocol

import click
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

import fila
from fila.cli import demo_providers_screen, demo_tenants_screen
from fila.cli.demo_broker import broker
from fila.cli.demo_providers import ProviderAct, ProviderPlan
from fila.cli.demo_providers_screen import ProviderScreen
from fila.cli.demo_tenants import Act, Plan, Tally
from fila.cli.demo_tenants_screen import TenantScreen
from fila.cli.output import Json, console
from fila.cli.session import Session, takes_session

_FRAME_S = 0.1
_LINE_S = 1.0


class _Act(Protocol):
    """What is played."""

    async def run(self) -> None:
        """To its end."""


class _Picture(Protocol):
    """How an act looks at this moment."""

    def title(self) -> str:
        """What it is about."""

    def drawing(self, *, signs: bool) -> RenderableType:
        """For a terminal; `signs` says whether it has more than ASCII."""

    def line(self) -> str:
        """For a pipe."""


class _Screen(Protocol):
    """Where an act is shown while it runs."""

    async def show(self, picture: _Picture) -> None:
        """Show it until cancelled."""


class _TerminalScreen:
    """Redraws the act in place."""

    def __init__(self) -> None:
        self._console = console()
        self._signs = "utf" in (sys.stdout.encoding or "").lower()

    async def show(self, picture: _Picture) -> None:
        """Draw ten times a second, and once more at the end."""
        with Live(console=self._console, auto_refresh=False) as live:
            try:
                while True:
                    live.update(picture.drawing(signs=self._signs), refresh=True)
                    await asyncio.sleep(_FRAME_S)
            finally:
                live.update(picture.drawing(signs=self._signs), refresh=True)


class _LineScreen:
    """Prints a line a second."""

    async def show(self, picture: _Picture) -> None:
        """Print now and then, and once more at the end."""
        click.echo(picture.title())
        try:
            while True:
                await asyncio.sleep(_LINE_S)
                click.echo(picture.line())
        finally:
            click.echo(picture.line())


class _SilentScreen:
    """Shows nothing: the result is a document."""

    async def show(self, picture: _Picture) -> None:
        """Wait for the end."""
        del picture
        await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class _Played:
    """The acts, over."""

    fair: Tally
    unfair: Tally
    limit: ProviderAct


@click.command()
@click.option("--noisy", default=20_000, type=click.IntRange(min=1), hidden=True)
@click.option("--quiet", default=50, type=click.IntRange(min=1), hidden=True)
@click.option("--handlers", default=16, type=click.IntRange(min=1), help="Workers at once (16).")
@click.option("--work-ms", default=10.0, type=click.FloatRange(min=0), help="Of each message (10).")
@takes_session
def demo(session: Session, /, noisy: int, quiet: int, handlers: int, work_ms: float) -> None:
    """Watch a quiet tenant beside a noisy one, and a free provider beside a limited one.

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
            played = asyncio.run(_run(addr, plan, _screen(session)))
    except KeyboardInterrupt:
        click.echo("fila: demo stopped; its broker and its data are gone", err=True)
        raise
    if session.output.as_json:
        session.output.document(
            {
                "fair": _document(played.fair),
                "unfair": _document(played.unfair),
                "limit": _limit_document(played.limit),
            }
        )
    else:
        for verdict in (
            demo_tenants_screen.verdict(played.fair, played.unfair),
            demo_providers_screen.verdict(played.limit),
        ):
            console().print(Text(verdict, style="bold"), soft_wrap=True)


def _screen(session: Session) -> _Screen:
    if session.output.as_json:
        return _SilentScreen()
    return _TerminalScreen() if console().is_terminal else _LineScreen()


async def _run(addr: str, plan: Plan, screen: _Screen) -> _Played:
    async with fila.AsyncClient(addr) as client:
        fair, unfair = Act(client, plan, fair=True), Act(client, plan, fair=False)
        limit = ProviderAct(client, _provider_plan(plan))
        await _show(fair, TenantScreen(fair), screen)
        await _show(unfair, TenantScreen(unfair), screen)
        await _show(limit, ProviderScreen(limit), screen)
    return _Played(fair.tally, unfair.tally, limit)


def _provider_plan(plan: Plan) -> ProviderPlan:
    """As big as the acts before."""
    return ProviderPlan(
        limited_count=-(-plan.noisy_count // 20),
        free_count=-(-plan.noisy_count // 4),
        handlers=plan.handlers,
        work_s=plan.work_s,
        rate=50,
        burst=10,
    )


async def _show(act: _Act, picture: _Picture, screen: _Screen) -> None:
    async with asyncio.TaskGroup() as tasks:
        shown = tasks.create_task(screen.show(picture))
        try:
            await act.run()
        finally:
            shown.cancel()


def _document(tally: Tally) -> dict[str, Json]:
    return {
        "served": dict(tally.served),
        "quiet_wait_p50_ms": tally.wait_ms(0.5),
        "quiet_wait_p99_ms": tally.wait_ms(0.99),
        "noisy_begun_meanwhile_p99": tally.overtaken(0.99),
    }


def _limit_document(act: ProviderAct) -> dict[str, Json]:
    return {
        "served": dict(act.tally.served),
        "rate": act.plan.rate,
        "burst": act.plan.burst,
        "free_span_s": act.tally.free_span_s,
        "limited_span_s": act.tally.limited_span_s,
    }
