"""Responses that are put together as bytes are what protobuf would have made."""

from fila import ids
from fila.model import ItemError, Outcome
from fila.wire import reply
from fila.wire._pb import messages_pb2, service_pb2

HIGH = ids.id_high(1_700_000_000_000, 7)


def packed(response: bytes) -> list[str]:
    found = service_pb2.EnqueueBatchResponse.FromString(response).message_ids
    return [found[start : start + 16].hex() for start in range(0, len(found), 16)]


def id_hex(sequence: int) -> str:
    return ids.id_bytes(HIGH, ids.id_low(sequence, 5)).hex()


def test_ids_run_from_the_first() -> None:
    outcome = Outcome(HIGH, 40, 3, 0)

    assert packed(reply.accepted(outcome, 5)) == [id_hex(40), id_hex(41), id_hex(42)]
    assert reply.accepted_id(outcome, 5).replace("-", "") == id_hex(40)


def test_refused_items_leave_gaps_where_they_were() -> None:
    errors = (ItemError(0, "INVALID_ARGUMENT", "no"), ItemError(2, "RESOURCE_EXHAUSTED", "full"))
    response = reply.accepted(Outcome(HIGH, 40, 4, 0, errors), 5)

    found = service_pb2.EnqueueBatchResponse.FromString(response)

    assert packed(response) == ["0" * 32, id_hex(40), "0" * 32, id_hex(41)]
    assert [(error.index, error.code, error.message) for error in found.errors] == [
        (0, 3, "no"),
        (2, 8, "full"),
    ]


def test_deliveries_are_messages_of_a_work_response() -> None:
    head = messages_pb2.Message(id="1", payload=bytes(300)).SerializeToString()
    tail = messages_pb2.Message(delivery={"lease_token": 9}).SerializeToString()
    item = reply.embedded(head, tail)

    work = service_pb2.WorkResponse.FromString(reply.work_deliveries([item, item]))
    plain = service_pb2.ConsumeResponse.FromString(item)

    assert [message.delivery.lease_token for message in work.deliveries.messages] == [9, 9]
    assert plain.message.id == "1"
    assert plain.message.delivery.lease_token == 9
