"""What queues and keys may be called."""

import pytest

from fila.errors import InvalidArgumentError
from fila.model import Limits
from fila.wire.names import check_key, check_queue_name

LIMITS = Limits()


@pytest.mark.parametrize("name", ["q", "q.dlq", "ä" * 125, "x" * 251, "x" * 251 + ".dlq", "a b"])
def test_usual_names_are_fine(name: str) -> None:
    check_queue_name(name, LIMITS)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "empty"),
        (".dlq", "empty"),
        ("x" * 252, "queue_name_bytes_max"),
        ("ä" * 126, "queue_name_bytes_max"),
        ("x" * 252 + ".dlq", "queue_name_bytes_max"),
        ("a\tb", "control"),
        ("a\x7f", "control"),
        ("a\x85b", "control"),
        ("a.dlq.dlq", "dead-letter queue of its own"),
    ],
)
def test_names_that_no_queue_can_have(name: str, word: str) -> None:
    with pytest.raises(InvalidArgumentError, match=word):
        check_queue_name(name, LIMITS)


def test_a_key_is_refused_by_what_it_is_for() -> None:
    with pytest.raises(InvalidArgumentError, match=r"throttle key has 513 bytes.*key_bytes_max"):
        check_key("throttle key", "k" * 513, LIMITS)
