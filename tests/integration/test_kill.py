"""SIGKILL at random moments, with many calls in flight: what was answered holds."""

import random
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import fila
from tests import proof
from tests.integration.broker_process import BrokerProcess
from tests.integration.ledger_client import QUEUE

ROUNDS = proof.length(reduced=6, full=200)
IN_FLIGHT_MIN = 100
# Waited for: some are answered until the signal arrives.
_IN_FLIGHT_WANTED = 115
SEED = 20261118
_ROUND_SECONDS = (0.05, 0.6)
_FILL_SECONDS_MAX = 30.0


class Ledger:
    """What the clients said, read in a thread so that they never wait for the test."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read, args=(process,))
        self._thread.start()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.lines.extend(line.strip() for line in process.stdout)

    def complete(self) -> list[list[str]]:
        self._thread.join()
        return [line.split() for line in self.lines]


def read_gauge(path: Path) -> int:
    (value,) = struct.unpack("<q", path.read_bytes()[:8])
    return int(value)


def wait_until_calls_are_in_flight(gauge: Path) -> None:
    deadline = time.monotonic() + _FILL_SECONDS_MAX
    while read_gauge(gauge) < _IN_FLIGHT_WANTED:
        assert time.monotonic() < deadline, "the clients never had 100 calls in flight"
        time.sleep(0.001)


def judge(facts: list[list[str]]) -> dict[str, int]:
    """The figures of a ledger: what was promised against what was seen."""
    answered: dict[str, str] = {}
    ids: dict[str, set[str]] = {}
    acked: set[str] = set()
    figures = Counter[str]()
    for kind, number, *rest in facts:
        figures[kind] += 1
        if kind == "E":
            answered[number] = rest[0]
            ids.setdefault(number, set()).add(rest[0])
        elif kind == "D":
            ids.setdefault(number, set()).add(rest[0])
            figures["returned after its ack"] += number in acked
            figures["redelivered"] += figures[f"delivered {number}"] > 0
            figures[f"delivered {number}"] += 1
        elif kind == "A":
            acked.add(number)
    return {
        "submitted": figures["S"],
        "answered": figures["E"],
        "unknown": figures["U"],
        "delivered": figures["D"],
        "redelivered": figures["redelivered"],
        "acks answered": figures["A"],
        "lost": sum(1 for number in answered if not figures[f"delivered {number}"]),
        "returned after its ack": figures["returned after its ack"],
        "enqueued twice": sum(1 for known in ids.values() if len(known) > 1),
    }


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_a_broker_killed_at_random_keeps_every_promise(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    gauge = tmp_path / "gauge"
    gauge.write_bytes(bytes(8))
    in_flight = []
    broker = BrokerProcess(tmp_path / "data")
    address = broker.address
    with fila.Client(address) as client:
        client.admin.create_queue(QUEUE, visibility_timeout_ms=2000, max_attempts=0)
    command = [sys.executable, "-m", "tests.integration.ledger_client", address, str(gauge)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as clients:
        ledger = Ledger(clients)
        try:
            for _ in range(ROUNDS):
                time.sleep(chance.uniform(*_ROUND_SECONDS))
                wait_until_calls_are_in_flight(gauge)
                in_flight.append(read_gauge(gauge))
                broker.kill()
                broker.__exit__(None, None, None)
                broker = BrokerProcess(tmp_path / "data", listen=address)
            assert clients.stdin is not None
            clients.stdin.write("drain\n")
            clients.stdin.flush()
            facts = ledger.complete()
            assert clients.wait(60) == 0
            with fila.Client(address) as client:
                left = client.admin.stats(QUEUE).depth
        finally:
            clients.kill()
            broker.__exit__(None, None, None)

    figures = judge(facts)
    proof.record(
        "kill", seed=SEED, rounds=ROUNDS, in_flight_min=min(in_flight), left=left, **figures
    )
    assert min(in_flight) >= IN_FLIGHT_MIN, in_flight
    assert figures["lost"] == 0, figures
    assert figures["returned after its ack"] == 0, figures
    assert figures["enqueued twice"] == 0, figures
    assert left == 0, figures
    assert figures["answered"] > ROUNDS * 100, figures


def test_the_ledger_notices_what_it_is_there_for() -> None:
    facts = ["S 1", "E 1 a", "S 2", "E 2 b", "D 2 b", "A 2", "D 2 b", "S 3", "E 3 c", "D 3 d"]

    figures = judge([fact.split() for fact in facts])

    assert figures["lost"] == 1
    assert figures["returned after its ack"] == 1
    assert figures["enqueued twice"] == 1
