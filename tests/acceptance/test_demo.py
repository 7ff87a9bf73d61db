"""`fila demo`, as someone sees it who has just installed Fila."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests import proof
from tests.acceptance.processes import COMMAND, clean_environment, run, started

SMALL = ["demo", "--noisy", "600", "--quiet", "5", "--handlers", "4", "--work-ms", "2"]
SERVICE_TIMES_MAX = 2


def _environment(folder: Path, **more: str) -> dict[str, str]:
    """The demo's temporary files go where the test can look."""
    return clean_environment(TMPDIR=str(folder), **more)


def _brokers(folder: Path) -> list[psutil.Process]:
    """The demo's brokers that are running."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in part for part in process.info["cmdline"] or ())
    ]


def _wait_for(condition: str, folder: Path) -> None:
    deadline = time.monotonic() + 30
    while not any(_brokers(folder)):
        assert time.monotonic() < deadline, condition
        time.sleep(0.05)


def test_the_fair_act_serves_the_quiet_tenant_sooner_and_a_limit_holds_up_only_what_it_limits(
    tmp_path: Path,
) -> None:
    finished = run([*COMMAND, *SMALL, "--json"], environment=_environment(tmp_path))

    assert (finished.code, finished.err) == (0, "")
    acts = json.loads(finished.out)
    assert acts["fair"]["served"]["quiet"] == acts["unfair"]["served"]["quiet"] == 5
    assert acts["fair"]["noisy_begun_meanwhile_p99"] < acts["unfair"]["noisy_begun_meanwhile_p99"]
    limit = acts["limit"]
    allowed = limit["burst"] + limit["rate"] * limit["limited_span_s"]
    assert limit["served"]["free"] == 150
    assert 1 <= limit["served"]["limited"] <= allowed + 1
    assert not list(tmp_path.iterdir())
    assert not _brokers(tmp_path)


def test_in_a_pipe_it_prints_lines_and_ends_with_what_came_of_it(tmp_path: Path) -> None:
    finished = run([*COMMAND, *SMALL], environment=_environment(tmp_path))

    lines = finished.out.splitlines()
    assert (finished.code, finished.err) == (0, "")
    assert "\x1b" not in finished.out
    assert re.fullmatch(r"Quiet tenant's wait, p50/p99: fair \S+ .+; unfair \S+ .+", lines[-2])
    assert re.fullmatch(
        r"Free provider: 150 served in .+, behind 30 limited ones worth .+", lines[-1]
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_stopped_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    with started([*COMMAND, "demo"], _environment(tmp_path)) as process:
        _wait_for("the demo starts a broker", tmp_path)

        process.send_signal(number)
        _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert err.decode().strip() == "fila: demo stopped; its broker and its data are gone"
    assert not list(tmp_path.iterdir())
    assert not _brokers(tmp_path)


def test_it_fits_a_terminal_of_80_by_24(tmp_path: Path) -> None:
    environment = _environment(tmp_path, COLUMNS="80", LINES="24", TERM="xterm")
    shown, code = _in_a_terminal([*COMMAND, *SMALL], environment)

    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    widths = [len(line) for line in plain.replace("\r", "\n").split("\n")]
    assert code == 0
    assert "1. Fair" in plain
    assert "2. Fairness off" in plain
    assert "3. A limit" in plain
    assert max(widths) <= 80


def _in_a_terminal(command: list[str], environment: dict[str, str]) -> tuple[str, int]:
    """What a terminal would get, and the exit code."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command, env=environment, stdin=follower, stdout=follower, stderr=follower
    )
    os.close(follower)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 1)[0]:
            try:
                part = os.read(leader, 65536)
            except OSError:
                # That is how a terminal ends.
                break
            shown += part
    os.close(leader)
    return shown.decode(), process.wait(10)


@pytest.mark.slow
@pytest.mark.proof
def test_with_its_own_defaults_the_quiet_tenant_waits_two_service_times_at_most(
    tmp_path: Path,
) -> None:
    finished = run([*COMMAND, "demo", "--json"], environment=_environment(tmp_path), timeout=110)

    fair = json.loads(finished.out)["fair"]
    proof.record("demo", **json.loads(finished.out))
    # Counted rather than timed: in a service time each handler begins one message.
    assert fair["noisy_begun_meanwhile_p99"] <= SERVICE_TIMES_MAX * 16
