"""Which enqueues travel together, and what happens when their batch does not get through."""

import time

import pytest

from fila.client.batching import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, Batch, Batcher
from fila.errors import ExhaustedError, InvalidArgumentError, OutcomeUnknownError, UnreachableError
from fila.wire._pb import service_pb2 as pb

PRODUCER = b"p" * 16
LATER = 100.0


def make_batcher(in_flight_max: int = 4) -> Batcher[str]:
    return Batcher(PRODUCER, in_flight_max=in_flight_max)


def take(batcher: Batcher[str], now: float = 0.0) -> Batch[str]:
    batch = batcher.take(now)
    assert batch is not None
    return batch


def item(text: str) -> bytes:
    return pb.EnqueueBatchRequest(items=[pb.EnqueueItem(payload=text.encode())]).SerializeToString()


def test_calls_of_one_queue_travel_together_in_order() -> None:
    batcher = make_batcher()
    for name in "abc":
        batcher.add("q", item(name), name, LATER)

    batch = take(batcher)
    request = pb.EnqueueBatchRequest.FromString(batcher.request(batch))

    assert batch.tickets == ["a", "b", "c"]
    assert request.queue == "q"
    assert [one.payload for one in request.items] == [b"a", b"b", b"c"]
    assert (request.producer.id, request.producer.sequence) == (PRODUCER, 1)
    assert batcher.take(0.0) is None


def test_sequences_grow_in_the_order_of_sending() -> None:
    batcher = make_batcher()
    sequences = []
    for name in "abc":
        batcher.add("q", item(name), name, LATER)
        sequences.append(take(batcher).sequence)

    assert sequences == [1, 2, 3]


def test_queues_do_not_share_a_batch_and_take_turns() -> None:
    batcher = make_batcher(in_flight_max=10)
    for queue in ("q", "r"):
        for _ in range(2):
            batcher.add_whole(queue, [b"x"], queue, LATER)

    assert [take(batcher).queue for _ in range(4)] == ["q", "r", "q", "r"]


def test_no_more_batches_are_in_flight_than_slots() -> None:
    batcher = make_batcher(in_flight_max=2)
    for _ in range(3):
        batcher.add_whole("q", [b"x"], "t", LATER)
    first = take(batcher)
    take(batcher)

    assert batcher.take(0.0) is None

    batcher.answered(first)
    assert take(batcher).sequence == 3


def test_a_batch_is_bounded_in_messages() -> None:
    batcher = make_batcher()
    for number in range(BATCH_MESSAGES_MAX + 1):
        batcher.add("q", b"x", str(number), LATER)

    assert [len(take(batcher).items) for _ in range(2)] == [BATCH_MESSAGES_MAX, 1]


def test_a_batch_is_bounded_in_bytes_but_one_large_message_travels_alone() -> None:
    batcher = make_batcher()
    large = b"x" * (BATCH_BYTES_MAX + 1)
    for content in (b"small", large, b"small"):
        batcher.add("q", content, "t", LATER)

    assert [take(batcher).size for _ in range(3)] == [5, len(large), 5]


def test_nothing_joins_a_batch_that_was_enqueued_as_a_whole() -> None:
    batcher = make_batcher()
    batcher.add_whole("q", [b"x", b"y"], "whole", LATER)
    batcher.add("q", b"z", "single", LATER)

    assert [take(batcher).tickets for _ in range(2)] == [["whole"], ["single"]]


def test_a_repeat_keeps_its_sequence_and_its_items() -> None:
    batcher = make_batcher()
    batcher.add("q", item("a"), "a", LATER)
    batch = take(batcher)
    first = batcher.request(batch)
    batcher.held(batch, UnreachableError("gone"), until=1.0, maybe_applied=True)
    batcher.add("q", item("b"), "b", LATER)

    assert batcher.take(0.9) is None

    again = take(batcher, 1.0)
    assert again is batch
    assert batcher.request(again) == first


def test_a_line_with_a_batch_to_repeat_sends_nothing_new_but_others_go_on() -> None:
    batcher = make_batcher()
    batcher.add("q", b"1", "q1", LATER)
    batcher.held(take(batcher), ExhaustedError("busy"), until=5.0, maybe_applied=False)
    batcher.add("q", b"2", "q2", LATER)
    batcher.add("r", b"3", "r1", LATER)

    assert take(batcher).tickets == ["r1"]
    assert batcher.take(0.0) is None
    assert batcher.next_repeat() == 5.0
    assert [take(batcher, 5.0).tickets for _ in range(2)] == [["q1"], ["q2"]]


def test_batches_are_repeated_in_the_order_of_their_sequences() -> None:
    batcher = make_batcher()
    for name in "ab":
        batcher.add_whole("q", [b"x"], name, LATER)
    first, second = take(batcher), take(batcher)
    for batch in (second, first):
        batcher.held(batch, UnreachableError("gone"), until=1.0, maybe_applied=False)

    assert [take(batcher, 1.0).sequence for _ in range(2)] == [1, 2]


def test_a_call_that_was_never_sent_runs_out_without_doubt_and_stays_unsent() -> None:
    batcher = make_batcher(in_flight_max=1)
    batcher.add_whole("q", [b"x"], "first", LATER)
    take(batcher)
    batcher.add("q", item("late"), "late", 1.0)
    batcher.add("q", item("kept"), "kept", LATER)

    (expired,) = batcher.expire(2.0)

    assert (expired.ticket, expired.maybe_applied) == ("late", False)
    assert batcher.outstanding == 2


def test_an_item_that_ran_out_before_it_reached_anyone_is_taken_out_of_its_batch() -> None:
    batcher = make_batcher()
    batcher.add("q", item("late"), "late", 1.0)
    batcher.add("q", item("kept"), "kept", LATER)
    batcher.held(take(batcher), UnreachableError("no"), until=1.5, maybe_applied=False)

    (expired,) = batcher.expire(1.2)
    request = pb.EnqueueBatchRequest.FromString(batcher.request(take(batcher, 1.5)))

    assert isinstance(expired.error, UnreachableError)
    assert not expired.maybe_applied
    assert [one.payload for one in request.items] == [b"kept"]


def test_a_batch_that_may_have_arrived_keeps_items_whose_callers_gave_up() -> None:
    batcher = make_batcher()
    batcher.add("q", item("late"), "late", 1.0)
    batcher.add("q", item("kept"), "kept", LATER)
    batch = take(batcher)
    first = batcher.request(batch)
    batcher.held(batch, OutcomeUnknownError("lost"), until=1.5, maybe_applied=True)

    (expired,) = batcher.expire(1.2)

    assert expired.maybe_applied
    assert batcher.request(take(batcher, 1.5)) == first


def test_a_call_in_flight_runs_out_in_doubt() -> None:
    batcher = make_batcher()
    batcher.add("q", b"x", "t", 1.0)
    batch = take(batcher)

    (expired,) = batcher.expire(1.0)
    batcher.held(batch, UnreachableError("gone"), until=2.0, maybe_applied=True)

    assert expired.maybe_applied
    assert batcher.take(9.0) is None, "nobody waits for it any more"
    assert (batcher.outstanding, batcher.outstanding_bytes) == (0, 0)


def test_what_is_outstanding_is_counted_until_it_is_answered() -> None:
    batcher = make_batcher()
    batcher.add("q", b"12345", "t", LATER)
    batcher.add_whole("q", [b"1", b"23"], "w", LATER)
    assert (batcher.outstanding, batcher.outstanding_bytes) == (3, 8)

    for _ in range(2):
        batcher.answered(take(batcher))

    assert (batcher.outstanding, batcher.outstanding_bytes) == (0, 0)


def test_a_name_that_can_not_be_sent_takes_no_slot() -> None:
    batcher = make_batcher(in_flight_max=1)
    for name in ("\ud800", 5):
        with pytest.raises((InvalidArgumentError, TypeError)):
            batcher.add(name, item("x"), "x", 5.0)  # type: ignore[arg-type]

    assert batcher.outstanding == 0
    assert batcher.take(0.0) is None


def test_queues_take_turns_also_with_one_that_was_held() -> None:
    batcher = make_batcher()
    for name in ("q", "r", "q", "r"):
        batcher.add_whole(name, [b"x"], name, LATER)
    batcher.held(take(batcher), UnreachableError("gone"), until=1.0, maybe_applied=False)

    assert [take(batcher, 1.0).queue for _ in range(4)] == ["r", "q", "r", "q"]
    assert batcher.take(1.0) is None
    assert batcher.next_repeat() is None


def test_what_waits_behind_a_repeat_that_nobody_waits_for_any_more_is_sent() -> None:
    batcher = make_batcher()
    batcher.add_whole("q", [b"x"], "gone", 1.0)
    batcher.held(take(batcher), UnreachableError("no"), until=5.0, maybe_applied=False)
    batcher.add_whole("q", [b"y"], "kept", LATER)

    list(batcher.expire(2.0))

    assert take(batcher, 2.0).tickets == ["kept"]


def test_a_queue_costs_the_same_among_few_as_among_many() -> None:
    def seconds_per_queue(count: int) -> float:
        batcher = make_batcher(in_flight_max=4)
        names = [f"q{number}" for number in range(count)]
        begin = time.perf_counter()
        for name in names:
            batcher.add(name, b"x", name, LATER)
        for _ in names:
            batcher.answered(take(batcher))
            batcher.next_repeat()
        return (time.perf_counter() - begin) / count

    few = min(seconds_per_queue(250) for _ in range(5))
    many = min(seconds_per_queue(8000) for _ in range(2))
    # The rest is the garbage collector; to look at all of them for each took hundreds of times.
    assert many < 30 * few
