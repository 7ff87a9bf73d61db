"""The values that every layer shares: their defaults are the specification's."""

import dataclasses

import pytest

from fila import model
from fila.model import Limits, QueueSettings, Reason, Spec


def test_a_message_that_asks_for_nothing_gets_the_defaults() -> None:
    assert Spec() == Spec(fairness_key="default", weight=1, throttle_keys=(), priority=0, cost=1)


def test_a_queue_that_asks_for_nothing_gets_the_defaults() -> None:
    settings = QueueSettings()

    assert settings.visibility_timeout_ms == 30_000
    assert settings.max_attempts == 20
    assert settings.max_depth == 0
    assert (settings.retry_delay_ms, settings.retry_backoff) == (1000, 2.0)
    assert settings.retry_delay_max_ms == 5 * 60 * 1000


def test_the_limits_are_those_of_the_specification() -> None:
    limits = Limits()

    assert limits.message_bytes_max == 4 * 1024 * 1024
    assert (limits.headers_max, limits.header_bytes_max) == (128, 8 * 1024)
    assert (limits.key_bytes_max, limits.throttle_keys_max) == (512, 16)
    assert limits.queue_name_bytes_max + len(model.DLQ_SUFFIX) == 255
    assert (limits.config_key_bytes_max, limits.config_value_bytes_max) == (256, 1024)
    assert (model.WEIGHT_MAX, model.COST_MAX, model.PRIORITY_MAX) == (10_000, 10_000, 255)
    assert model.DEFAULT_CREDIT == 256


def test_equal_specs_share_a_lane() -> None:
    one, other = Spec(throttle_keys=("a", "b")), Spec(throttle_keys=("a", "b"))

    assert {one: 1}[other] == 1
    assert Spec(throttle_keys=("b", "a")) != one


@pytest.mark.parametrize("value", [Spec(), QueueSettings(), Limits()])
def test_values_cannot_be_changed(value: object) -> None:
    assert dataclasses.is_dataclass(value)
    name = dataclasses.fields(value)[0].name

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, 1)


def test_reasons_have_their_names_on_the_wire() -> None:
    assert [reason.label for reason in Reason] == ["rejected", "max_attempts", "expired"]


@pytest.mark.parametrize(
    ("name", "expected"), [("a.dlq", True), ("a.dlq.dlq", True), ("a", False), ("dlq", False)]
)
def test_a_dead_letter_queue_is_known_by_its_name(name: str, *, expected: bool) -> None:
    assert model.is_dlq(name) is expected
