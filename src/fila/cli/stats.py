"""`fila stats`: how much waits, for how long, and who is served."""

import time
from collections.abc import Callable
from dataclasses import asdict

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

import fila
from fila.cli.output import Json, console, duration, number, percent, printable, table
from fila.cli.session import Session, takes_session
from fila.cli.values import SPAN

_QUEUE_HEADINGS = (
    "queue",
    "ready",
    "throttled",
    "delayed",
    "in flight",
    "keys",
    "consumers",
    "oldest",
    "",
)
_KEY_HEADINGS = (
    "key",
    "waiting",
    "in flight",
    "weight",
    "served",
    "per second",
    "share",
    "due",
    "oldest",
)
_THROTTLE_HEADINGS = ("throttle key", "waiting", "tokens", "per second", "burst")

_HOOK_HEADINGS = ("script", "calls", "failed", "bypassed", "clamped", "median", "p99", "")


@click.command()
@click.argument("queue", required=False)
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C.")
@click.option("--interval", type=SPAN, default=1.0, help="Between two looks (1s).")
@click.option("--keys", "key_limit", type=int, default=20, help="At most so many keys (20).")
@takes_session
def stats(
    session: Session, /, queue: str | None, watch: bool, interval: float, key_limit: int
) -> None:
    """Show all queues, or QUEUE with its fairness keys and the limits that its messages meet.

    `throttled` are ready messages that wait for a token of a limited throttle key. `share` is what
    a key got lately, `due` what its weight entitles it to while it has messages waiting.
    """
    with session.connect() as client:

        def look() -> list[tuple[str, fila.QueueStats]]:
            names = [queue] if queue else [info.name for info in client.admin.list_queues()]
            return [(name, client.admin.stats(name)) for name in names]

        def draw() -> RenderableType:
            return _draw(look(), one=queue is not None, key_limit=key_limit)

        if session.output.as_json:
            _repeat(lambda: _print_json(session, look(), one=queue is not None), watch, interval)
        elif watch and console().is_terminal:
            _watch(draw, interval)
        else:
            _repeat(lambda: console().print(draw()), watch, interval)


def _repeat(show: Callable[[], None], again: bool, interval: float) -> None:
    show()
    while again:
        time.sleep(interval)
        show()


def _watch(draw: Callable[[], RenderableType], interval: float) -> None:
    with Live(draw(), console=console(), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(interval)
            live.update(draw(), refresh=True)


def _print_json(session: Session, found: list[tuple[str, fila.QueueStats]], *, one: bool) -> None:
    documents: list[Json] = [{"queue": name, **asdict(stats)} for name, stats in found]
    session.output.document(documents[0] if one else documents)


def _draw(found: list[tuple[str, fila.QueueStats]], *, one: bool, key_limit: int) -> RenderableType:
    if not found:
        return Text("no queues; `fila queue create NAME` makes one")
    queues = table(_QUEUE_HEADINGS, [_queue_row(name, stats) for name, stats in found])
    if not one:
        return queues
    name, stats = found[0]
    return Group(queues, *_keys(name, stats, key_limit), *_limits(stats, key_limit), *_hooks(stats))


def _keys(queue: str, stats: fila.QueueStats, limit: int) -> list[RenderableType]:
    if not stats.per_key_stats:
        return []
    shown = stats.per_key_stats[:limit]
    keys = table(_KEY_HEADINGS, [_key_row(key) for key in shown])
    rest = stats.key_count - len(shown)
    notes = [_more(rest, "keys")]
    if stats.ready:
        notes.append(f"`fila explain {printable(queue)} --key KEY` says why a key waits")
    return [Text(""), keys, *(Text(note, style="dim") for note in notes if note)]


def _limits(stats: fila.QueueStats, limit: int) -> list[RenderableType]:
    if not stats.per_throttle_stats:
        return []
    shown = stats.per_throttle_stats[:limit]
    limits = table(_THROTTLE_HEADINGS, [_throttle_row(each) for each in shown])
    notes = [_more(len(stats.per_throttle_stats) - len(shown), "throttle keys")]
    return [Text(""), limits, *(Text(note, style="dim") for note in notes if note)]


def _more(rest: int, what: str) -> str:
    return f"and {number(rest)} {what} more" if rest > 0 else ""


def _hooks(stats: fila.QueueStats) -> list[RenderableType]:
    hooks = {"on_enqueue": stats.on_enqueue, "on_failure": stats.on_failure}
    known = {name: hook for name, hook in hooks.items() if hook is not None}
    if not known:
        return []
    rows = [_hook_row(name, hook) for name, hook in known.items()]
    errors = [
        Text(f"{name} failed last: {printable(hook.last_error)}", style="red")
        for name, hook in known.items()
        if hook.last_error
    ]
    return [Text(""), table(_HOOK_HEADINGS, rows), *errors]


def _hook_row(name: str, hook: fila.HookStats) -> tuple[str | int, ...]:
    failed = hook.timeouts + hook.out_of_memory + hook.errors + hook.bad_results
    return (
        name,
        hook.calls,
        failed,
        hook.bypassed,
        hook.clamped,
        f"{hook.median_us:.0f} µs",
        f"{hook.p99_us:.0f} µs",
        "breaker open" if hook.breaker_open else "",
    )


def _queue_row(name: str, stats: fila.QueueStats) -> tuple[str | int, ...]:
    return (
        name,
        stats.ready,
        stats.throttled,
        stats.delayed,
        stats.in_flight,
        stats.active_fairness_keys,
        stats.active_consumers,
        duration(stats.oldest_waiting_ms) if stats.ready else "",
        "paused" if stats.paused else "",
    )


def _key_row(key: fila.KeyStats) -> tuple[str | int | float, ...]:
    return (
        key.key,
        key.pending_count,
        key.in_flight,
        key.weight,
        key.delivered,
        key.delivered_per_second,
        percent(key.share),
        percent(key.weight_share),
        duration(key.oldest_waiting_ms) if key.pending_count else "",
    )


def _throttle_row(limit: fila.ThrottleStats) -> tuple[str | int | float, ...]:
    return (limit.key, limit.waiting, limit.tokens, limit.rate_per_second, limit.burst)
