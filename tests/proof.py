"""How long a proof runs, and where its figures go.

`make test` runs every proof at a reduced length, `make prove` at full length; the latter leaves
`proof/<name>.json` with the commit, the counts and what was seen.
"""

import json
import os
import subprocess
from pathlib import Path

FULL = bool(os.environ.get("FILA_PROVE"))
_ROOT = Path(__file__).parent.parent


def length(*, reduced: int, full: int) -> int:
    """How many rounds, seeds or messages this run is for."""
    return full if FULL else reduced


def record(name: str, **figures: object) -> None:
    """Write down what was seen, when this is the proof at full length."""
    if not FULL:
        return
    folder = _ROOT / "proof"
    folder.mkdir(exist_ok=True)
    facts = {"name": name, "commit": _commit(), **figures}
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=2, default=str) + "\n")


def _commit() -> str:
    shown = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout.strip() or "unknown"
