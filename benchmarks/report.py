"""How a run is shown: a table for a terminal, JSON for later."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.figures import Figure, Unit
from benchmarks.machine import Machine

_WIDTH = 96
_ROW = "{:<4} {:<42} {:>12} {:>6} {:>11} {:>11}  {}"


def print_conditions(machine: Machine) -> None:
    """What all figures depend on."""
    print(f"Fila {machine.commit}")
    print(f"{machine.cpu}, {machine.cores} cores, {machine.memory_gb:g} GB, Linux {machine.kernel}")
    print(
        f"fsync on {machine.filesystem}: {machine.fsync_ms:.2f} ms "
        f"(p99 {machine.fsync_p99_ms:.2f}); load before the run {machine.load:g}"
    )
    print(
        f"Python {machine.python}, rocksdict {machine.rocksdict}, grpcio {machine.grpcio}, "
        f"protobuf {machine.protobuf}, uvloop {machine.uvloop}"
    )
    print(
        "1 KB payload, one header, fsync before each reply; broker and clients share the cores;\n"
        "medians, ± half the range; CPU is user + system time\n"
    )


def print_head() -> None:
    """The names of the columns."""
    print(_ROW.format("", "", "reading", "±", "must", "aim", "met"))
    print("-" * _WIDTH, flush=True)


def print_figure(figure: Figure) -> None:
    """One line."""
    spread = ""
    if figure.spread is not None:
        spread = (
            f"{figure.spread:.1f}"
            if figure.unit is Unit.PERCENT
            else f"{100 * figure.spread / figure.value:.0f} %"
        )
    demands = ["" if each is None else _text(each, figure.unit) for each in _demands(figure)]
    value = _text(figure.value, figure.unit)
    row = _ROW.format(figure.workload, figure.what, value, spread, *demands, figure.verdict)
    print(row.rstrip(), flush=True)


def print_summary(figures: Iterable[Figure], seconds: float) -> None:
    """How many demands are met."""
    judged = [figure for figure in figures if figure.is_met is not None]
    met = sum(1 for figure in judged if figure.is_met)
    print(f"\n{met} of {len(judged)} demands met, in {seconds:.0f} s")


def write_json(
    path: Path, machine: Machine, figures: Sequence[Figure], *, quick: bool, seconds: float
) -> None:
    """Everything that was printed, for programs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "commit": machine.commit,
        "mode": "quick" if quick else "full",
        "seconds": round(seconds, 1),
        "machine": {name: value for name, value in asdict(machine).items() if name != "commit"},
        "figures": [_plain(figure) for figure in figures],
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _demands(figure: Figure) -> tuple[float | None, float | None]:
    return figure.must, figure.aim


def _plain(figure: Figure) -> dict[str, object]:
    found: dict[str, object] = {**asdict(figure), "unit": figure.unit.value, "met": figure.is_met}
    found["what"] = figure.what.strip()
    for name in ("value", "spread", "must", "aim"):
        value = getattr(figure, name)
        found[name] = None if value is None else float(f"{value:.4g}")
    return found


def _text(value: float, unit: Unit) -> str:
    if unit is Unit.RATE:
        return f"{value:,.0f}/s"
    if unit is Unit.PERCENT:
        return f"{value:.1f} %"
    if unit in {Unit.BYTES, Unit.MEGABYTES}:
        return f"{value:.0f} {unit.value}"
    return f"{value:.2f} {unit.value}"
