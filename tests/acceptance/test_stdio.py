"""Programs that are started without standard streams, or with ones that take nothing."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fila
from tests.acceptance.processes import COMMAND, SERVER, Broker, clean_environment, run

FULL = "/dev/full"


def closing(redirections: str, command: list[str]) -> list[str]:
    """A command that a shell starts with these redirections."""
    return ["sh", "-c", f'exec "$@" {redirections}', "sh", *command]


@contextmanager
def broker_with(redirections: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A broker that says where it listens in its data directory only."""
    command = [*SERVER, "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            closing(redirections, command), env=clean_environment(), stdout=log, stderr=log
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen[bytes], folder: Path) -> str:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, (folder / "log").read_text()
        if (folder / "data/ADDRESS").exists():
            words = (folder / "data/ADDRESS").read_text().split()
            if words:
                return words[0]
        time.sleep(0.02)
    raise AssertionError("the broker did not start")


@pytest.mark.parametrize(
    "redirections", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", f">{FULL}", f"2>{FULL}"]
)
def test_a_broker_serves_and_stops_whatever_its_standard_streams_are(
    tmp_path: Path, redirections: str
) -> None:
    with broker_with(redirections, tmp_path) as process:
        with fila.Client(address_of(process, tmp_path)) as client:
            client.admin.create_queue("orders")
            client.enqueue("orders", b"x")

        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
    assert "Assertion" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("redirections", "arguments"),
    [
        (">&-", ["queue", "list"]),
        (">&-", ["--help"]),
        ("<&-", ["enqueue", "streams", "-"]),
        ("<&- >&- 2>&-", ["queue", "list", "--json"]),
    ],
)
def test_a_command_works_without_standard_streams(
    broker: Broker, redirections: str, arguments: list[str]
) -> None:
    broker.fila("queue", "create", "streams")

    done = run(closing(redirections, [*COMMAND, *arguments]), environment=broker.environment())

    assert (done.code, done.err) == (0, "")


def test_a_refusal_without_a_stream_for_it_still_has_its_exit_code(broker: Broker) -> None:
    wrong = [*COMMAND, "nonsense"]
    refused = [*COMMAND, "queue", "inspect", "nowhere"]

    for number in ("2>&-", f"2>{FULL}"):
        assert run(closing(number, refused), environment=broker.environment()).code == 1
    assert run(closing("2>&-", wrong), environment=broker.environment()).code == 2


def test_what_an_encoding_lacks_is_printed_in_escapes(broker: Broker) -> None:
    broker.fila("queue", "create", "sülze")
    broker.fila("enqueue", "sülze", "☃")

    shown = run(
        [*COMMAND, "queue", "browse", "sülze"],
        environment={**broker.environment(), "PYTHONIOENCODING": "ascii"},
    )

    assert (shown.code, shown.err) == (0, "")
    assert "\\u2603" in shown.out


def test_a_proxy_in_the_environment_is_not_asked_for_a_broker(broker: Broker) -> None:
    nowhere = "http://127.0.0.1:9"
    proxied = {**broker.environment(), "http_proxy": nowhere, "grpc_proxy": nowhere}

    done = run([*COMMAND, "queue", "list"], environment=proxied)

    assert (done.code, done.err) == (0, "")
