"""The one door: the Makefile's own promises that no other test keeps."""

import re
import shutil
import stat
import subprocess
from pathlib import Path

from tests.acceptance.processes import ROOT, run

TARGETS = {
    "setup", "demo", "serve", "check", "test", "prove", "sim", "bench", "bench-quick", "proto",
    "docs", "fmt", "clean",
}  # fmt: skip


def test_make_says_what_there_is() -> None:
    finished = run(["make", "-C", str(ROOT), "--no-print-directory", "help"])

    assert finished.code == 0
    assert set(re.findall(r"^make (\S+) ", finished.out, re.MULTILINE)) >= TARGETS


def test_the_demo_installs_no_development_tools() -> None:
    finished = run(["make", "-C", str(ROOT), "-n", "-W", "pyproject.toml", "demo"])

    assert "-e '.[server]'" in finished.out
    assert "dev" not in re.findall(r"-e '\.\[([^']*)\]'", finished.out)


def test_constraints_name_versions_and_no_places() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()

    assert not [line for line in lines[1:] if not re.fullmatch(r"[\w.-]+==[\w.]+", line)]
    assert not re.search(r"https?:|--|sha256", "\n".join(lines[1:]))


def test_a_missing_venv_module_is_named_with_its_package(tmp_path: Path) -> None:
    fake = tmp_path / "python3"
    fake.write_text(
        "#!/bin/bash\n"
        'case "$*" in *ensurepip*) exit 1 ;; esac\n'
        f'exec {shutil.which("python3")} "$@"\n'
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    # As somebody who may not install: `id` says so.
    identity = tmp_path / "id"
    identity.write_text("#!/bin/bash\necho 1000\n")
    identity.chmod(identity.stat().st_mode | stat.S_IXUSR)

    finished = subprocess.run(
        ["bash", str(ROOT / "scripts/prerequisites.sh"), str(fake)],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert finished.returncode == 1
    assert re.search(r"apt-get install python3\.\d+-venv", finished.stderr)
    assert finished.stderr.count("\n") == 1


def test_the_runner_of_every_change_calls_check_and_test() -> None:
    script = (ROOT / ".ci/run").read_text()

    assert (ROOT / ".ci/run").stat().st_mode & stat.S_IXUSR
    assert script.rstrip().endswith("make check\nmake test")
    for target in ("make check", "make test"):
        assert f"run: {target}" in (ROOT / ".github/workflows/ci.yml").read_text()
