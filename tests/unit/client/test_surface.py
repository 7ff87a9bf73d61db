"""The synchronous and the asynchronous client are the same surface."""

import inspect

import pytest

import fila
from fila.client.admin import AsyncAdmin
from fila.client.sync_admin import Admin

# What carries calls between the two faces, and is nobody else's.
INNER = {
    "check_open",
    "make_room",
    "raise_refusal",
    "settle_late",
    "submit",
    "submit_many",
    "subscribing",
}
PAIRS = [
    (fila.Client, fila.AsyncClient),
    (Admin, AsyncAdmin),
    (fila.Consumer, fila.AsyncConsumer),
    (fila.Worker, fila.AsyncWorker),
]


def surface(kind: type) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(kind).items()
        if not name.startswith("_") and name not in INNER | {"request_stop"}
    }


@pytest.mark.parametrize(("sync", "asynchronous"), PAIRS)
def test_both_faces_have_the_same_methods(sync: type, asynchronous: type) -> None:
    assert surface(sync).keys() == surface(asynchronous).keys()


@pytest.mark.parametrize(("sync", "asynchronous"), PAIRS)
def test_both_faces_take_the_same_arguments_and_say_the_same(
    sync: type, asynchronous: type
) -> None:
    for name in surface(sync):
        one, other = getattr(sync, name), getattr(asynchronous, name)
        assert inspect.signature(one).parameters == inspect.signature(other).parameters, name


def test_both_clients_are_made_alike() -> None:
    assert inspect.signature(fila.Client) == inspect.signature(fila.AsyncClient)


def test_what_waits_is_a_coroutine_there_and_a_plain_call_here() -> None:
    for name in ("enqueue", "enqueue_batch", "lease", "ack", "nack", "release", "extend", "flush"):
        assert inspect.iscoroutinefunction(getattr(fila.AsyncClient, name))
        assert not inspect.iscoroutinefunction(getattr(fila.Client, name))


def test_every_public_name_is_listed_in_order() -> None:
    assert fila.__all__ == sorted(fila.__all__)
    assert all(hasattr(fila, name) for name in fila.__all__)


def test_a_message_shows_no_payload() -> None:
    message = fila.NewMessage(b"secret")

    assert "secret" not in repr(message), "payloads end up in logs"
