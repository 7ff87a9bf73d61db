"""Weights, as a consumer of a real broker sees them: shares inside a backlog, and newcomers."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import fila
from tests import proof
from tests.integration.broker_process import BrokerProcess

WEIGHTS = {f"tenant-{weight}": weight for weight in (1, 2, 3, 4, 5)}
QUEUED = 10_000
FIRST = 1500
PERCENTAGE_POINTS_MAX = 1.0


@pytest.fixture
def client(tmp_path: Path) -> Iterator[fila.Client]:
    with BrokerProcess(tmp_path / "data") as broker, fila.Client(broker.address) as connected:
        connected.admin.create_queue("shares")
        yield connected


def fill(client: fila.Client, key: str, count: int, *, weight: int = 1) -> None:
    for start in range(0, count, 500):
        size = min(500, count - start)
        batch = [fila.NewMessage(b"x", fairness_key=key, weight=weight) for _ in range(size)]
        client.enqueue_batch("shares", batch)


def take(client: fila.Client, count: int) -> list[str]:
    """The keys of the next messages, in the order in which the broker chose them."""
    keys: list[str] = []
    while len(keys) < count:
        messages = client.lease("shares", max_messages=min(100, count - len(keys)), wait=5)
        assert messages, f"only {len(keys)} of {count} came"
        keys.extend(message.fairness_key for message in messages)
    return keys


@pytest.mark.proof
def test_weights_hold_at_every_point_of_a_backlog(client: fila.Client) -> None:
    for key, weight in WEIGHTS.items():
        fill(client, key, QUEUED // len(WEIGHTS), weight=weight)

    keys = take(client, FIRST)

    served = Counter[str]()
    worst = dict.fromkeys(WEIGHTS, 0.0)
    total_weight = sum(WEIGHTS.values())
    for point, key in enumerate(keys, 1):
        served[key] += 1
        for name, weight in WEIGHTS.items():
            off = abs(served[name] - point * weight / total_weight)
            worst[name] = max(worst[name], off)
    points_off = {
        name: abs(served[name] / FIRST - weight / total_weight) * 100
        for name, weight in WEIGHTS.items()
    }
    proof.record("shares", served=served, worst_off=worst, percentage_points_off=points_off)
    assert all(worst[name] <= weight + 1 for name, weight in WEIGHTS.items()), worst
    assert max(points_off.values()) <= PERCENTAGE_POINTS_MAX


@pytest.mark.proof
def test_a_newcomer_waits_one_turn_of_each_other_key(client: fila.Client) -> None:
    backlog = proof.length(reduced=5_000, full=100_000)
    fill(client, "noisy", backlog, weight=7)
    fill(client, "other", 100, weight=2)
    take(client, 50)

    fill(client, "quiet", 1)

    keys = take(client, 20)
    waited = keys.index("quiet")
    proof.record("newcomer", backlog=backlog, messages_before_it=waited)
    assert waited <= 7 + 2
