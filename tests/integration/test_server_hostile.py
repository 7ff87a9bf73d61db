"""Whatever is sent, the broker stays up, says whose mistake it is, and answers the next call."""

import random
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fila.wire._pb import admin_pb2, service_pb2
from fila.wire._pb import service_pb2 as s
from tests import proof
from tests.integration.broker_process import BrokerProcess
from tests.integration.rpc import RefusedError, Rpc

METHODS = [
    f"{name}/{method}"
    for module in (service_pb2, admin_pb2)
    for name, service in module.DESCRIPTOR.services_by_name.items()
    for method in service.methods_by_name
]
# What the broker may answer to something that means nothing. INTERNAL and UNKNOWN are our mistakes.
CALLERS_MISTAKES = {
    "ALREADY_EXISTS",
    "FAILED_PRECONDITION",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "RESOURCE_EXHAUSTED",
    "UNIMPLEMENTED",
}
ROUNDS = proof.length(reduced=60, full=2000)


def garbage(chance: random.Random) -> bytes:
    """Random bytes, or what looks like fields with random contents."""
    if chance.random() < 0.3:
        return chance.randbytes(chance.randrange(64))
    out = bytearray()
    for _ in range(chance.randrange(1, 6)):
        number, kind = chance.choice((1, 2, 3, 4, 5, 20, 21, 22)), chance.choice((0, 1, 2, 5))
        tag = number << 3 | kind
        out += bytes((tag,)) if tag < 128 else bytes((tag & 0x7F | 0x80, tag >> 7))
        match kind:
            case 0:
                out += chance.choice((b"\x00", b"\x01", b"\xff" * 9 + b"\x01"))
            case 1:
                out += chance.randbytes(8)
            case 5:
                out += chance.randbytes(4)
            case _:
                content = chance.choice((b"", b"q", b"\xff", chance.randbytes(16), b"\x0a\x01q"))
                out += bytes((len(content),)) + content
    return bytes(out)


def outcome(rpc: Rpc, method: str, data: bytes) -> str:
    """How a call ends, whatever kind of call it is."""
    call: Callable[..., Iterator[bytes]] = rpc.channel.stream_stream(
        f"/fila.v1.{method}", request_serializer=None, response_deserializer=None
    )
    stream = call(iter((data,)), timeout=0.5)
    try:
        for _ in stream:
            pass
    except Exception as error:
        code = getattr(error, "code", None)
        if code is None:
            raise
        return str(code().name)
    return "OK"


@pytest.mark.proof
@pytest.mark.parametrize("method", METHODS)
def test_garbage_is_the_callers_mistake(
    shared_broker: BrokerProcess, rpc: Rpc, method: str, tmp_path: Path
) -> None:
    # A queue that some of it may even be about.
    chance = random.Random(method)
    rounds = ROUNDS // 10 if method.endswith(("/Consume", "/Work", "/Lease")) else ROUNDS

    codes = Counter(outcome(rpc, method, garbage(chance)) for _ in range(rounds))

    name = method.rpartition("/")[2]
    proof.record(f"fuzz-{name}", seed=method, requests=rounds, answers=dict(codes))
    # A stream or a long poll that was understood goes on until its deadline.
    assert set(codes) <= {*CALLERS_MISTAKES, "OK", "DEADLINE_EXCEEDED"}
    assert shared_broker.is_running
    assert "Traceback" not in shared_broker.log_text
    assert rpc.stats(rpc.queue()).depth == 0


@pytest.mark.parametrize("method", METHODS)
def test_more_than_a_request_may_have_is_refused(
    shared_broker: BrokerProcess, rpc: Rpc, method: str
) -> None:
    too_large = bytes(65 * 1024 * 1024)

    assert outcome_of_large(rpc, method, too_large) == "RESOURCE_EXHAUSTED"
    assert shared_broker.is_running


def outcome_of_large(rpc: Rpc, method: str, data: bytes) -> str:
    call: Callable[..., Iterator[bytes]] = rpc.channel.stream_stream(
        f"/fila.v1.{method}", request_serializer=None, response_deserializer=None
    )
    try:
        for _ in call(iter((data,)), timeout=20):
            pass
    except Exception as error:
        code = getattr(error, "code", None)
        if code is None:
            raise
        return str(code().name)
    return "OK"


def test_a_message_over_the_limit_in_a_batch_costs_only_itself(rpc: Rpc) -> None:
    queue = rpc.queue()
    items = [s.EnqueueItem(payload=bytes(5 * 1024 * 1024)), s.EnqueueItem(payload=b"small")]

    response = rpc.call(s.EnqueueBatchRequest(queue=queue, items=items), s.EnqueueBatchResponse)

    assert [(error.index, error.code) for error in response.errors] == [(0, 3)]
    assert rpc.stats(queue).depth == 1


def test_what_is_not_even_http_is_cut_off(shared_broker: BrokerProcess, rpc: Rpc) -> None:
    host, _, port = shared_broker.address.rpartition(":")
    chance = random.Random(1)
    for _ in range(20):
        with socket.create_connection((host, int(port)), timeout=5) as line:
            try:
                line.sendall(chance.randbytes(5000))
            except OSError:
                # It had heard enough.
                continue

    assert rpc.stats(rpc.queue()).depth == 0


def test_deep_nesting_does_not_exhaust_the_parser(rpc: Rpc) -> None:
    nested = b""
    for _ in range(2000):
        size = len(nested)
        length = bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14))
        nested = b"\xa2\x01" + length + nested

    with pytest.raises(RefusedError) as caught:
        rpc.raw("FilaService/Enqueue", nested)

    assert caught.value.code == "INVALID_ARGUMENT"


def test_the_log_holds_no_payload_and_no_header_value(
    shared_broker: BrokerProcess, rpc: Rpc
) -> None:
    queue = rpc.queue()
    request = s.EnqueueRequest(queue=queue, payload=b"secret-1", headers={"h": "secret-2"})
    rpc.call(request, s.EnqueueResponse)
    [message] = rpc.lease(queue).messages
    nack = s.NackRequest(queue=queue, message_id=message.id, error="secret-3", dead_letter=True)
    rpc.call(nack, s.NackResponse)

    assert "secret" not in shared_broker.log_text
    proof.record("hostile_input", methods=len(METHODS), rounds_per_method=ROUNDS)
