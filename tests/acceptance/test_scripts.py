"""The cookbook's scripts, on a real broker: what their text says is what they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import fila
from tests.acceptance.processes import ROOT, Broker, running_broker

SCRIPTS = ROOT / "examples/hooks"


@dataclass(frozen=True)
class Enqueued:
    """A message that comes in, and what it must have become."""

    script: str
    headers: Mapping[str, str]
    key: str = "default"
    weight: int = 1
    throttle_keys: tuple[str, ...] = ()
    cost: int = 1
    size: int = 0
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """A delivery that fails, for the so many-th time, and what must become of its message."""

    script: str
    error: str
    dead: bool = False
    # At least so long, and less than a second more.
    delay_s: float = 0
    throttle_keys: tuple[str, ...] = ()
    attempts: int = 1


ENQUEUED = (
    Enqueued("tenants", {"tenant": "acme"}, key="acme"),
    Enqueued("tenants", {}, key="anonymous"),
    Enqueued("paid_tiers", {"tenant": "acme", "plan": "team"}, key="acme", weight=3),
    Enqueued("paid_tiers", {"tenant": "acme", "plan": "gold"}, key="acme"),
    Enqueued("paid_tiers", {"plan": "team"}, weight=7, config={"weight:team": "7"}),
    Enqueued(
        "provider_limits",
        {"tenant": "acme", "provider": "mailjet"},
        key="acme",
        throttle_keys=("provider:mailjet",),
    ),
    Enqueued("provider_limits", {"tenant": "acme"}, key="acme"),
    Enqueued(
        "hierarchical_limits",
        {"tenant": "acme", "provider": "mailjet", "region": "eu"},
        key="acme",
        throttle_keys=("region:eu", "provider:mailjet", "provider:mailjet:tenant:acme"),
    ),
    Enqueued("hierarchical_limits", {}, key="anonymous", throttle_keys=("region:default",)),
    Enqueued("canary", {"tenant": "acme"}, key="acme"),
    Enqueued(
        "canary",
        {"tenant": "acme"},
        key="canary:acme",
        throttle_keys=("canary",),
        config={"canary:percent": "100"},
    ),
    Enqueued("feature_flag", {"tenant": "acme"}, key="acme", size=200_000),
    Enqueued(
        "feature_flag",
        {"tenant": "acme"},
        key="acme",
        cost=10,
        size=200_000,
        config={"feature:big_jobs_wait": "on"},
    ),
    Enqueued(
        "feature_flag", {"tenant": "acme"}, key="acme", config={"feature:big_jobs_wait": "on"}
    ),
)
FAILED = (
    Failed("retry_by_error", "Invalid address", dead=True),
    Failed("retry_by_error", "HTTP 429", delay_s=60, throttle_keys=("after-429",)),
    Failed("retry_by_error", "connection reset", delay_s=1),
    Failed("retry_by_error", "connection reset", delay_s=4, attempts=3),
    Failed("retry_by_error", "connection reset", dead=True, attempts=8),
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[fila.Client]:
    with fila.Client(broker.addr) as client:
        yield client


def _source(script: str) -> str:
    return (SCRIPTS / f"{script}.lua").read_text()


def test_every_script_has_its_cases() -> None:
    tried = {case.script for case in (*ENQUEUED, *FAILED)}

    assert {path.stem for path in Path(SCRIPTS).glob("*.lua")} == tried


@pytest.mark.parametrize("case", ENQUEUED, ids=lambda case: case.script)
def test_a_message_becomes_what_the_script_says(client: fila.Client, case: Enqueued) -> None:
    queue = f"in-{ENQUEUED.index(case)}"
    client.admin.create_queue(queue, on_enqueue_script=_source(case.script))
    for key, value in case.config.items():
        client.admin.set_config(key, value)

    client.enqueue(queue, bytes(case.size), headers=case.headers)
    (browsed,) = client.admin.browse(queue)
    for key in case.config:
        client.admin.delete_config(key)

    message = browsed.message
    assert (message.fairness_key, message.weight) == (case.key, case.weight)
    assert tuple(message.throttle_keys) == case.throttle_keys
    assert message.cost == case.cost


@pytest.mark.parametrize("case", FAILED, ids=lambda case: f"{case.error} {case.attempts}")
def test_a_failure_ends_as_the_script_says(client: fila.Client, case: Failed) -> None:
    queue = f"out-{FAILED.index(case)}"
    client.admin.create_queue(queue, retry_delay_ms=0)
    client.enqueue(queue, b"x")
    for _ in range(case.attempts - 1):
        (message,) = client.lease(queue, 1, wait=5)
        client.nack(message, case.error)
        client.flush()
    client.admin.update_queue(queue, on_failure_script=_source(case.script))

    (message,) = client.lease(queue, 1, wait=5)
    client.nack(message, case.error)
    client.flush()

    dead = list(client.admin.browse(f"{queue}.dlq"))
    waiting = list(client.admin.browse(queue))
    assert len(dead) == case.dead
    assert len(waiting) == (not case.dead)
    for browsed in waiting:
        assert browsed.due_at is not None
        delay_s = browsed.due_at.timestamp() - message.leased_at.timestamp()
        assert case.delay_s <= delay_s < case.delay_s + 10
        assert tuple(browsed.message.throttle_keys) == case.throttle_keys
