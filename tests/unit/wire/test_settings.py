"""Queue settings between the wire and the model."""

import math

import pytest

from fila.errors import InvalidArgumentError
from fila.model import QueueSettings
from fila.wire._pb.admin_pb2 import QueueConfig
from fila.wire.settings import config_of, merged_settings

DEFAULTS = QueueSettings(visibility_timeout_ms=45_000)
CHANGED = QueueSettings(visibility_timeout_ms=5000, max_attempts=3, max_depth=9, retry_backoff=1.5)


def merged(config: QueueConfig, *, in_dlq: bool = False) -> QueueSettings:
    return merged_settings(CHANGED, config, defaults=DEFAULTS, in_dlq=in_dlq)


def test_what_is_unset_stays() -> None:
    assert merged(QueueConfig()) == CHANGED


def test_what_is_set_replaces_even_with_zero() -> None:
    settings = merged(QueueConfig(max_attempts=0, max_depth=0, retry_delay_ms=0))

    assert (settings.max_attempts, settings.max_depth, settings.retry_delay_ms) == (0, 0, 0)
    assert settings.retry_backoff == 1.5


def test_a_visibility_timeout_of_zero_is_the_brokers_default() -> None:
    assert merged(QueueConfig(visibility_timeout_ms=0)).visibility_timeout_ms == 45_000


def test_settings_survive_the_way_to_the_wire_and_back() -> None:
    assert merged_settings(DEFAULTS, config_of(CHANGED), defaults=DEFAULTS, in_dlq=False) == CHANGED


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (QueueConfig(visibility_timeout_ms=1), "visibility_timeout_ms"),
        (QueueConfig(visibility_timeout_ms=999), "visibility_timeout_ms"),
        (QueueConfig(visibility_timeout_ms=1 << 62), "visibility_timeout_ms"),
        (QueueConfig(retry_backoff=0.9), "retry_backoff"),
        (QueueConfig(retry_backoff=math.nan), "retry_backoff"),
        (QueueConfig(retry_backoff=math.inf), "retry_backoff"),
        (QueueConfig(retry_delay_ms=1 << 63), "retry_delay_ms"),
        (QueueConfig(max_depth=1 << 63), "max_depth"),
        (QueueConfig(quantum=1_000_001), "quantum"),
        (QueueConfig(hook_timeout_ms=1001), "hook_timeout_ms"),
        (QueueConfig(hook_memory_bytes=1 << 23), "hook_memory_bytes"),
        (QueueConfig(hook_memory_bytes=1000), "hook_memory_bytes is 1000; it must be 0"),
    ],
)
def test_values_out_of_range_are_refused(config: QueueConfig, word: str) -> None:
    with pytest.raises(InvalidArgumentError, match=word):
        merged(config)


def test_a_dead_letter_queue_has_no_max_attempts() -> None:
    assert merged(QueueConfig(), in_dlq=True).max_attempts == 0
    with pytest.raises(InvalidArgumentError, match="max_attempts"):
        merged(QueueConfig(max_attempts=5), in_dlq=True)


def test_a_script_is_set_and_taken_away_by_an_empty_one() -> None:
    settings = merged(QueueConfig(on_enqueue_script="x", on_failure_script="y"))
    without = merged_settings(
        settings, QueueConfig(on_enqueue_script=""), defaults=DEFAULTS, in_dlq=False
    )

    assert (settings.on_enqueue_script, settings.on_failure_script) == ("x", "y")
    assert (without.on_enqueue_script, without.on_failure_script) == ("", "y")
