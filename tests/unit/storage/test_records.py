"""Every record survives its encoding, and nothing else passes for it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.records import Entry, KeyWeight, PartitionRecord, Progress, QueueRecord, Status
from fila.errors import CorruptRecordError
from fila.model import DeadLetter, ItemError, Outcome, QueueSettings, Reason, Spec
from fila.storage import keys, records
from tests.contract.storage_samples import message

U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
TIMES = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=40)

SPECS = st.builds(
    Spec,
    fairness_key=TEXT,
    weight=U16,
    throttle_keys=st.lists(TEXT, max_size=5).map(tuple),
    priority=st.integers(0, 255),
    cost=U16,
)
ENTRIES = st.builds(
    Entry,
    sequence=U64,
    id_high=U64,
    spec=SPECS,
    in_dlq=st.booleans(),
    accepted_at_ns=TIMES,
    deliver_at_ns=TIMES,
    expires_at_ns=TIMES,
)
DEAD_LETTERS = st.builds(
    DeadLetter,
    reason=st.sampled_from(Reason),
    last_error=TEXT,
    source_queue=TEXT,
    dead_at_ns=TIMES,
)
PROGRESS = st.builds(
    Progress,
    status=st.sampled_from(Status),
    in_dlq=st.booleans(),
    place=U64,
    attempts=U32,
    delivered=st.booleans(),
    due_wall_ns=TIMES,
    span_ns=TIMES,
    wall_timed=st.booleans(),
    token=U64,
    leased_at_ns=TIMES,
    last_error=TEXT,
    dead=st.none() | DEAD_LETTERS,
)
OUTCOMES = st.builds(
    Outcome,
    id_high=U64,
    first_seq=U64,
    count=U32,
    at_ns=TIMES,
    errors=st.lists(st.builds(ItemError, U32, TEXT, TEXT), max_size=4).map(tuple),
)
SETTINGS = st.builds(
    QueueSettings,
    on_enqueue_script=TEXT,
    on_failure_script=TEXT,
    visibility_timeout_ms=U64,
    max_attempts=U64,
    max_depth=U64,
    retry_delay_ms=U64,
    retry_backoff=st.floats(1, 1e9),
    retry_delay_max_ms=U64,
    quantum=U64,
)


@given(ENTRIES)
def test_an_entry_survives(entry: Entry) -> None:
    value = records.pack_entry(entry)
    assert records.EntryDecoder().decode(entry.sequence, value) == entry


@given(st.lists(ENTRIES, max_size=6))
def test_entries_read_one_after_another_do_not_mix(entries: list[Entry]) -> None:
    decoder = records.EntryDecoder()
    doubled = [entry for entry in entries for _ in range(2)]
    values = [records.pack_entry(entry) for entry in doubled]
    read = [decoder.decode(e.sequence, v) for e, v in zip(doubled, values, strict=True)]
    assert read == doubled


@given(PROGRESS)
def test_progress_survives(progress: Progress) -> None:
    assert records.unpack_progress(records.pack_progress(progress)) == progress


@given(PROGRESS)
def test_progress_of_a_live_message_is_packed_like_the_record(progress: Progress) -> None:
    assert records.progress_values([message(progress, 1)]) == [records.pack_progress(progress)]


@given(OUTCOMES)
def test_an_outcome_survives(outcome: Outcome) -> None:
    assert records.unpack_outcome(records.pack_outcome(outcome)) == outcome


@given(U64, U64, TEXT)
def test_a_partition_survives(next_sequence: int, id_high: int, base: str) -> None:
    record = PartitionRecord(number=3, base=base, next_sequence=next_sequence, id_high=id_high)
    assert records.unpack_partition(3, records.pack_partition(record)) == record


@given(SETTINGS, st.booleans(), U32, TEXT)
def test_a_queue_survives(settings: QueueSettings, paused: bool, number: int, name: str) -> None:
    record = QueueRecord(name=name, partition=number, settings=settings, paused=paused)
    assert records.unpack_queue(name, records.pack_queue(record)) == record


@given(U32, U64)
def test_a_weight_survives(weight: int, place: int) -> None:
    record = KeyWeight(partition=1, in_dlq=False, fairness_key="", weight=weight, place=place)
    assert records.unpack_key_weight(records.pack_key_weight(record)) == (weight, place)


@given(TEXT)
def test_a_setting_survives(value: str) -> None:
    assert records.unpack_config(records.pack_config(value)) == value


@given(U64, U32)
def test_the_counters_survive(epoch: int, next_partition: int) -> None:
    value = records.pack_counters(epoch, next_partition)
    assert records.unpack_counters(value) == (epoch, next_partition)


SPEC = Spec("tenant", 2, ("mail",))
ENTRY = Entry(sequence=1, id_high=2, spec=SPEC)
DEAD = DeadLetter(reason=Reason.EXPIRED, last_error="x", source_queue="q", dead_at_ns=1)
BECAME = Progress(
    status=Status.READY, in_dlq=True, place=1, attempts=1, delivered=True, last_error="e", dead=DEAD
)
SAMPLES: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "entry": (records.pack_entry(ENTRY), lambda v: records.EntryDecoder().decode(1, v)),
    "progress": (records.pack_progress(BECAME), records.unpack_progress),
    "outcome": (
        records.pack_outcome(Outcome(1, 2, 3, 4, (ItemError(0, "A", "b"),))),
        records.unpack_outcome,
    ),
    "partition": (
        records.pack_partition(PartitionRecord(number=1, base="q")),
        lambda v: records.unpack_partition(1, v),
    ),
    "queue": (
        records.pack_queue(QueueRecord(name="q", partition=1, settings=QueueSettings())),
        lambda v: records.unpack_queue("q", v),
    ),
    "weight": (
        records.pack_key_weight(
            KeyWeight(partition=1, in_dlq=False, fairness_key="k", weight=1, place=1)
        ),
        records.unpack_key_weight,
    ),
    "config": (records.pack_config("value"), records.unpack_config),
    "counters": (records.pack_counters(1, 2), records.unpack_counters),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_flipped_bit_is_noticed(kind: str) -> None:
    value, unpack = SAMPLES[kind]
    for bit in range(8 * len(value)):
        flipped = bytearray(value)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptRecordError):
            unpack(bytes(flipped))


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_value_cut_short_is_never_misread(kind: str) -> None:
    value, unpack = SAMPLES[kind]
    for length in range(len(value)):
        with pytest.raises(CorruptRecordError):
            unpack(value[:length])


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("other", SAMPLES)
def test_a_value_of_one_table_is_refused_in_all_others(kind: str, other: str) -> None:
    if kind != other:
        with pytest.raises(CorruptRecordError):
            SAMPLES[other][1](SAMPLES[kind][0])


@pytest.mark.parametrize("kind", ["entry", "progress", "outcome", "partition", "queue"])
@given(payload=st.binary(max_size=80))
def test_nonsense_with_a_right_checksum_raises_nothing_but_corruption(
    kind: str, payload: bytes
) -> None:
    table = keys.Table[kind.upper()]
    try:
        SAMPLES[kind][1](records.seal(table, payload))
    except CorruptRecordError:
        return
