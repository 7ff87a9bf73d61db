"""How a broker starts and ends: what it refuses, what it finishes, what it finds again."""

import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fila import testing
from fila.storage.rocksdb import RocksStorage
from fila.wire._pb import admin_pb2 as a
from fila.wire._pb import messages_pb2 as m
from fila.wire._pb import service_pb2 as s
from tests.integration.broker_process import BrokerProcess
from tests.integration.rpc import RefusedError, Rpc
from tests.integration.test_server_work import Worker, wait_until

NOTHING: dict[str, str] = {}


def program(
    *arguments: str | Path, environment: dict[str, str] = NOTHING
) -> subprocess.CompletedProcess[str]:
    """`fila-server`, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "fila.server.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**environment, "PYTHONPATH": ":".join(sys.path)},
        check=False,
    )


def assert_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1
    assert done.stderr.startswith("fila-server: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def test_a_second_server_on_the_directory_is_refused(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        second = program("--data-dir", broker.data_dir, "--listen", "127.0.0.1:0")

        assert_one_line(second, str(broker.data_dir), "in use")
        assert broker.is_running


def test_a_port_in_use_is_refused_before_the_directory_is_touched(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        other = program("--data-dir", tmp_path / "other", "--listen", broker.address)

    assert_one_line(other, broker.address, "in use")
    assert not (tmp_path / "other").exists()


def test_what_a_person_can_get_wrong_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/file").touch()
    (tmp_path / "fila.toml").write_text("[sever]\n")
    free = ("--listen", "127.0.0.1:0")

    assert_one_line(program("--data-dir", tmp_path / "foreign", *free), "foreign", "not empty")
    assert_one_line(program("--data-dir", tmp_path / "fila.toml" / "x", *free), "fila.toml")
    assert_one_line(program("--config", tmp_path / "fila.toml"), "did you mean server?")
    assert_one_line(program("--config", tmp_path / "none"), "cannot be read")
    assert_one_line(program("--listen", "nowhere"), "host:port")
    assert_one_line(program("--listen", "nowhere.invalid:1"), "nowhere.invalid")
    assert_one_line(program("--listen", "n" * 300 + ":1"), "no host has such a name")
    assert_one_line(program("verify", tmp_path / "none"), "none")
    assert_one_line(program(environment={"FILA_STORAGE__FSYNC": "no"}), "FILA_STORAGE__FSYNC")
    assert program("--no-such-flag").returncode == 2


def test_check_config_prints_what_would_be_used_and_starts_nothing(tmp_path: Path) -> None:
    done = program("--check-config", "--data-dir", tmp_path / "data", "--listen", "[::1]:0")

    assert done.returncode == 0
    assert 'listen_addr = "[::1]:0"  # command line' in done.stdout
    assert not (tmp_path / "data").exists()


def test_a_restart_finds_everything_again(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        queue = rpc.queue(max_attempts=2, retry_delay_ms=0)
        first, *_ = rpc.enqueue(queue, b"leased", b"ready", b"also ready")
        rpc.enqueue(queue, b"later", options=m.MessageOptions(delay_ms=3_600_000))
        rpc.call(a.SetConfigRequest(key="k", value="v"), a.SetConfigResponse)
        rpc.call(a.PauseQueueRequest(queue=rpc.queue()), a.PauseQueueResponse)
        [leased] = rpc.lease(queue).messages
        before = rpc.call(a.ListQueuesRequest(), a.ListQueuesResponse)
        assert broker.terminate() == 0

    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        after = rpc.call(a.ListQueuesRequest(), a.ListQueuesResponse)
        config = rpc.call(a.GetConfigRequest(key="k"), a.GetConfigResponse)
        stats = rpc.stats(queue)
        token = leased.delivery.lease_token
        ack = s.AckRequest(queue=queue, message_id=first, lease_token=token)
        rpc.call(ack, s.AckResponse)
        payloads = [message.payload for message in rpc.lease(queue, 9).messages]
        settings = rpc.call(a.GetQueueRequest(queue=queue), a.GetQueueResponse).config

    assert after == before
    assert config.value == "v"
    assert (stats.ready, stats.delayed, stats.in_flight) == (2, 1, 1)
    assert payloads == [b"ready", b"also ready"]
    assert settings.max_attempts == 2


def test_sigterm_finishes_what_is_in_flight_and_exits_with_0(tmp_path: Path) -> None:
    stored: list[bytes] = []
    refusals: list[RefusedError] = []
    started = threading.Event()

    def produce(rpc: Rpc, queue: str) -> None:
        batch = s.EnqueueBatchRequest(queue=queue, items=[s.EnqueueItem(payload=b"x")] * 50)
        while True:
            try:
                stored.append(rpc.call(batch, s.EnqueueBatchResponse).message_ids)
            except RefusedError as error:
                refusals.append(error)
                return
            started.set()

    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        queue = rpc.queue()
        worker = Worker(rpc, credit=5, release=True)
        worker.subscribe(queue)
        with ThreadPoolExecutor(8) as pool:
            for _ in range(8):
                pool.submit(produce, rpc, queue)
            assert started.wait(30)
            began = time.monotonic()
            assert broker.terminate() == 0
            took = time.monotonic() - began
        worker.leave()

    assert took < 8
    assert {error.code for error in refusals} <= {"UNAVAILABLE", "CANCELLED"}
    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        # An answer that was lost on the way may have been stored: never the other way round.
        assert rpc.stats(queue).depth >= 50 * len(stored) > 0


def test_a_worker_may_settle_after_the_restart_what_it_held_before(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        queue = rpc.queue()
        rpc.enqueue(queue, b"x")
        worker = Worker(rpc, credit=5, release=True)
        worker.subscribe(queue)
        [message] = worker.deliveries(1)
        broker.terminate()
        with pytest.raises(grpc.RpcError, match="shutting down"):
            next(worker.responses)
        worker.finish()

    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        token = message.delivery.lease_token
        ack = s.AckRequest(queue=queue, message_id=message.id, lease_token=token)
        rpc.call(ack, s.AckResponse)
        assert rpc.stats(queue).depth == 0


def test_a_long_poll_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path / "data") as broker,
        Rpc(broker.address) as rpc,
        ThreadPoolExecutor(1) as pool,
    ):
        queue = rpc.queue()
        polling = pool.submit(rpc.lease, queue, wait_ms=60_000)
        wait_until(lambda: rpc.stats(queue).active_consumers == 1)
        began = time.monotonic()

        assert broker.terminate() == 0

        assert time.monotonic() - began < 5
        with pytest.raises(RefusedError, match="UNAVAILABLE"):
            polling.result()


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        health = health_pb2_grpc.HealthStub(rpc.channel)
        watch = iter(health.Watch(health_pb2.HealthCheckRequest(), timeout=30))
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        broker.send_signal(signal.SIGTERM)
        # It is on its way down when it says so.
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        broker.send_signal(signal.SIGTERM)

        assert broker.wait() in (0, 128 + signal.SIGTERM)


def test_a_backup_of_a_running_broker_is_a_data_directory(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        queue = rpc.queue()
        rpc.enqueue(queue, b"before")
        done = program("backup", "--data-dir", broker.data_dir, tmp_path / "copy")
        again = program("backup", "--data-dir", broker.data_dir, tmp_path / "copy")
        rpc.enqueue(queue, b"after")

    assert done.returncode == 0, done.stderr
    assert_one_line(again, "exists already")
    assert program("verify", tmp_path / "copy").returncode == 0
    with BrokerProcess(tmp_path / "copy") as broker, Rpc(broker.address) as rpc:
        assert [message.payload for message in rpc.lease(queue, 9).messages] == [b"before"]


def test_a_long_backup_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, answered = threading.Event(), threading.Event()
    copy = RocksStorage.checkpoint

    def copy_for_long(store: RocksStorage, target: Path) -> None:
        begun.set()
        assert answered.wait(30), "no call was answered while the backup ran"
        copy(store, target)

    monkeypatch.setattr(RocksStorage, "checkpoint", copy_for_long)
    with (
        testing.broker() as broker,
        Rpc(broker.address) as rpc,
        ThreadPoolExecutor(1) as elsewhere,
    ):
        request = a.BackupRequest(target=str(tmp_path / "copy"))
        backup = elsewhere.submit(rpc.call, request, a.BackupResponse)
        assert begun.wait(30)
        rpc.enqueue(rpc.queue(), b"meanwhile")
        answered.set()
        backup.result(30)

    assert program("verify", tmp_path / "copy").returncode == 0


def test_a_backup_is_never_that_of_another_broker_that_took_over_the_address(
    tmp_path: Path,
) -> None:
    with BrokerProcess(tmp_path / "data") as mine, Rpc(mine.address) as rpc:
        queue = rpc.queue()
        mine.kill()
    with BrokerProcess(tmp_path / "other", listen=mine.address) as other:
        done = program("backup", "--data-dir", mine.data_dir, tmp_path / "copy")
        assert other.is_running

    assert (done.returncode, done.stderr) == (0, "")
    with BrokerProcess(tmp_path / "copy") as copy, Rpc(copy.address) as rpc:
        assert rpc.stats(queue).depth == 0


@pytest.mark.parametrize("left", [b"", b"\xff\xfe\x00", b"127.0.0.1:1", b"a b c\n", b"nobody here"])
def test_whatever_lies_where_the_address_was_a_backup_can_be_made(
    tmp_path: Path, left: bytes
) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        broker.terminate()
    (tmp_path / "data/ADDRESS").write_bytes(left)

    done = program("backup", "--data-dir", broker.data_dir, tmp_path / "copy")

    assert (done.returncode, done.stderr) == (0, "")
    assert program("verify", tmp_path / "copy").returncode == 0


def test_a_start_that_fails_late_is_one_line_too(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with BrokerProcess(tmp_path / "data") as broker:
        broker.terminate()
    (tmp_path / "data/ADDRESS").mkdir()

    refused = program("--data-dir", broker.data_dir, "--listen", "127.0.0.1:0")

    assert_one_line(refused, "ADDRESS", "directory")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_each_signal_that_asks_for_an_end_ends_it_in_good_order(
    tmp_path: Path, number: signal.Signals
) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        broker.send_signal(number)

        assert broker.wait() == 0
        assert not (tmp_path / "data/ADDRESS").exists()


def test_a_data_directory_without_a_broker_is_backed_up_too(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        queue = rpc.queue()
        # No goodbye: the address that it left behind leads nowhere.
        broker.kill()

    done = program("backup", "--data-dir", tmp_path / "data", tmp_path / "copy")

    assert done.returncode == 0, done.stderr
    with BrokerProcess(tmp_path / "copy") as broker, Rpc(broker.address) as rpc:
        assert rpc.stats(queue).depth == 0


def test_low_disk_refuses_enqueues_shows_in_health_and_lets_the_rest_go_on(
    tmp_path: Path,
) -> None:
    with BrokerProcess(tmp_path / "data") as broker, Rpc(broker.address) as rpc:
        queue = rpc.queue()
        rpc.enqueue(queue, b"x")
        broker.terminate()

    environment = {"FILA_STORAGE__MIN_FREE_BYTES": str(1 << 60)}
    with (
        BrokerProcess(tmp_path / "data", environment=environment) as broker,
        Rpc(broker.address) as rpc,
    ):
        with pytest.raises(RefusedError, match=f"RESOURCE_EXHAUSTED.*{1 << 60}.*min_free_bytes"):
            rpc.enqueue(queue, b"y")
        [message] = rpc.lease(queue).messages
        rpc.call(s.AckRequest(queue=queue, message_id=message.id), s.AckResponse)
        health = health_pb2_grpc.HealthStub(rpc.channel)
        storage = health.Check(health_pb2.HealthCheckRequest(service="fila.storage"), timeout=10)
        overall = health.Check(health_pb2.HealthCheckRequest(), timeout=10)

    assert storage.status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert overall.status == health_pb2.HealthCheckResponse.SERVING


def test_a_client_may_ask_often_whether_the_broker_is_there(tmp_path: Path) -> None:
    # An idle consumer pings; a broker that took it for abuse would end its stream every minute.
    settings, ping, goaway = 4, 6, 7
    with BrokerProcess(tmp_path / "data") as broker:
        host, _, port = broker.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(settings))
            received = connection.makefile("rb")
            for number in range(5):
                connection.sendall(_frame(ping, number.to_bytes(8)))
                kind = 0
                while kind != ping:
                    head = received.read(9)
                    kind = head[3]
                    received.read(int.from_bytes(head[:3]))
                    assert kind != goaway, f"after {number} pings"
                # The interval is what is tested.
                time.sleep(1.1)


def _frame(kind: int, content: bytes = b"") -> bytes:
    """An HTTP/2 frame of the connection itself, without flags."""
    return len(content).to_bytes(3) + bytes([kind, 0]) + bytes(4) + content
