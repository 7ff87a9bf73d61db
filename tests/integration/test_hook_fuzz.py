"""Random programs neither outlive their time nor end the process nor spoil the next call."""

import json
import subprocess
import sys

import pytest

from tests import proof
from tests.integration.hostile_child import TIMEOUT_MS

_PROGRAMS = proof.length(reduced=1500, full=5000)
_SEEDS = proof.length(reduced=1, full=40)


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_no_random_program_gets_past_the_sandbox() -> None:
    totals: dict[str, int] = {}
    worst_ms = 0.0

    for seed in range(_SEEDS):
        finished = subprocess.run(
            [sys.executable, "-m", "tests.integration.sandbox_fuzz", str(seed), str(_PROGRAMS)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        last = finished.stderr.strip().rpartition("\n")[2]
        assert finished.returncode == 0, f"ended with {finished.returncode} in {last}"
        seen = json.loads(finished.stdout)
        assert seen["worst_ms"] <= 2 * TIMEOUT_MS, seen["worst"]
        assert not seen["wrong"]
        worst_ms = max(worst_ms, seen["worst_ms"])
        for name, count in seen["failed"].items():
            totals[name] = totals.get(name, 0) + count

    # Programs that all fail at once would try nothing.
    assert totals["errors"] < 0.8 * _SEEDS * _PROGRAMS
    proof.record(
        "hook_fuzz", programs=_SEEDS * _PROGRAMS, worst_cpu_ms=round(worst_ms, 2), failed=totals
    )
