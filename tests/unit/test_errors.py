"""Errors as values: they are copied, and sent from one process to another."""

import copy
import pickle

import pytest

from fila.errors import (
    FilaError,
    InvalidArgumentError,
    LeaseNotFoundError,
    MessageNotFoundError,
    QueueExistsError,
    QueueNotFoundError,
    ShuttingDownError,
)

ERRORS = [
    FilaError("what happened"),
    InvalidArgumentError("weight is 0"),
    LeaseNotFoundError("q"),
    MessageNotFoundError("q", "id"),
    QueueExistsError("q"),
    QueueNotFoundError("q"),
    ShuttingDownError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_copy_says_the_same(error: FilaError) -> None:
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
