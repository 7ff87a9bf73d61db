"""Messages as bytes, and what can't be sent."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.client.items import check_text, encode_item, encode_new, encode_options, milliseconds
from fila.client.message import NewMessage
from fila.errors import InvalidArgumentError
from fila.wire._pb import service_pb2 as pb

# What UTF-8 can carry.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def decoded(item: bytes) -> pb.EnqueueItem:
    (only,) = pb.EnqueueBatchRequest.FromString(item).items
    return only


@given(st.binary(max_size=100_000), st.dictionaries(TEXT, TEXT, max_size=5))
def test_what_goes_in_comes_out(payload: bytes, headers: Mapping[str, str]) -> None:
    item = decoded(encode_item(payload, headers))

    assert item == pb.EnqueueItem(payload=payload, headers=headers)


def test_large_headers_and_payloads_are_framed_rightly() -> None:
    headers = {"k" * 200: "v" * 20_000}
    item = decoded(encode_item(b"x" * 3_000_000, headers))

    assert len(item.payload) == 3_000_000
    assert dict(item.headers) == headers


def test_options_travel_with_the_item() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    message = NewMessage(
        b"x",
        fairness_key="acme",
        weight=3,
        throttle_keys=["a", "b"],
        priority=0,
        cost=2,
        deliver_at=at,
        ttl=1.5,
    )
    options = decoded(encode_new(message)).options

    assert (options.fairness_key, options.weight, options.cost) == ("acme", 3, 2)
    assert list(options.throttle_keys) == ["a", "b"]
    assert options.HasField("priority")
    assert options.deliver_at.ToDatetime(tzinfo=UTC) == at
    assert options.ttl_ms == 1500
    assert not options.HasField("delay_ms")


def test_an_item_without_options_carries_none() -> None:
    assert encode_options() is None
    assert not decoded(encode_new(NewMessage(b"x"))).HasField("options")


@pytest.mark.parametrize("payload", [bytearray(b"abc"), memoryview(b"abc")])
def test_other_bytes_are_taken_too(payload: bytearray | memoryview) -> None:
    assert decoded(encode_item(payload)).payload == b"abc"


def test_text_is_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match="payload must be bytes, not str; encode it first"):
        encode_item("text")  # type: ignore[arg-type]


def test_headers_that_are_no_strings_are_refused() -> None:
    with pytest.raises(TypeError, match="headers must map str to str"):
        encode_item(b"", {"n": 1})  # type: ignore[dict-item]


def test_a_header_that_utf8_can_not_carry_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="can't be sent"):
        encode_item(b"", {"broken": "\ud800"})


@pytest.mark.parametrize("weight", [-1, 2**32])
def test_a_number_that_the_wire_can_not_carry_is_refused(weight: int) -> None:
    with pytest.raises(InvalidArgumentError, match="can't be sent"):
        encode_options(weight=weight)


def test_a_time_without_a_zone_is_refused() -> None:
    naive = datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None)

    with pytest.raises(InvalidArgumentError, match="no time zone"):
        encode_options(deliver_at=naive)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_a_duration_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(f"delay is {seconds}")):
        milliseconds("delay", seconds)


def test_a_short_duration_is_not_rounded_to_nothing() -> None:
    assert [milliseconds("delay", seconds) for seconds in (0, 0.0001, 1.5)] == [0, 1, 1500]


def test_one_string_is_no_list_of_throttle_keys() -> None:
    with pytest.raises(TypeError, match="throttle_keys must be a sequence of str"):
        encode_options(throttle_keys="provider")


@pytest.mark.parametrize("name", [5, None, b"q"])
def test_what_is_no_string_is_no_name(name: object) -> None:
    with pytest.raises(TypeError, match="queue must be str, not"):
        check_text("queue", name)  # type: ignore[arg-type]


def test_a_name_that_utf8_can_not_carry_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="queue can't be sent"):
        check_text("queue", "\ud800")
