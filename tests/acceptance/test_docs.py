"""The documentation is true: its commands run, its links lead somewhere, its reference is whole."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest

from fila.server.config import Config
from tests.acceptance.fences import Block, blocks, execute, pages, write_shims
from tests.acceptance.processes import ROOT, run, running_broker

KNOWN_LANGUAGES = {"sh", "python", "toml", "json", "text", "ini", "lua"}
RUN_LANGUAGES = {"sh", "python", "toml", "json"}
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SETTING = re.compile(r"^\| `(\w+)` \| (?:`([^`]*)`|empty) \|", re.MULTILINE)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _pages_with_blocks() -> list[Path]:
    return [page for page in pages() if any(b.language in RUN_LANGUAGES for b in blocks(page))]


@pytest.mark.parametrize("page", _pages_with_blocks(), ids=_name)
def test_every_command_and_example_of_a_page_runs_in_order(page: Path, tmp_path: Path) -> None:
    shims = write_shims(tmp_path)
    (tmp_path / "work").mkdir()
    # Where a page names files of the project, it is read in a clone.
    (tmp_path / "work" / "examples").symlink_to(ROOT / "examples")

    with running_broker(tmp_path) as broker:
        for block in blocks(page):
            if block.language in RUN_LANGUAGES:
                finished = execute(block, broker, tmp_path / "work", shims)
                assert finished.code == 0, f"{block}\n{block.text}\n{finished.out}{finished.err}"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_blocks_have_a_language_that_says_how_to_check_them(page: Path) -> None:
    unknown: list[Block] = [b for b in blocks(page) if b.language not in KNOWN_LANGUAGES]
    bare = re.findall(r"^```$", page.read_text(), re.MULTILINE)

    assert not unknown
    assert len(bare) == len(list(blocks(page))), "a block without a language"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_a_script_of_a_page_is_one_that_the_tests_run(page: Path) -> None:
    scripts = {path.read_text() for path in (ROOT / "examples/hooks").glob("*.lua")}

    assert not [
        block for block in blocks(page) if block.language == "lua" and block.text not in scripts
    ]


@pytest.mark.parametrize("page", [*pages(), ROOT / "llms.txt"], ids=_name)
def test_links_lead_to_files(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]

    assert not [target for target in targets if not (page.parent / target).exists()]


def test_every_page_of_the_documentation_is_linked_from_another() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in pages()
        for target in LINK.findall(page.read_text())
        if "://" not in target
    }
    unlinked = [_name(p) for p in pages() if p.resolve() not in linked and p.parent != ROOT]

    assert set(unlinked) <= {"docs/README.md"}


def test_the_reference_is_what_the_code_says() -> None:
    finished = run([sys.executable, str(ROOT / "scripts/reference.py"), "--check"])

    assert finished.code == 0, finished.err


def test_the_settings_reference_is_complete_with_true_defaults() -> None:
    text = (ROOT / "docs/reference/configuration.md").read_text()
    sections = dict(
        re.findall(r"^## `\[(\w+)\]`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    )
    documented = {section: dict(SETTING.findall(body)) for section, body in sections.items()}

    actual = {
        section.name: {
            item.name: str(getattr(getattr(Config(), section.name), item.name))
            for item in dataclasses.fields(getattr(Config(), section.name))
        }
        for section in dataclasses.fields(Config)
    }

    assert documented == actual


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=_name)
def test_an_example_runs_to_its_end(example: Path, tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        finished = run([sys.executable, str(example)], environment=broker.environment())

    assert finished.code == 0, finished.err
    assert finished.out


def test_the_fair_example_serves_by_weight(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        example = str(ROOT / "examples/fair_scheduling.py")
        finished = run([sys.executable, example], environment=broker.environment())

    shares = re.findall(r"weight \d +([\d.]+)%", finished.out)
    assert shares == ["16.7", "33.3", "50.0"]


def test_the_throttling_example_serves_the_free_provider_while_the_limited_one_waits(
    tmp_path: Path,
) -> None:
    with running_broker(tmp_path) as broker:
        example = str(ROOT / "examples/throttling.py")
        finished = run([sys.executable, example], environment=broker.environment())

    served = dict(re.findall(r"(\w+) +(\d+) of", finished.out))
    assert served["mail"] == "600"
    assert 5 <= int(served["sms"]) < 60
