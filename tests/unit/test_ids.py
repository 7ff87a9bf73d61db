"""Ids: UUIDv7, ordered, and a way back to the record."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila import ids
from fila.errors import InvalidArgumentError

_WALL_MS = st.integers(0, (1 << 48) - 1)
_EPOCHS = st.integers(1, 1 << 20)
_SEQUENCES = st.integers(1, (1 << ids.SEQUENCE_BITS) - 1)
_PARTITIONS = st.integers(1, (1 << ids.PARTITION_BITS) - 1)


@given(_WALL_MS, _EPOCHS, _SEQUENCES, _PARTITIONS)
def test_an_id_is_a_uuid_of_version_7(
    wall_ms: int, epoch: int, sequence: int, partition: int
) -> None:
    high, low = ids.id_high(wall_ms, epoch), ids.id_low(sequence, partition)

    found = uuid.UUID(ids.id_text(high, low))

    assert found.version == 7
    assert found.variant == uuid.RFC_4122
    assert found.bytes == ids.id_bytes(high, low)
    assert found.int >> 80 == wall_ms


@given(_WALL_MS, _EPOCHS, _SEQUENCES, _PARTITIONS)
def test_an_id_leads_back_to_its_sequence_and_partition(
    wall_ms: int, epoch: int, sequence: int, partition: int
) -> None:
    high, low = ids.id_high(wall_ms, epoch), ids.id_low(sequence, partition)

    assert ids.parse_id(ids.id_text(high, low)) == (high, low)
    assert ids.sequence_of(low) == sequence
    assert ids.belongs_to(low, partition)
    assert not ids.belongs_to(low, partition - 1)


@given(st.tuples(_WALL_MS, _SEQUENCES), st.tuples(_WALL_MS, _SEQUENCES))
def test_ids_are_ordered_by_time_then_by_sequence(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    texts = [ids.id_text(ids.id_high(ms, 1), ids.id_low(number, 1)) for ms, number in (one, other)]

    assert (one < other) == (texts[0] < texts[1])


def test_the_first_half_of_the_text_is_shared_by_all_ids_of_a_moment() -> None:
    high = ids.id_high(1_700_000_000_000, 5)

    text = ids.id_text(high, ids.id_low(1, 1))

    assert text.startswith(ids.id_text_high(high))
    assert len(ids.id_text_high(high)) == 19


@pytest.mark.parametrize(
    "text",
    ["", "x", "0" * 31, "0" * 33, "g" * 32, "0" * 30 + "é", "00 " * 16, "-" * 36, "0x" + "0" * 30],
)
def test_a_malformed_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="malformed"):
        ids.parse_id(text)


def test_an_id_of_another_kind_belongs_to_no_partition() -> None:
    _, low = ids.parse_id(str(uuid.UUID(int=1 << 18 | 5)))

    assert not ids.belongs_to(low, 5)


@given(st.lists(st.tuples(_SEQUENCES, _PARTITIONS)))
def test_packed_ids_are_unpacked_as_they_were(pairs: list[tuple[int, int]]) -> None:
    high = ids.id_high(1_700_000_000_000, 1)
    blob = b"".join(ids.id_bytes(high, ids.id_low(*pair)) for pair in pairs)

    numbers = ids.unpack_ids(blob)

    assert list(numbers[::2]) == [high] * len(pairs)
    assert list(numbers[1::2]) == [ids.id_low(*pair) for pair in pairs]


def test_packed_ids_of_an_odd_length_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="16 bytes"):
        ids.unpack_ids(b"\0" * 17)
