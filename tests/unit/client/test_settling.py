"""Settles on their way: gathered, answered, sent again."""

from uuid import UUID

import pytest

from fila.client.message import Message
from fila.client.settling import (
    ACK,
    RELEASE,
    RENEW,
    Ack,
    Action,
    Extend,
    Nack,
    Refusal,
    SettlePipeline,
    error_text,
)
from fila.errors import LeaseNotFoundError, OutcomeUnknownError, StorageError
from fila.wire._pb import service_pb2 as pb
from tests.unit.client.deliveries import deliver


def put(pipeline: SettlePipeline, message: Message, action: Action) -> None:
    pipeline.add(message.queue, message, action)


def take(pipeline: SettlePipeline) -> tuple[int, list[pb.Settlement]]:
    batch = pipeline.take()
    assert batch is not None
    return batch


def refused(*indexes: int, code: int = 5) -> pb.SettlementResult:
    errors = [pb.ItemError(index=index, code=code, message="no") for index in indexes]
    return pb.SettlementResult(errors=errors)


def test_acks_of_a_queue_are_one_settlement() -> None:
    pipeline = SettlePipeline()
    messages = deliver(3)
    for message in messages:
        put(pipeline, message, ACK)

    number, (settlement,) = take(pipeline)

    assert number == 1
    assert settlement.queue == "q"
    assert settlement.WhichOneof("action") == "ack"
    assert settlement.message_ids == b"".join(UUID(message.id).bytes for message in messages)
    assert list(settlement.lease_tokens) == [1000, 1001, 1002]
    assert pipeline.take() is None
    assert (pipeline.outstanding, pipeline.unsent) == (3, 0)


def test_different_actions_and_queues_are_apart() -> None:
    pipeline = SettlePipeline()
    first, second, third, fourth = deliver(4)
    (other,) = deliver(1, queue="r")
    put(pipeline, first, ACK)
    put(pipeline, other, ACK)
    put(pipeline, second, Nack("boom", delay_ms=0))
    put(pipeline, third, Nack("boom", delay_ms=0))
    put(pipeline, fourth, Nack("bad", dead_letter=True))

    _, settlements = take(pipeline)
    nacks = [one for one in settlements if one.HasField("nack")]

    assert sorted(len(one.lease_tokens) for one in settlements) == [1, 1, 1, 2]
    assert [(one.nack.error, one.nack.dead_letter) for one in nacks] == [
        ("boom", False),
        ("bad", True),
    ]
    assert nacks[0].nack.HasField("delay_ms")
    assert not nacks[1].nack.HasField("delay_ms")


def test_an_extend_goes_before_the_settles_of_the_same_turn() -> None:
    pipeline = SettlePipeline()
    first, second = deliver(2)
    put(pipeline, first, Nack("x"))
    put(pipeline, second, Extend(5000))
    put(pipeline, second, ACK)

    _, settlements = take(pipeline)

    assert [one.WhichOneof("action") for one in settlements] == ["extend", "nack", "ack"]
    assert settlements[0].extend.extend_ms == 5000


def test_only_what_was_refused_comes_back() -> None:
    pipeline = SettlePipeline()
    messages = deliver(3)
    for message in messages:
        put(pipeline, message, ACK)
    number, _ = take(pipeline)

    (refusal,) = pipeline.answered(number, [refused(1)])

    assert refusal.message is messages[1]
    assert isinstance(refusal.error, LeaseNotFoundError)
    assert pipeline.outstanding == 0


def test_what_had_no_answer_is_sent_again_first() -> None:
    pipeline = SettlePipeline()
    old, new = deliver(2)
    put(pipeline, old, ACK)
    take(pipeline)
    pipeline.lost()
    put(pipeline, new, ACK)

    number, settlements = take(pipeline)

    assert number == 2
    assert [list(one.lease_tokens) for one in settlements] == [[1000], [1001]]
    assert pipeline.outstanding == 2


def test_an_ack_whose_first_answer_was_lost_and_finds_no_lease_is_in_doubt() -> None:
    pipeline = SettlePipeline()
    (message,) = deliver(1)
    put(pipeline, message, ACK)
    take(pipeline)
    pipeline.lost()
    number, _ = take(pipeline)

    (refusal,) = pipeline.answered(number, [refused(0)])

    assert isinstance(refusal.error, OutcomeUnknownError)


def test_other_refusals_of_a_repeat_are_told() -> None:
    pipeline = SettlePipeline()
    (message,) = deliver(1)
    put(pipeline, message, ACK)
    take(pipeline)
    pipeline.lost()
    number, _ = take(pipeline)

    (refusal,) = pipeline.answered(number, [refused(0, code=13)])

    assert isinstance(refusal.error, StorageError)


def test_an_ack_that_was_never_sent_before_must_find_its_lease() -> None:
    pipeline = SettlePipeline()
    (message,) = deliver(1)
    pipeline.lost()
    put(pipeline, message, ACK)
    number, _ = take(pipeline)

    (refusal,) = pipeline.answered(number, [refused(0)])

    assert refusal == Refusal(message, ACK, refusal.error)


def test_renewals_are_not_sent_again() -> None:
    pipeline = SettlePipeline()
    actions: list[Action] = [RENEW, RELEASE, ACK, Nack("x")]
    for message, action in zip(deliver(4), actions, strict=True):
        put(pipeline, message, action)
    take(pipeline)
    for message, action in zip(deliver(2), actions[:2], strict=True):
        put(pipeline, message, action)
    pipeline.lost()

    _, settlements = take(pipeline)

    assert sorted(one.WhichOneof("action") or "" for one in settlements) == [
        "ack",
        "nack",
        "release",
        "release",
    ]
    assert pipeline.outstanding == 4


def test_giving_up_tells_what_had_no_answer() -> None:
    pipeline = SettlePipeline()
    sent, unsent = deliver(2)
    put(pipeline, sent, ACK)
    take(pipeline)
    put(pipeline, unsent, Ack())

    assert {message for message, _ in pipeline.give_up()} == {sent, unsent}
    assert pipeline.outstanding == 0
    assert pipeline.take() is None


def test_an_error_text_is_cut_and_made_sendable() -> None:
    assert error_text("boom") == "boom"
    assert error_text("x" * 5000) == "x" * 999 + "…"
    assert error_text("no such file: \udcff") == r"no such file: \udcff"
    with pytest.raises(TypeError, match="error must be str, not ValueError"):
        error_text(ValueError("boom"))  # type: ignore[arg-type]
