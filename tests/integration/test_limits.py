"""Limits on a real broker: through SIGKILL, beside the idle and the free, and by weight.

When was a token taken? The broker stamps a message with the time at which it was leased, which is
that moment. A client can't see it: it sees a reply, some time after the token was taken, because a
delivery waits for the disk; so its own stamps may lie closer together than the tokens were taken.
What a client can say for certain is that a message in its reply was leased after the call began and
before the reply was there: what such calls brought within a window was taken within that window.
"""

import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import fila
from fila.wire._pb import admin_pb2 as a
from tests import proof
from tests.integration.broker_process import BrokerProcess
from tests.integration.rpc import RefusedError, Rpc

RATE, BURST = 40, 10
ROUNDS = proof.length(reduced=6, full=100)
QUEUE = "limited"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as running:
        yield running


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[fila.Client]:
    with fila.Client(broker.address) as connected:
        connected.admin.create_queue(QUEUE)
        yield connected


def fill(
    client: fila.Client,
    count: int,
    *throttle_keys: str,
    key: str = "",
    weight: int = 1,
    queue: str = QUEUE,
) -> None:
    for start in range(0, count, 500):
        batch = [
            fila.NewMessage(
                b"%d" % number, fairness_key=key or None, weight=weight, throttle_keys=throttle_keys
            )
            for number in range(start, min(start + 500, count))
        ]
        client.enqueue_batch(queue, batch)


def worst_excess(windows: list[tuple[float, float, int]]) -> float:
    """By how much the fullest stretch of consecutive windows passed the limit; negative if none."""
    worst = -float("inf")
    for first, (begin, _, _) in enumerate(windows):
        count = 0
        for _, end, taken in windows[first:]:
            count += taken
            worst = max(worst, count - BURST - RATE * (end - begin))
    return worst


@pytest.mark.proof
def test_a_limit_holds_over_every_window_of_a_broker_that_is_killed_again_and_again(
    tmp_path: Path,
) -> None:
    rng = random.Random(3)
    calls: list[tuple[float, float, int]] = []
    leased: list[float] = []
    for number in range(ROUNDS):
        with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
            if not number:
                with fila.Client(broker.address) as client:
                    client.admin.create_queue(QUEUE)
                    client.admin.set_config("throttle:provider:burst", str(BURST))
                    client.admin.set_config("throttle:provider:rate", str(RATE))
                    fill(client, max(2000, 60 * ROUNDS), "provider")
            until = time.monotonic() + rng.uniform(0.05, 0.7)
            while time.monotonic() < until:
                begin = time.monotonic()
                messages = rpc.lease(QUEUE, 100, wait_ms=50).messages
                calls.append((begin, time.monotonic(), len(messages)))
                leased += [m.timestamps.leased_at.ToNanoseconds() / 1e9 for m in messages]
            broker.kill()

    seconds = calls[-1][1] - calls[0][0]
    stamped = [(at, at, count) for at, count in sorted(Counter(leased).items())]
    by_stamp, by_call = worst_excess(stamped), worst_excess(calls)
    proof.record(
        "limits-killed",
        rounds=ROUNDS,
        seconds=seconds,
        delivered=len(leased),
        allowed=BURST + RATE * seconds,
        worst_excess_by_stamp=by_stamp,
        worst_excess_by_call=by_call,
    )
    assert len(leased) > BURST
    # A millionth of a token for the times, which are floats here.
    assert by_stamp <= 1e-6
    assert by_call <= 1e-6


@pytest.mark.proof
def test_an_idle_queue_that_limits_hold_back_uses_no_time(
    broker: BrokerProcess, client: fila.Client
) -> None:
    for number in range(50):
        client.admin.set_config(f"throttle:p{number}:rate", "0" if number % 2 else "0.02")
    for number in range(100):
        fill(client, 50, f"p{number % 50}", f"p{(number + 1) % 50}", key=f"key-{number}")
    process = psutil.Process(broker.pid)

    with client.consume(QUEUE, prefetch=1000):
        while client.admin.stats(QUEUE).throttled < 4000:
            time.sleep(0.05)
        before, begin = process.cpu_times(), time.monotonic()
        time.sleep(proof.length(reduced=4, full=30))
        after, seconds = process.cpu_times(), time.monotonic() - begin

    share = (after.user + after.system - before.user - before.system) / seconds
    proof.record("limits-idle", cpu_share=share, seconds=seconds)
    assert share < 0.01


def cpu_for(broker: BrokerProcess, client: fila.Client, queue: str, count: int) -> float:
    """Server CPU time per message leased and acked."""
    process = psutil.Process(broker.pid)
    before = process.cpu_times()
    left = count
    while left:
        messages = client.lease(queue, max_messages=min(100, left), wait=5)
        assert messages
        for message in messages:
            client.ack(message)
        left -= len(messages)
    client.flush()
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / count


@pytest.mark.proof
def test_a_free_key_among_9999_throttled_ones_is_served_at_full_speed(
    broker: BrokerProcess, client: fila.Client
) -> None:
    count, rounds = proof.length(reduced=2000, full=4000), proof.length(reduced=5, full=15)
    client.admin.create_queue("alone")
    client.admin.set_config("throttle:exhausted:rate", "0")
    for number in range(0, 9_999, 500):
        keys = [f"key-{each}" for each in range(number, min(number + 500, 9_999))]
        for _ in range(9):
            batch = [
                fila.NewMessage(b"x", fairness_key=key, throttle_keys=["exhausted"]) for key in keys
            ]
            client.enqueue_batch(QUEUE, batch)
    for queue in (QUEUE, "alone"):
        fill(client, (rounds + 1) * count, key="free", queue=queue)
        cpu_for(broker, client, queue, count)

    ratios = []
    for _ in range(rounds):
        alone = cpu_for(broker, client, "alone", count)
        ratios.append(cpu_for(broker, client, QUEUE, count) / alone)

    proof.record("limits-free-key", ratios=ratios, median=statistics.median(ratios))
    assert statistics.median(ratios) < 1.4
    assert client.admin.stats(QUEUE).throttled == 9_999 * 9


@pytest.mark.proof
def test_tokens_of_a_provider_go_one_to_three_to_tenants_of_weight_one_and_three(
    client: fila.Client,
) -> None:
    client.admin.set_config("throttle:provider:burst", "1")
    client.admin.set_config("throttle:provider:rate", "50")
    fill(client, 2000, "provider", key="small")
    fill(client, 2000, "provider", key="big", weight=3)
    count = proof.length(reduced=160, full=1600)
    served: Counter[str] = Counter()

    with client.consume(QUEUE, prefetch=64) as consumer:
        for message in consumer:
            client.ack(message)
            served[message.fairness_key] += 1
            if served.total() == count:
                break

    proof.record("limits-weights", served=served)
    assert abs(served["big"] - 3 * served["small"]) <= 4


def test_an_exhausted_provider_does_not_hold_up_the_other_one(client: fila.Client) -> None:
    client.admin.set_config("throttle:exhausted:rate", "0")
    client.admin.set_config("throttle:good:rate", "100000")
    for number in range(300):
        for provider in ("exhausted", "good"):
            client.enqueue(QUEUE, b"%d" % number, fairness_key="tenant", throttle_keys=[provider])

    taken: list[fila.Message] = []
    while len(taken) < 300:
        messages = client.lease(QUEUE, max_messages=300, wait=5)
        assert messages
        taken += messages

    assert [int(message.payload) for message in taken] == list(range(300))
    assert {message.throttle_keys for message in taken} == {("good",)}


def test_a_limit_raised_at_run_time_lets_go_what_waits(client: fila.Client) -> None:
    client.admin.set_config("throttle:p:rate", "0")
    fill(client, 30, "p")
    assert client.lease(QUEUE, max_messages=30, wait=0.1) == []

    client.admin.delete_config("throttle:p:rate")

    assert len(client.lease(QUEUE, max_messages=30, wait=5)) == 30


def test_stats_show_the_buckets_and_what_waits_for_them(client: fila.Client) -> None:
    client.admin.set_config("throttle:eu:mail:burst", "5")
    client.admin.set_config("throttle:eu:mail:rate", "0.001")
    fill(client, 20, "eu:mail")
    assert len(client.lease(QUEUE, max_messages=20, wait=1)) == 5
    client.lease(QUEUE, max_messages=20, wait=0.05)

    stats = client.admin.stats(QUEUE)

    (shown,) = stats.per_throttle_stats
    assert (shown.key, shown.rate_per_second, shown.burst) == ("eu:mail", 0.001, 5)
    assert 0 <= shown.tokens < 1
    assert shown.waiting == stats.throttled == 15


# Runtime configuration


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("throttle:p:rate", "nan", "throttle:p:rate is 'nan'"),
        ("throttle:p:rate", "-1", "must be a number from 0"),
        ("throttle:p:rate", "inf", "must be a number"),
        ("throttle:p:rate", "1_0", "must be a number"),
        ("throttle:p:rate", "\u0663", "must be a number"),
        ("throttle:p:burst", "0.5", "must be a number from 1"),
        ("throttle:p:limit", "5", "sets nothing"),
        ("throttle::rate", "5", "sets nothing"),
        ("", "5", "config key"),
        ("k" * 257, "5", "256"),
        ("\u00e9" * 129, "5", "256"),
        ("key", "v" * 1025, "1024"),
        ("a\nb", "5", "config key"),
        ("a\x00b", "5", "config key"),
    ],
)
def test_what_is_refused_says_why_and_is_not_stored(
    broker: BrokerProcess, key: str, value: str, says: str
) -> None:
    with Rpc(broker.address) as rpc:
        with pytest.raises(RefusedError) as refused:
            rpc.call(a.SetConfigRequest(key=key, value=value), a.SetConfigResponse)
        listed = rpc.call(a.ListConfigRequest(), a.ListConfigResponse)

    assert refused.value.code == "INVALID_ARGUMENT"
    assert says in refused.value.details
    assert "\n" not in refused.value.details
    assert list(listed.entries) == []


def test_settings_are_stored_listed_by_prefix_and_deleted(tmp_path: Path) -> None:
    settings = {"a:one": "1", "a:two": " \u00fc ", "b": "v" * 1024, "\u00e9" * 128: "x"}
    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        for key, value in settings.items():
            rpc.call(a.SetConfigRequest(key=key, value=value), a.SetConfigResponse)
        broker.kill()

    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        listed = rpc.call(a.ListConfigRequest(), a.ListConfigResponse)
        some = rpc.call(a.ListConfigRequest(prefix="a:"), a.ListConfigResponse)
        none = rpc.call(a.GetConfigRequest(key="nobody"), a.GetConfigResponse)
        one = rpc.call(a.GetConfigRequest(key="a:two"), a.GetConfigResponse)
        rpc.call(a.SetConfigRequest(key="a:one", value=""), a.SetConfigResponse)
        emptied = rpc.call(a.GetConfigRequest(key="a:one"), a.GetConfigResponse)
        deleted = rpc.call(a.DeleteConfigRequest(key="b"), a.DeleteConfigResponse)
        again = rpc.call(a.DeleteConfigRequest(key="b"), a.DeleteConfigResponse)

    assert {entry.key: entry.value for entry in listed.entries} == settings
    assert [entry.key for entry in listed.entries] == sorted(settings)
    assert (listed.total_count, some.total_count) == (4, 2)
    assert [entry.key for entry in some.entries] == ["a:one", "a:two"]
    assert (none.value, none.found) == ("", False)
    assert (one.value, one.found) == (" \u00fc ", True)
    assert (emptied.value, emptied.found) == ("", False)
    assert (deleted.found, again.found) == (True, False)


def test_the_sdk_says_in_one_line_what_is_no_limit(client: fila.Client) -> None:
    with pytest.raises(fila.errors.InvalidArgumentError, match="throttle:p:rate is 'many'"):
        client.admin.set_config("throttle:p:rate", "many")

    assert client.admin.get_config("throttle:p:rate") is None
    assert client.admin.list_config("throttle:") == {}
