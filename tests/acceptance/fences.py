"""Fenced blocks of the documentation, and what it takes to run them against a broker."""

import json
import re
import shlex
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.processes import COMMAND, ROOT, SERVER, Broker, Finished, run

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DOCUMENTED_ADDR = "localhost:5555"

# A shell block runs with these in front: what would install, or never end, is checked instead.
_SHIMS = {
    "fila": f'exec {shlex.join(COMMAND)} "$@"',
    "fila-server": f"""
        case " $* " in
            *" backup "*|*" verify "*|*" --check-config "*) exec {shlex.join(SERVER)} "$@" ;;
            *) exec {shlex.join(SERVER)} "$@" --check-config ;;
        esac""",
    "make": f'exec /usr/bin/env -i PATH=/usr/bin:/bin make -C {ROOT} -n "$@"',
    "pip": f"""
        [ "$1" = install ] && exec {sys.executable} -c '
        import sys, tomllib
        project = tomllib.load(open("{ROOT}/pyproject.toml", "rb"))["project"]
        name, _, extra = sys.argv[1].rstrip("]").partition("[")
        assert name == project["name"], name
        assert not extra or extra in project["optional-dependencies"], extra' "$2" """,
}


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    # What follows the language: `root` marks commands that would change the reader's machine.
    note: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Everything that is documentation."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text()
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found[1], found[2].strip(), found[3])


def write_shims(folder: Path) -> Path:
    """Put the stand-ins into a folder for the front of PATH."""
    shims = folder / "shims"
    shims.mkdir()
    for name, script in _SHIMS.items():
        lines = [line.removeprefix("        ") for line in script.splitlines()]
        file = shims / name
        file.write_text("\n".join(["#!/bin/bash", *lines, ""]))
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return shims


def execute(block: Block, broker: Broker, folder: Path, shims: Path) -> Finished:
    """Do what a reader of the block would do."""
    environment = broker.environment()
    environment["FILA_DATA_DIR"] = str(broker.data_dir)
    environment["PATH"] = f"{shims}:{environment['PATH']}"
    if block.language == "python":
        program = block.text.replace(_DOCUMENTED_ADDR, broker.addr)
        return run([sys.executable, "-c", program], environment=environment, folder=folder)
    if block.language == "toml":
        (folder / "documented.toml").write_text(block.text)
        environment.pop("FILA_DATA_DIR")
        command = [*SERVER, "--check-config", "--config", "documented.toml"]
        return run(command, environment=environment, folder=folder)
    if block.language == "json":
        json.loads(block.text)
        return Finished(0, "", "")
    shell = ["bash", "-n"] if block.note == "root" else ["bash", "-euo", "pipefail"]
    return run([*shell, "-c", block.text], environment=environment, folder=folder)
