"""Every refusal has its status, and says what to do."""

import pytest
from google.protobuf.message import Message

from fila.wire._pb import admin_pb2 as a
from fila.wire._pb import messages_pb2 as m
from fila.wire._pb import service_pb2 as s
from tests.integration.rpc import RefusedError, Rpc

UNKNOWN_ID = "01890000-0000-7000-8000-000000000000"


def refusal(rpc: Rpc, request: Message) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        rpc.call(request, s.AckResponse)
    return caught.value


@pytest.mark.parametrize(
    "request_",
    [
        s.EnqueueRequest(queue="none"),
        s.EnqueueBatchRequest(queue="none", items=[s.EnqueueItem()]),
        s.AckRequest(queue="none", message_id=UNKNOWN_ID),
        s.NackRequest(queue="none", message_id=UNKNOWN_ID),
        s.LeaseRequest(queue="none"),
        a.UpdateQueueRequest(queue="none"),
        a.DeleteQueueRequest(queue="none"),
        a.GetQueueRequest(queue="none"),
        a.PurgeQueueRequest(queue="none"),
        a.PauseQueueRequest(queue="none"),
        a.ResumeQueueRequest(queue="none"),
        a.RemoveMessageRequest(queue="none", message_id=UNKNOWN_ID),
        a.RescheduleRequest(queue="none", message_id=UNKNOWN_ID, delay_ms=1),
        a.GetStatsRequest(queue="none"),
        a.ListConsumersRequest(queue="none"),
        a.BrowseRequest(queue="none"),
    ],
    ids=lambda request: request.DESCRIPTOR.name,
)
def test_an_unknown_queue_is_not_found(rpc: Rpc, request_: Message) -> None:
    found = refusal(rpc, request_)

    assert (found.code, found.kind) == ("NOT_FOUND", "QueueNotFoundError")
    assert "'none'" in found.details


@pytest.mark.parametrize(
    "request_",
    [
        s.EnqueueRequest(),
        s.EnqueueBatchRequest(queue="a\nb", items=[s.EnqueueItem()]),
        s.AckRequest(message_id=UNKNOWN_ID),
        s.LeaseRequest(queue="x" * 252),
        s.LeaseRequest(queue="q", max_messages=100_000),
        a.CreateQueueRequest(name="a.dlq.dlq"),
        a.CreateQueueRequest(name="q.dlq", config=a.QueueConfig(max_attempts=3)),
        a.CreateQueueRequest(name="q", config=a.QueueConfig(visibility_timeout_ms=999)),
        a.CreateQueueRequest(name="q", config=a.QueueConfig(retry_backoff=0.5)),
        a.GetConfigRequest(),
        a.SetConfigRequest(key="a\x00b", value="x"),
        a.SetConfigRequest(key="k" * 257, value="x"),
        a.SetConfigRequest(key="k", value="v" * 1025),
        a.BrowseRequest(queue="q", page_size=1001),
        a.BackupRequest(target="relative"),
    ],
    ids=lambda request: f"{request.DESCRIPTOR.name}-{str(request)[:20]!r}",
)
def test_what_can_never_be_right_is_an_invalid_argument(rpc: Rpc, request_: Message) -> None:
    assert refusal(rpc, request_).code == "INVALID_ARGUMENT"


def test_over_a_limit_is_invalid_and_names_the_limit(rpc: Rpc) -> None:
    queue = rpc.queue()
    large = s.EnqueueRequest(queue=queue, payload=bytes(4 * 1024 * 1024 + 1))
    long_header = s.EnqueueRequest(queue=queue, headers={"h": "v" * 8192})
    many = s.EnqueueRequest(queue=queue, headers={str(number): "" for number in range(129)})
    weight = s.EnqueueRequest(queue=queue, options=m.MessageOptions(weight=10_001))

    words = {"message_bytes_max": large, "header_bytes_max": long_header, "headers_max": many}
    for word, request in words.items():
        assert word in refusal(rpc, request).details
    assert refusal(rpc, weight).code == "INVALID_ARGUMENT"
    assert rpc.stats(queue).depth == 0


def test_a_message_of_exactly_the_limit_is_taken_and_comes_back(rpc: Rpc) -> None:
    queue = rpc.queue()
    # Four bytes of the limit are the payload's own tag and length.
    payload = bytes(4 * 1024 * 1024 - 5)

    rpc.enqueue(queue, payload)

    assert rpc.lease(queue).messages[0].payload == payload


def test_a_queue_can_be_created_once(rpc: Rpc) -> None:
    found = refusal(rpc, a.CreateQueueRequest(name=rpc.queue()))

    assert found.code == "ALREADY_EXISTS"


def test_a_full_queue_is_exhausted_and_its_batches_are_refused_in_part(rpc: Rpc) -> None:
    queue = rpc.queue(max_depth=2)
    batch = s.EnqueueBatchRequest(queue=queue, items=[s.EnqueueItem()] * 3)

    response = rpc.call(batch, s.EnqueueBatchResponse)
    found = refusal(rpc, s.EnqueueRequest(queue=queue))

    assert [(error.index, error.code) for error in response.errors] == [(2, 8)]
    assert response.message_ids[32:] == bytes(16)
    assert found.code == "RESOURCE_EXHAUSTED"
    assert "max_depth" in found.details


def test_items_of_a_batch_are_refused_with_the_status_a_single_call_would_get(rpc: Rpc) -> None:
    queue = rpc.queue()
    bad = s.EnqueueItem(options=m.MessageOptions(priority=256))
    batch = s.EnqueueBatchRequest(queue=queue, items=[s.EnqueueItem(payload=b"a"), bad])

    response = rpc.call(batch, s.EnqueueBatchResponse)

    assert [(error.index, error.code) for error in response.errors] == [(1, 3)]
    assert "priority" in response.errors[0].message
    assert rpc.stats(queue).depth == 1


def test_a_batch_of_nothing_is_nothing(rpc: Rpc) -> None:
    response = rpc.call(s.EnqueueBatchRequest(queue=rpc.queue()), s.EnqueueBatchResponse)

    assert response == s.EnqueueBatchResponse()


def test_a_repeated_call_is_answered_with_the_first_ids(rpc: Rpc) -> None:
    queue = rpc.queue()
    producer = s.Producer(id=b"me", sequence=1)
    batch = s.EnqueueBatchRequest(queue=queue, items=[s.EnqueueItem()] * 3, producer=producer)

    first, second = (rpc.call(batch, s.EnqueueBatchResponse) for _ in range(2))

    assert first == second
    assert rpc.stats(queue).depth == 3


@pytest.mark.parametrize("without_token", [True, False])
def test_a_lease_is_settled_once(rpc: Rpc, without_token: bool) -> None:
    queue = rpc.queue()
    rpc.enqueue(queue, b"x")
    [message] = rpc.lease(queue).messages
    token = None if without_token else message.delivery.lease_token
    ack = s.AckRequest(queue=queue, message_id=message.id, lease_token=token)

    rpc.call(ack, s.AckResponse)
    found = refusal(rpc, ack)

    assert (found.code, found.kind) == ("NOT_FOUND", "LeaseNotFoundError")


def test_a_stale_token_is_refused_while_the_new_lease_lives(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.enqueue(queue, b"x")
    [first] = rpc.lease(queue).messages
    release = s.NackRequest(queue=queue, message_id=first.id, release=True)
    rpc.call(release, s.NackResponse)
    [second] = rpc.lease(queue).messages

    stale = s.AckRequest(queue=queue, message_id=first.id, lease_token=first.delivery.lease_token)

    assert refusal(rpc, stale).code == "NOT_FOUND"
    assert second.metadata.attempt_count == 0
    assert rpc.stats(queue).in_flight == 1


def test_an_id_that_only_looks_like_the_message_is_not_found(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.enqueue(queue, b"x")
    [message] = rpc.lease(queue).messages
    # The sequence is in the last part; the first is when it was made.
    forged = "00000000" + message.id[8:]

    assert refusal(rpc, s.AckRequest(queue=queue, message_id=forged)).code == "NOT_FOUND"
    assert rpc.stats(queue).in_flight == 1


def test_an_id_of_another_queue_is_not_found(rpc: Rpc) -> None:
    queue, other = rpc.queue(), rpc.queue()
    rpc.enqueue(queue, b"x")
    rpc.enqueue(other, b"x")
    [message] = rpc.lease(queue).messages
    rpc.lease(other)

    assert refusal(rpc, s.AckRequest(queue=other, message_id=message.id)).code == "NOT_FOUND"


def test_many_are_settled_in_one_call_each_by_itself(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.enqueue(queue, b"a", b"b")
    leased = rpc.lease(queue, 2).messages
    ids = b"".join(bytes.fromhex(message.id.replace("-", "")) for message in leased)
    tokens = [leased[0].delivery.lease_token, 1]
    ack = s.Settlement(queue=queue, message_ids=ids, lease_tokens=tokens, ack=s.AckAction())
    lost = s.Settlement(queue="none", message_ids=ids, ack=s.AckAction())
    idle = s.Settlement(queue=queue, message_ids=ids)

    results = rpc.call(s.SettleRequest(settlements=[ack, lost, idle]), s.SettleResponse).results

    assert [[(error.index, error.code) for error in result.errors] for result in results] == [
        [(1, 5)],
        [(0, 5), (1, 5)],
        [(0, 3), (1, 3)],
    ]
    assert rpc.stats(queue).depth == 1


def test_packed_ids_and_tokens_that_do_not_fit_are_invalid(rpc: Rpc) -> None:
    queue = rpc.queue()
    ragged = s.Settlement(queue=queue, message_ids=bytes(17), ack=s.AckAction())
    uneven = s.Settlement(queue=queue, message_ids=bytes(32), lease_tokens=[1], ack=s.AckAction())

    for settlement in (ragged, uneven):
        assert refusal(rpc, s.SettleRequest(settlements=[settlement])).code == "INVALID_ARGUMENT"


def test_an_endless_error_text_is_cut_not_refused(rpc: Rpc) -> None:
    queue = rpc.queue(retry_delay_ms=0)
    rpc.enqueue(queue, b"x")
    [message] = rpc.lease(queue).messages
    nack = s.NackRequest(queue=queue, message_id=message.id, error="ä" * 5000, dead_letter=True)

    rpc.call(nack, s.NackResponse)
    [dead] = rpc.lease(f"{queue}.dlq").messages

    assert dead.dead_letter.last_error == "ä" * 2048
    assert dead.dead_letter.reason == "rejected"
    assert dead.dead_letter.source_queue == queue
    assert dead.metadata.queue_id == f"{queue}.dlq"


def test_a_script_that_is_none_is_refused_with_its_line(rpc: Rpc) -> None:
    broken = a.QueueConfig(on_enqueue_script="function on_enqueue()\nreturn {")

    found = refusal(rpc, a.CreateQueueRequest(name="s", config=broken))

    assert found.code == "INVALID_ARGUMENT"
    assert ":2:" in found.details
    assert refusal(rpc, a.GetQueueRequest(queue="s")).code == "NOT_FOUND"


def test_a_dead_letter_queue_is_deleted_with_its_queue_only(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.enqueue(f"{queue}.dlq", b"x")

    alone = refusal(rpc, a.DeleteQueueRequest(queue=f"{queue}.dlq"))
    careful = refusal(rpc, a.DeleteQueueRequest(queue=queue, keep_dead_letters=True))

    assert alone.code == careful.code == "FAILED_PRECONDITION"
    rpc.call(a.DeleteQueueRequest(queue=queue), a.DeleteQueueResponse)


def test_a_method_that_does_not_exist_is_unimplemented(rpc: Rpc) -> None:
    with pytest.raises(RefusedError, match="UNIMPLEMENTED"):
        rpc.raw("FilaService/Nothing", b"")
