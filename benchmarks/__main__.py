"""`python -m benchmarks`: run the workloads, print the table, write the JSON."""

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from benchmarks import report
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.machine import ROOT, Machine, NotADiskError
from benchmarks.processes import RunError
from benchmarks.workloads import WORKLOADS


def main() -> int:
    """Run what was asked for; the status says whether it ran, not how fast."""
    options = _options()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with Bench(quick=options.quick) as bench:
            return _run(bench, options.only, options.json)
    except (NotADiskError, RunError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nbenchmarks: interrupted; everything that was started is stopped", file=sys.stderr)
        return 130


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute, smaller backlogs")
    parser.add_argument(
        "--only", type=_names, default=list(WORKLOADS), metavar="W1,W3", help="some workloads"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="default: benchmarks/results/<commit>-<mode>.json"
    )
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = [name.strip().upper() for name in text.split(",")]
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}? There are {', '.join(WORKLOADS)}")
    return names


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(bench: Bench, names: list[str], target: Path | None) -> int:
    begin = time.monotonic()
    report.print_conditions(bench.machine)
    report.print_head()
    figures: list[Figure] = []
    # A function that brings the figures of two workloads runs once.
    for workload in dict.fromkeys(WORKLOADS[name] for name in names):
        for figure in workload(bench):
            figures.append(figure)
            report.print_figure(figure)
    seconds = time.monotonic() - begin
    report.print_summary(figures, seconds)
    path = target or _default_target(bench.machine, quick=bench.quick)
    report.write_json(path, bench.machine, figures, quick=bench.quick, seconds=seconds)
    print(f"written to {path}")
    return 0


def _default_target(machine: Machine, *, quick: bool) -> Path:
    return ROOT / "benchmarks" / "results" / f"{machine.commit}-{'quick' if quick else 'full'}.json"


if __name__ == "__main__":
    sys.exit(main())
