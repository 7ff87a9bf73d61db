"""The limits of throttle keys, as the runtime config says them.

`throttle:<key>:rate` is in tokens per second, `throttle:<key>:burst` is what the bucket holds; the
key may have colons itself. Without a rate there is no limit; without a burst the bucket holds a
second's worth, at least one.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from fila.errors import InvalidArgumentError

_PREFIX = "throttle:"
_RATE = ":rate"
_BURST = ":burst"
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|\.[0-9]+")
# Levels are stored in billionths, in 64 bits.
_HIGHEST = 1e9


class Limit(NamedTuple):
    """Tokens per second, and how many at most."""

    rate: float
    burst: float


def throttle_key_of(config_key: str) -> str | None:
    """The throttle key that a setting is about; None for a setting about something else."""
    if not config_key.startswith(_PREFIX):
        return None
    for suffix in (_RATE, _BURST):
        if config_key.endswith(suffix) and len(config_key) > len(_PREFIX) + len(suffix):
            return config_key[len(_PREFIX) : -len(suffix)]
    raise InvalidArgumentError(
        f"{config_key!r} sets nothing; a throttle key is limited by {_PREFIX}<key>{_RATE} "
        f"and {_PREFIX}<key>{_BURST}"
    )


def check(config_key: str, value: str) -> None:
    """Refuse what is no limit. An empty value deletes, and is none either."""
    if throttle_key_of(config_key) is None or not value:
        return
    lowest = 1.0 if config_key.endswith(_BURST) else 0.0
    number = float(value) if _NUMBER.fullmatch(value) else -1.0
    if not lowest <= number <= _HIGHEST:
        raise InvalidArgumentError(
            f"{config_key} is {value!r}; it must be a number from {lowest:.0f} to {_HIGHEST:.0f}"
        )


def limit_of(config: Mapping[str, str], throttle_key: str) -> Limit | None:
    """What a throttle key is limited to; None for no limit."""
    rate = config.get(f"{_PREFIX}{throttle_key}{_RATE}")
    if rate is None:
        return None
    burst = config.get(f"{_PREFIX}{throttle_key}{_BURST}")
    return Limit(float(rate), max(1.0, float(rate)) if burst is None else float(burst))


def limited_keys(config: Mapping[str, str]) -> list[str]:
    """The throttle keys that have a rate."""
    return [
        config_key[len(_PREFIX) : -len(_RATE)]
        for config_key in config
        if config_key.startswith(_PREFIX) and config_key.endswith(_RATE)
    ]
