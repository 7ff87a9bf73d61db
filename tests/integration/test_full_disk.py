"""A full disk: enqueue is refused with the reason, everything else goes on, nothing is lost."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fila
from tests import proof
from tests.integration.broker_process import BrokerProcess

_MIB = 1 << 20
_PAYLOAD = os.urandom(64 * 1024)
_WAIT_SECONDS_MAX = 60.0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of its own, 128 MiB, where we may mount one; else the test does not apply."""
    if os.geteuid() != 0:
        # Elsewhere a machine may lack what it takes; where every change is judged it must not.
        (pytest.fail if os.environ.get("CI") else pytest.skip)("mounting a filesystem needs root")
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(128 * _MIB)
    # Not every PATH leads to where an administrator's programs are.
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    for command in (["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, folder]):
        words = [str(part) for part in command]
        subprocess.run(words, check=True, capture_output=True, env=environment)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def fill(client: fila.Client) -> tuple[int, fila.errors.ExhaustedError]:
    """Enqueue until the broker refuses; how many it took, and its words."""
    for count in range(10_000):
        try:
            client.enqueue("disk", _PAYLOAD)
        except fila.errors.ExhaustedError as refusal:
            return count, refusal
    raise AssertionError("the broker never refused")


def consume_all(client: fila.Client, count: int) -> None:
    taken = 0
    while taken < count:
        messages = client.lease("disk", max_messages=50, wait=5.0)
        assert messages, f"{count - taken} messages did not come"
        for message in messages:
            client.ack(message)
        taken += len(messages)
    client.flush()


def enqueue_when_there_is_room(client: fila.Client) -> float:
    started = time.monotonic()
    while time.monotonic() - started < _WAIT_SECONDS_MAX:
        try:
            client.enqueue("disk", _PAYLOAD)
        except fila.errors.ExhaustedError:
            time.sleep(0.1)
        else:
            return time.monotonic() - started
    raise AssertionError("enqueue did not go on after there was room again")


@pytest.mark.slow
@pytest.mark.proof
def test_a_full_disk_refuses_enqueues_and_nothing_else(small_disk: Path) -> None:
    with BrokerProcess(small_disk / "data") as broker, fila.Client(broker.address) as client:
        client.admin.create_queue("disk", visibility_timeout_ms=60_000)

        stored, refusal = fill(client)
        consume_all(client, stored)
        resumed_after = enqueue_when_there_is_room(client)

        assert stored > 200
        assert "min_free_bytes" in str(refusal)
        assert broker.is_running
        proof.record(
            "full_disk",
            messages_before_refusal=stored,
            payload_bytes=len(_PAYLOAD),
            refusal=str(refusal),
            resumed_after_seconds=round(resumed_after, 1),
        )


@pytest.mark.slow
@pytest.mark.proof
def test_a_broker_killed_on_a_full_disk_starts_again_with_everything(small_disk: Path) -> None:
    with BrokerProcess(small_disk / "data") as broker:
        with fila.Client(broker.address) as client:
            client.admin.create_queue("disk")
            stored, _ = fill(client)
        broker.kill()

    with BrokerProcess(small_disk / "data") as broker, fila.Client(broker.address) as client:
        assert client.admin.stats("disk").depth == stored
        consume_all(client, stored)
        enqueue_when_there_is_room(client)


def test_enqueue_goes_on_when_somebody_else_frees_space(tmp_path: Path) -> None:
    ballast = tmp_path / "ballast"
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    reserve = 512 * _MIB
    # Others use this disk too: a wide margin on either side of the floor.
    environment = {"FILA_STORAGE__MIN_FREE_BYTES": str(free - reserve)}
    with (
        BrokerProcess(tmp_path / "data", environment=environment) as broker,
        fila.Client(broker.address) as client,
    ):
        client.admin.create_queue("disk")
        client.enqueue("disk", b"before")
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 2 * reserve)
        taken, refusal = fill(client)
        consume_all(client, 1 + taken)
        ballast.unlink()

        enqueue_when_there_is_room(client)

        assert "min_free_bytes" in str(refusal)
