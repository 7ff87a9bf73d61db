"""What a producer may send, and what is stored of it."""

import pytest

from fila.errors import InvalidArgumentError
from fila.model import Limits, Spec, Timing
from fila.wire._pb import messages_pb2, service_pb2
from fila.wire.intake import Columns, Intake, producer_sequence
from fila.wire.request import parse

SMALL = Limits(message_bytes_max=2000, header_bytes_max=100, headers_max=3, batch_messages_max=10)


def one(**fields: object) -> Columns:
    request = service_pb2.EnqueueRequest(queue="q", **fields)  # type: ignore[arg-type]
    return Intake(SMALL).one(request)


def refusal(**fields: object) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        one(**fields)
    return str(caught.value)


def options(**fields: object) -> messages_pb2.MessageOptions:
    return messages_pb2.MessageOptions(**fields)  # type: ignore[arg-type]


def test_what_is_stored_is_what_was_sent() -> None:
    columns = one(payload=b"x", headers={"a": "b"}, options=options(priority=3))

    stored = messages_pb2.Message.FromString(columns.bodies[0])

    assert stored.payload == b"x"
    assert stored.headers == {"a": "b"}
    assert stored.options.priority == 3


def test_a_producer_cannot_set_what_the_broker_sets() -> None:
    forged = messages_pb2.Message(
        id="forged", payload=b"x", metadata=messages_pb2.MessageMetadata(weight=9)
    )
    batch = b"\x0a\x01q" + b"\x12" + bytes([forged.ByteSize()]) + forged.SerializeToString()

    [body] = Intake(SMALL).many(parse(service_pb2.EnqueueBatchRequest, batch)).bodies
    stored = messages_pb2.Message.FromString(body)

    assert stored.payload == b"x"
    assert not stored.id
    assert not stored.HasField("metadata")


def test_unknown_fields_of_a_unary_request_are_dropped() -> None:
    # Field 22 is a message's dead letter, field 4 its metadata.
    smuggled = b"\x0a\x01q\x1a\x01x" + b"\xb2\x01\x02\x0a\x00" + b"\x22\x02\x10\x09"

    [body] = Intake(SMALL).one(parse(service_pb2.EnqueueRequest, smuggled)).bodies

    assert body == b"\x1a\x01x"


def test_equal_options_share_one_spec() -> None:
    intake = Intake(SMALL)
    item = service_pb2.EnqueueItem(options=options(fairness_key="acme", delay_ms=5))
    other = service_pb2.EnqueueItem(options=options(fairness_key="acme"))

    columns = intake.many(service_pb2.EnqueueBatchRequest(queue="q", items=[item, other, item]))

    assert columns.specs[0] is columns.specs[1] is columns.specs[2]
    assert columns.timings == {0: Timing(delay_ms=5), 2: Timing(delay_ms=5)}


def test_options_become_a_spec() -> None:
    wishes = options(
        fairness_key="acme", weight=7, throttle_keys=["a", "b", "a"], priority=255, cost=10_000
    )

    [spec] = one(payload=b"", options=wishes).specs

    assert spec == Spec("acme", 7, ("a", "b"), 255, 10_000)


def test_no_options_mean_the_shared_default() -> None:
    assert one(payload=b"x").specs == [Spec()]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"payload": bytes(2001)}, ["message", "2000", "message_bytes_max"]),
        ({"headers": {"a": "b" * 101}}, ["header", "100", "header_bytes_max"]),
        ({"headers": {str(i): "" for i in range(4)}}, ["4 headers", "3", "headers_max"]),
        ({"headers": {"": "b"}}, ["header name", "empty"]),
        ({"headers": {"a\nb": "c"}}, ["header name", "control"]),
        ({"options": options(weight=0)}, ["weight", "1 to 10000"]),
        ({"options": options(weight=10_001)}, ["weight", "1 to 10000"]),
        ({"options": options(cost=0)}, ["cost"]),
        ({"options": options(priority=256)}, ["priority", "0 to 255"]),
        ({"options": options(fairness_key="")}, ["fairness_key", "empty"]),
        ({"options": options(fairness_key="k" * 513)}, ["fairness_key", "512", "key_bytes_max"]),
        ({"options": options(fairness_key="a\x00")}, ["fairness_key", "control"]),
        ({"options": options(throttle_keys=[str(i) for i in range(17)])}, ["throttle_keys_max"]),
        ({"options": options(throttle_keys=[""])}, ["throttle key", "empty"]),
        ({"options": options(delay_ms=1 << 63)}, ["delay_ms"]),
        ({"options": options(ttl_ms=1 << 63)}, ["ttl_ms"]),
        ({"options": options(delay_ms=1, deliver_at={"seconds": 1})}, ["exclude"]),
        ({"options": options(deliver_at={"seconds": 1 << 60})}, ["deliver_at", "2200"]),
        ({"options": options(deliver_at={"nanos": -1})}, ["deliver_at"]),
    ],
)
def test_what_is_over_a_limit_is_refused_by_its_name(
    fields: dict[str, object], words: list[str]
) -> None:
    said = refusal(**fields)

    assert all(word in said for word in words), said


def test_a_small_message_with_too_many_headers_is_refused_without_looking_at_its_size() -> None:
    assert "headers_max" in refusal(headers={chr(97 + i): "" for i in range(10)})


def test_a_header_in_a_large_message_may_be_as_long_as_the_limit() -> None:
    assert one(payload=bytes(1000), headers={"n": "v" * 99}).bodies


def test_a_time_before_1970_is_in_the_past_like_any_other() -> None:
    columns = one(payload=b"x", options=options(deliver_at={"seconds": -5}))

    assert columns.timings == {0: Timing(deliver_at_ns=1)}


def test_items_of_a_batch_are_refused_one_by_one() -> None:
    items = [
        service_pb2.EnqueueItem(payload=b"good"),
        service_pb2.EnqueueItem(options=options(weight=0)),
        service_pb2.EnqueueItem(payload=b"good too", options=options(ttl_ms=9)),
    ]

    columns = Intake(SMALL).many(service_pb2.EnqueueBatchRequest(queue="q", items=items))

    assert len(columns.bodies) == len(columns.specs) == 2
    assert [(error.index, error.code) for error in columns.refused] == [(1, "INVALID_ARGUMENT")]
    assert columns.timings == {1: Timing(ttl_ms=9)}


def test_a_batch_has_a_limit() -> None:
    request = service_pb2.EnqueueBatchRequest(queue="q")
    for _ in range(11):
        request.items.add()

    with pytest.raises(InvalidArgumentError, match="batch_messages_max"):
        Intake(SMALL).many(request)


@pytest.mark.parametrize("name", [b"", bytes(65)])
def test_a_producer_needs_a_name_of_reasonable_length(name: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match=r"producer\.id"):
        producer_sequence(service_pb2.Producer(id=name, sequence=1))


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05ab", b"\x0a\x02\xff\xfe"])
def test_garbage_and_text_that_is_not_utf8_are_the_callers_mistake(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match=r"fila\.v1\.EnqueueRequest"):
        parse(service_pb2.EnqueueRequest, data)
