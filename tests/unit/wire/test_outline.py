"""Outlines: what scripts see of a message, cut from the bytes that it has anyway."""

import pytest

from fila.model import EnqueueDecision
from fila.wire._pb import messages_pb2 as messages
from fila.wire._pb import service_pb2 as pb
from fila.wire.outline import headers_size, outline, outline_of
from tests.unit.hooks.asking import ask, make, on_enqueue

# What a script sees, in few words: sizes of the payload and of each header, and where they stand.
SEEN = on_enqueue("""
  local count, sum = 0, 0
  for name, value in pairs(msg.headers) do
    count = count + 1
    sum = (sum + (#name * 31 + #value) * (1 + (name:byte(-1) or 0))) % 1000003
  end
  return { fairness_key = msg.payload_size .. "|" .. count .. "|" .. sum }
""")
MANY = {f"name-{number}": "v" * number for number in range(120)}
LONG = {"short": "x", "long": "y" * 5000, "n" * 300: "", "": "nameless", "Zoë": "é" * 100}


def cut(item: pb.EnqueueItem) -> bytes:
    body = item.SerializeToString()
    size = headers_size(body)
    head = None if size is None else body[:size]
    return outline(item, body, head, not item.HasField("options"))


@pytest.mark.parametrize("headers", [{}, {"tenant": "acme"}, MANY, LONG])
@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 70_000, 3_000_000])
@pytest.mark.parametrize("has_options", [False, True])
def test_a_script_sees_the_headers_and_the_size_of_the_payload(
    headers: dict[str, str], size: int, has_options: bool
) -> None:
    item = pb.EnqueueItem(headers=headers, payload=b"\x12" * size)
    if has_options:
        options = messages.MessageOptions(fairness_key="k" * 200, throttle_keys=["t"] * 9)
        item.options.CopyFrom(options)
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    total = sum((len(name) * 31 + len(raw[name])) * (1 + (name or b"\0")[-1]) for name in raw)

    [decision] = ask(make(SEEN), [cut(item)])

    assert isinstance(decision, EnqueueDecision)
    assert decision.fairness_key == f"{size}|{len(headers)}|{total % 1000003}"


@pytest.mark.parametrize("headers", [{}, {"tenant": "acme"}, LONG])
@pytest.mark.parametrize("size", [0, 5, 1 << 20])
def test_an_outline_holds_nothing_of_the_payload(headers: dict[str, str], size: int) -> None:
    item = pb.EnqueueItem(headers=headers, payload=b"p" * size)

    found = cut(item)

    assert found[:4] == size.to_bytes(4, "little")
    assert pb.EnqueueItem.FromString(found[4:]) == pb.EnqueueItem(headers=headers)


def test_an_outline_made_of_headers_reads_like_one_that_was_cut() -> None:
    item = pb.EnqueueItem(headers={"tenant": "acme"}, payload=b"p" * 300)

    assert outline_of({"tenant": "acme"}, 300) == cut(item)
