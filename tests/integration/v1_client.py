"""A client that knows the fixed contract alone, with the stubs that protoc made of it.

Run as a program of its own: `fila.v1` can exist once in a process. Arguments: the broker's address
and the folder with the stubs. Prints which checks went well, and why the others did not, as JSON.
"""

import importlib
import json
import sys
import traceback
import uuid
from collections.abc import Callable
from typing import Any

import grpc

DEADLINE_S = 10
CHECKS: list[Callable[["Client"], None]] = []


def check(function: Callable[["Client"], None]) -> Callable[["Client"], None]:
    """Mark as one."""
    CHECKS.append(function)
    return function


class Client:
    """Both stubs on one channel."""

    def __init__(self, address: str) -> None:
        # Made by protoc, in the folder that the test names.
        self.pb: Any = importlib.import_module("fixed_v1_pb2")
        stubs: Any = importlib.import_module("fixed_v1_pb2_grpc")
        channel = grpc.insecure_channel(address)
        self.fila = stubs.FilaServiceStub(channel)
        self.admin = stubs.FilaAdminStub(channel)

    def queue(self, **config: int) -> str:
        """A new queue."""
        name = f"q-{uuid.uuid4()}"
        settings = self.pb.QueueConfig(**config)
        request = self.pb.CreateQueueRequest(name=name, config=settings)
        created = self.admin.CreateQueue(request, timeout=DEADLINE_S)
        assert created.queue_id == name
        return name

    def enqueue(self, queue: str, payload: bytes = b"x", **headers: str) -> str:
        """Its id."""
        request = self.pb.EnqueueRequest(queue=queue, payload=payload, headers=headers)
        return str(self.fila.Enqueue(request, timeout=DEADLINE_S).message_id)

    def consume(self, queue: str) -> Any:
        """The stream."""
        return self.fila.Consume(self.pb.ConsumeRequest(queue=queue), timeout=DEADLINE_S)

    def ack(self, queue: str, message_id: str) -> None:
        """Settle as done."""
        request = self.pb.AckRequest(queue=queue, message_id=message_id)
        self.fila.Ack(request, timeout=DEADLINE_S)

    def nack(self, queue: str, message_id: str) -> None:
        """Settle as failed."""
        request = self.pb.NackRequest(queue=queue, message_id=message_id, error="did not work")
        self.fila.Nack(request, timeout=DEADLINE_S)

    def stats(self, queue: str) -> Any:
        """In numbers."""
        return self.admin.GetStats(self.pb.GetStatsRequest(queue=queue), timeout=DEADLINE_S)


def refused(code: str, call: Callable[..., Any], *arguments: object) -> None:
    """Assert that a call ends with this status, and says why."""
    try:
        call(*arguments)
    except grpc.RpcError as error:
        found = error
    else:
        raise AssertionError(f"expected {code}")
    assert found.code().name == code, (found.code(), found.details())
    assert found.details()


@check
def a_message_comes_as_it_was_sent(client: Client) -> None:
    queue = client.queue()
    message_id = client.enqueue(queue, b"\x00payload", tenant="acme")
    stream = client.consume(queue)
    message = next(stream).message
    assert message.id == message_id
    assert message.payload == b"\x00payload"
    assert message.headers == {"tenant": "acme"}
    assert message.metadata.queue_id == queue
    assert message.metadata.fairness_key == "default"
    assert message.metadata.weight == 1
    assert message.metadata.attempt_count == 0
    assert message.timestamps.leased_at.seconds >= message.timestamps.enqueued_at.seconds > 0
    stream.cancel()


@check
def an_acked_message_is_gone(client: Client) -> None:
    queue = client.queue()
    message_id = client.enqueue(queue)
    stream = client.consume(queue)
    assert next(stream).message.id == message_id
    client.ack(queue, message_id)
    assert client.stats(queue).depth == 0
    refused("NOT_FOUND", client.ack, queue, message_id)
    stream.cancel()


@check
def a_nacked_message_comes_again_with_its_attempts(client: Client) -> None:
    queue = client.queue()
    message_id = client.enqueue(queue)
    stream = client.consume(queue)
    assert next(stream).message.metadata.attempt_count == 0
    client.nack(queue, message_id)
    again = next(stream).message
    assert (again.id, again.metadata.attempt_count) == (message_id, 1)
    refused("NOT_FOUND", client.nack, queue, "01890000-0000-7000-8000-000000000000")
    stream.cancel()


@check
def a_stream_goes_on_while_messages_come(client: Client) -> None:
    queue = client.queue()
    stream = client.consume(queue)
    for number in range(50):
        client.enqueue(queue, b"%d" % number)
    for number in range(50):
        message = next(stream).message
        assert message.payload == b"%d" % number
        client.ack(queue, message.id)
    stream.cancel()


@check
def a_client_that_states_no_credit_gets_256(client: Client) -> None:
    queue = client.queue()
    for _ in range(300):
        client.enqueue(queue)
    stream = client.consume(queue)
    taken = [next(stream).message.id for _ in range(256)]
    assert client.stats(queue).in_flight == 256
    client.ack(queue, taken[0])
    next(stream)
    assert client.stats(queue).in_flight == 256
    stream.cancel()


@check
def unknown_queues_are_not_found(client: Client) -> None:
    refused("NOT_FOUND", client.enqueue, "none")
    refused("NOT_FOUND", lambda: next(client.consume("none")))
    refused("NOT_FOUND", client.ack, "none", "01890000-0000-7000-8000-000000000000")
    refused("NOT_FOUND", client.stats, "none")


@check
def malformed_ids_are_invalid(client: Client) -> None:
    queue = client.queue()
    refused("INVALID_ARGUMENT", client.ack, queue, "not an id")
    refused("INVALID_ARGUMENT", client.nack, queue, "")


@check
def a_queue_is_created_listed_and_deleted(client: Client) -> None:
    queue = client.queue(visibility_timeout_ms=5000)
    stream = client.consume(queue)
    client.enqueue(queue)
    next(stream)
    create = client.pb.CreateQueueRequest(name=queue)
    refused("ALREADY_EXISTS", client.admin.CreateQueue, create)
    listed = {
        info.name: info for info in client.admin.ListQueues(client.pb.ListQueuesRequest()).queues
    }
    assert listed[queue].depth == listed[queue].in_flight == listed[queue].active_consumers == 1
    assert f"{queue}.dlq" in listed
    client.admin.DeleteQueue(client.pb.DeleteQueueRequest(queue=queue))
    refused("NOT_FOUND", lambda: next(stream))
    refused("NOT_FOUND", client.admin.DeleteQueue, client.pb.DeleteQueueRequest(queue=queue))
    names = [info.name for info in client.admin.ListQueues(client.pb.ListQueuesRequest()).queues]
    assert queue not in names
    assert f"{queue}.dlq" not in names


@check
def short_visibility_timeouts_and_bad_names_are_invalid(client: Client) -> None:
    pb = client.pb
    for timeout_ms in (1, 999):
        config = pb.QueueConfig(visibility_timeout_ms=timeout_ms)
        request = pb.CreateQueueRequest(name="short", config=config)
        refused("INVALID_ARGUMENT", client.admin.CreateQueue, request)
    for name in ("", "a\nb", "x" * 252):
        request = pb.CreateQueueRequest(name=name)
        refused("INVALID_ARGUMENT", client.admin.CreateQueue, request)
    client.queue(visibility_timeout_ms=0)


@check
def settings_are_kept_listed_and_deleted(client: Client) -> None:
    pb, admin = client.pb, client.admin
    prefix = f"p-{uuid.uuid4()}:"
    admin.SetConfig(pb.SetConfigRequest(key=prefix + "b", value="2"))
    admin.SetConfig(pb.SetConfigRequest(key=prefix + "a", value="1"))
    assert admin.GetConfig(pb.GetConfigRequest(key=prefix + "a")).value == "1"
    assert admin.GetConfig(pb.GetConfigRequest(key=prefix + "c")).value == ""
    found = admin.ListConfig(pb.ListConfigRequest(prefix=prefix))
    assert [(entry.key[-1], entry.value) for entry in found.entries] == [("a", "1"), ("b", "2")]
    assert found.total_count == 2
    admin.SetConfig(pb.SetConfigRequest(key=prefix + "a", value=""))
    assert admin.ListConfig(pb.ListConfigRequest(prefix=prefix)).total_count == 1
    refused("INVALID_ARGUMENT", admin.SetConfig, pb.SetConfigRequest(key="", value="x"))
    refused("INVALID_ARGUMENT", admin.SetConfig, pb.SetConfigRequest(key="k" * 257, value="x"))
    refused("INVALID_ARGUMENT", admin.SetConfig, pb.SetConfigRequest(key="k", value="v" * 1025))


@check
def a_queue_is_seen_in_numbers(client: Client) -> None:
    queue = client.queue()
    for _ in range(3):
        client.enqueue(queue)
    stats = client.stats(queue)
    assert (stats.depth, stats.in_flight, stats.active_fairness_keys) == (3, 0, 1)
    assert stats.quantum == 1
    assert [(key.key, key.pending_count, key.weight) for key in stats.per_key_stats] == [
        ("default", 3, 1)
    ]


def main() -> None:
    """Run every check."""
    address, stubs = sys.argv[1:]
    sys.path.insert(0, stubs)
    client = Client(address)
    results = {}
    for function in CHECKS:
        try:
            function(client)
            results[function.__name__] = ""
        except Exception:  # noqa: BLE001 - reported by the test
            results[function.__name__] = traceback.format_exc()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
