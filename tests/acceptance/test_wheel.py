"""The wheel in empty environments: plain is SDK and command line, `[server]` adds the broker."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.processes import ROOT, Finished, clean_environment, running_broker
from tests.acceptance.processes import run as run_program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with nothing in it but one installation of the wheel."""

    folder: Path

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def run(self, name: str, *arguments: str, folder: Path | None = None) -> Finished:
        return run_program(
            [self.program(name), *arguments],
            environment=_outside_environment(),
            folder=folder,
            timeout=120,
        )

    def packages(self) -> set[str]:
        listed = self.run("python", "-m", "pip", "list", "--format=freeze").out
        return {line.partition("==")[0].lower() for line in listed.splitlines()}


def _outside_environment() -> dict[str, str]:
    """Nothing of the sources may be in reach."""
    environment = clean_environment()
    del environment["PYTHONPATH"]
    return environment


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True, timeout=120)
    [built] = folder.glob("*.whl")
    return built


def _install(wheel: Path, extra: str, folder: Path) -> Installed:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    installed = Installed(folder)
    command = ["-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    finished = installed.run("python", *command, f"fila-mq{extra} @ {wheel.as_uri()}")
    assert finished.code == 0, finished.err
    return installed


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return _install(wheel, "", tmp_path_factory.mktemp("plain") / "venv")


@pytest.fixture(scope="module")
def server(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return _install(wheel, "[server]", tmp_path_factory.mktemp("server") / "venv")


def test_the_plain_installation_is_small(plain: Installed) -> None:
    packages = plain.packages()

    assert {"fila-mq", "grpcio", "protobuf", "click", "rich"} <= packages
    assert not packages & {"rocksdict", "uvloop", "grpcio-reflection", "pytest", "ruff"}


def test_the_plain_installation_has_the_sdk_and_the_command_line(
    plain: Installed, tmp_path: Path
) -> None:
    imported = plain.run("python", "-c", "import fila; fila.Client; fila.AsyncClient")
    shown = plain.run("fila", "--help")
    version = plain.run("fila", "--version")
    unreachable = plain.run("fila", "queue", "list", "--addr", "127.0.0.1:1", folder=tmp_path)

    assert (imported.code, imported.err) == (0, "")
    assert shown.code == 0
    assert version.out == "fila 0.1.0\n"
    assert unreachable.code == 1
    assert unreachable.err.startswith("fila: no broker answers at 127.0.0.1:1")


@pytest.mark.parametrize("command", [("fila-server",), ("fila", "demo")], ids=" ".join)
def test_without_the_broker_one_line_says_what_to_install(
    plain: Installed, tmp_path: Path, command: tuple[str, ...]
) -> None:
    name, *arguments = command
    finished = plain.run(name, *arguments, folder=tmp_path)

    assert finished.code == 1
    assert "pip install 'fila-mq[server]'" in finished.err
    assert finished.err.count("\n") == 1


def test_the_server_installation_serves(server: Installed, tmp_path: Path) -> None:
    checked = server.run("fila-server", "--check-config", folder=tmp_path)
    with running_broker(tmp_path, [server.program("fila-server")]) as broker:
        created = server.run("fila", "queue", "create", "orders", "--addr", broker.addr)
        sent = server.run("fila", "enqueue", "orders", "hello", "--addr", broker.addr)
        taken = server.run("fila", "consume", "orders", "--count", "1", "--addr", broker.addr)

    assert checked.code == 0
    assert 'listen_addr = "127.0.0.1:5555"' in checked.out
    assert created.code == sent.code == taken.code == 0
    assert taken.out == "hello\n"


def test_the_server_installation_shows_the_demo(server: Installed, tmp_path: Path) -> None:
    small = ["--noisy", "300", "--quiet", "5", "--handlers", "4", "--work-ms", "2"]

    finished = server.run("fila", "demo", *small, folder=tmp_path)

    assert finished.code == 0, finished.err
    assert "Quiet tenant's wait, p50/p99: fair" in finished.out.splitlines()[-2]


def test_the_server_installation_has_no_development_tools(server: Installed) -> None:
    assert not server.packages() & {"pytest", "ruff", "mypy", "grpcio-tools", "hypothesis"}
