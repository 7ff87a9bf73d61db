"""Keys: in order, apart, and read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.errors import CorruptRecordError
from fila.storage import keys
from fila.storage.keys import Table

PARTITIONS = st.integers(0, 2**32 - 1)
SEQUENCES = st.integers(0, 2**64 - 1)
NAMES = st.binary(max_size=20)


@given(PARTITIONS, SEQUENCES, PARTITIONS, SEQUENCES)
def test_messages_lie_in_order_of_partition_and_sequence(a: int, b: int, c: int, d: int) -> None:
    first, second = keys.message(Table.ENTRY, a, b), keys.message(Table.ENTRY, c, d)
    assert (first < second) == ((a, b) < (c, d))
    assert (keys.partition_of(first), keys.sequence_of(first)) == (a, b)
    assert keys.is_message_key(first)


@given(PARTITIONS, PARTITIONS, SEQUENCES)
def test_a_partitions_range_holds_its_own_keys_alone(mine: int, other: int, sequence: int) -> None:
    for table in keys.MESSAGE_TABLES:
        begin, end = keys.partition_range(table, mine)
        assert (begin <= keys.message(table, other, sequence) < end) == (mine == other)


@given(NAMES, NAMES, SEQUENCES)
def test_a_producers_range_holds_its_own_outcomes_alone(
    mine: bytes, other: bytes, sequence: int
) -> None:
    begin, end = keys.range_of(keys.producer(1, mine))
    key = keys.outcome(1, other, sequence)
    assert (begin <= key < end) == (mine == other)
    assert (keys.producer_of(key), keys.sequence_of(key)) == (other, sequence)


@given(st.booleans(), st.text(max_size=20))
def test_a_fairness_key_is_read_back(in_dlq: bool, fairness_key: str) -> None:
    assert keys.fairness_key_of(keys.key_weight(5, in_dlq, fairness_key)) == (in_dlq, fairness_key)


@given(st.text(max_size=20))
def test_a_name_is_read_back(name: str) -> None:
    assert keys.text_of(keys.queue(name)) == name
    assert keys.text_of(keys.config(name)) == name


@given(st.binary(min_size=1, max_size=6).filter(lambda b: b.strip(b"\xff") != b""), NAMES)
def test_the_successor_is_behind_all_that_begin_alike(start: bytes, rest: bytes) -> None:
    assert start + rest < keys.successor(start)
    assert not keys.successor(start).startswith(start)


@pytest.mark.parametrize(
    "read", [keys.partition_of, keys.producer_of, keys.text_of, keys.fairness_key_of]
)
def test_a_malformed_key_is_corrupt(read: object) -> None:
    assert callable(read)
    with pytest.raises(CorruptRecordError):
        read(b"\x07\xff\xff")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (keys.message(Table.ENTRY, 3, 4), "entry of message 4 in partition 3"),
        (keys.outcome(3, b"p", 4), "outcome of partition 3"),
        (keys.queue("orders"), "queue b'orders'"),
        (b"\xee\x01", "key ee01"),
        (b"", "key "),
    ],
)
def test_a_key_is_described_for_people(key: bytes, words: str) -> None:
    assert keys.describe(key).startswith(words)
