"""What the demo shows of the providers: two bars, and what each was given."""

from rich.console import Group, RenderableType
from rich.text import Text

from fila.cli.demo_providers import FREE, LIMITED, PROVIDERS, ProviderAct
from fila.cli.output import duration, number

_BAR = 30
_STYLES = {LIMITED: "yellow", FREE: "bold green"}


class ProviderScreen:
    """Shows an act as it stands."""

    def __init__(self, act: ProviderAct) -> None:
        self._act = act

    def title(self) -> str:
        """What the act is about."""
        return "3. A limit: one tenant, two providers, one of them allows little"

    def drawing(self, *, signs: bool) -> RenderableType:
        """For a terminal; `signs` says whether it has more than ASCII."""
        plan = self._act.plan
        setting = Text(
            f"   {LIMITED}: {plan.rate}/s allowed, its {number(plan.limited_count)} messages came "
            f"first; {FREE}: no limit",
            style="dim",
        )
        bars = [self._bar(provider, signs=signs) for provider in PROVIDERS]
        heading = Text(self.title(), style="bold")
        pace = Text(f"   {self._pace()}")
        return Group(heading, setting, Text(""), *bars, Text(""), pace, Text(""))

    def line(self) -> str:
        """For a pipe."""
        served, counts = self._act.tally.served, self._act.plan.counts()
        parts = (
            f"{each} {number(served[each])} of {number(counts[each])} served" for each in PROVIDERS
        )
        return f"limit   {', '.join(parts)}; {self._pace()}"

    def _bar(self, provider: str, *, signs: bool) -> Text:
        served, total = self._act.tally.served[provider], self._act.plan.counts()[provider]
        full, empty = ("█", "·") if signs else ("#", ".")
        length = round(_BAR * served / total)
        bar = Text(f"   {provider:<8}")
        bar.append(full * length + empty * (_BAR - length), style=_STYLES[provider])
        bar.append(f" {number(served):>6} served")
        bar.append(f" {number(total - served):>6} waiting", style="dim")
        return bar

    def _pace(self) -> str:
        tally = self._act.tally
        if not tally.limited_span_s:
            return "nothing limited was served yet"
        rate = tally.served[LIMITED] / max(tally.limited_span_s, 1.0)
        return f"the limited provider gets {rate:.0f}/s"


def verdict(act: ProviderAct) -> str:
    """What the limit did, in one line."""
    plan, tally = act.plan, act.tally
    behind = duration(1000 * plan.limited_count / plan.rate)
    return (
        f"Free provider: {number(plan.free_count)} served in {duration(1000 * tally.free_span_s)}, "
        f"behind {number(plan.limited_count)} limited ones worth {behind}"
    )
