"""What the broker answered, decoded."""

from uuid import UUID, uuid4

from fila.client.answers import id_texts, lease_error, outcomes
from fila.errors import ExhaustedError, InvalidArgumentError, LeaseNotFoundError
from fila.wire._pb import service_pb2 as pb


def test_ids_have_their_usual_form() -> None:
    ids = [uuid4() for _ in range(5)]

    assert list(id_texts(b"".join(one.bytes for one in ids))) == [str(one) for one in ids]


def test_each_item_has_its_own_outcome() -> None:
    first, third = uuid4(), uuid4()
    response = pb.EnqueueBatchResponse(
        message_ids=first.bytes + UUID(int=0).bytes + third.bytes,
        errors=[pb.ItemError(index=1, code=3, message="weight is 0")],
    )

    results = outcomes(response.SerializeToString())

    assert (results[0], results[2]) == (str(first), str(third))
    assert isinstance(results[1], InvalidArgumentError)
    assert str(results[1]) == "weight is 0"


def test_what_a_settle_does_not_find_is_its_lease() -> None:
    assert isinstance(lease_error(pb.ItemError(code=5, message="no")), LeaseNotFoundError)
    assert isinstance(lease_error(pb.ItemError(code=8, message="full")), ExhaustedError)
