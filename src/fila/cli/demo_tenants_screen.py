"""What the demo shows of the tenants: bars and a strip on a terminal, a line a second elsewhere."""

from rich.console import Group, RenderableType
from rich.text import Text

from fila.cli.demo_tenants import NOISY, QUIET, TENANTS, Act, Tally
from fila.cli.output import duration, number

_BAR = 34
_STRIP = 72
_STYLES = {NOISY: "yellow", QUIET: "bold green"}
_SIGNS = {NOISY: "·", QUIET: "█"}
_PLAIN_SIGNS = {NOISY: ".", QUIET: "#"}


class TenantScreen:
    """Shows an act as it stands."""

    def __init__(self, act: Act) -> None:
        self._act = act

    def title(self) -> str:
        """What the act is about."""
        if self._act.fair:
            return "1. Fair: each tenant has its own fairness key"
        return "2. Fairness off: both tenants share one key"

    def drawing(self, *, signs: bool) -> RenderableType:
        """For a terminal; `signs` says whether it has more than ASCII."""
        return _drawing(self._act, self.title(), signs=signs)

    def line(self) -> str:
        """For a pipe."""
        return _line(self._act)


def _drawing(act: Act, title: str, *, signs: bool) -> RenderableType:
    plan, tally = act.plan, act.tally
    setting = Text(
        f"   {plan.handlers} handlers, {plan.work_s * 1000:g} ms of work for each message; "
        f"{plan.quiet_count} quiet behind {number(plan.noisy_count)} noisy",
        style="dim",
    )
    marks = _SIGNS if signs else _PLAIN_SIGNS
    bars = [_bar(act, tenant, marks) for tenant in TENANTS]
    return Group(
        Text(title, style="bold"), setting, Text(""), *bars, Text(""), *_strip(tally, marks)
    )


def _bar(act: Act, tenant: str, marks: dict[str, str]) -> Text:
    tally, plan = act.tally, act.plan
    total = plan.noisy_count if tenant == NOISY else plan.quiet_count
    full = round(_BAR * tally.served[tenant] / total)
    waiting = round(_BAR * tally.waiting(tenant) / total)
    bar = Text(f"   {tenant} ")
    bar.append(marks[QUIET] * full, style=_STYLES[tenant])
    bar.append(marks[NOISY] * min(waiting, _BAR - full), style=_STYLES[tenant])
    bar.append(" " * max(0, _BAR - full - waiting))
    bar.append(f" {number(tally.served[tenant]):>6} served")
    bar.append(f" {number(tally.waiting(tenant)):>6} waiting", style="dim")
    return bar


def _strip(tally: Tally, marks: dict[str, str]) -> list[Text]:
    """Who was served last, one sign for a message, in rows of the same length."""
    about = Text("   who is served, one sign a message, newest last: ", style="dim")
    about.append(f"{marks[QUIET]} quiet", style=_STYLES[QUIET])
    about.append(f"  {marks[NOISY]} noisy", style=_STYLES[NOISY])
    recent = list(tally.strip)
    rows = []
    for start in (0, _STRIP):
        row = Text("   ")
        for tenant in recent[start : start + _STRIP]:
            row.append(marks[tenant], style=_STYLES[tenant])
        rows.append(row)
    return [about, *rows, Text(f"   the quiet tenant's wait: {_waits(tally)}"), Text("")]


def _waits(tally: Tally) -> str:
    """The quiet tenant's wait, as far as it is known."""
    middle, high = tally.wait_ms(0.5), tally.wait_ms(0.99)
    if middle is None or high is None:
        return "none served yet"
    return f"p50 {duration(middle)}, p99 {duration(high)}"


def _line(act: Act) -> str:
    tally = act.tally
    counts = ", ".join(
        f"{tenant} {number(tally.served[tenant])} served {number(tally.waiting(tenant))} waiting"
        for tenant in TENANTS
    )
    return f"{'fair  ' if act.fair else 'unfair'}  {counts}; quiet's wait: {_waits(tally)}"


def verdict(fair: Tally, unfair: Tally) -> str:
    """Both waits, in one line."""
    return f"Quiet tenant's wait, p50/p99: fair {_pair(fair)}; unfair {_pair(unfair)}"


def _pair(tally: Tally) -> str:
    middle, high = tally.wait_ms(0.5), tally.wait_ms(0.99)
    return f"{duration(middle or 0)} / {duration(high or 0)}"
