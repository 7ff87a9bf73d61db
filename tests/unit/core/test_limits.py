"""Limits as the runtime config says them: what is one, and what is refused before it is stored."""

import pytest

from fila.core import commands as c
from fila.core import limits
from fila.errors import InvalidArgumentError
from tests.unit.core.throttled import Throttled


@pytest.mark.parametrize("value", ["0", "50", "0.5", ".5", "3.", "1e3", "1E+3", "2.5e-1", "1e9"])
def test_a_number_is_a_rate(value: str) -> None:
    limits.check("throttle:mail:rate", value)


@pytest.mark.parametrize(
    "value",
    [
        "nan",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "-1",
        "-0.0",
        "+1",
        "1e10",
        "1000000001",
        "9" * 400,
        "1e999",
        "1e9999",
        "0x10",
        "1_000",
        "1,5",
        " 5",
        "5 ",
        "5\n",
        "\u0665",
        "\uff15",
        "\u00b2",
        "five",
        ".",
        "e3",
        "1e",
        "--5",
    ],
)
@pytest.mark.parametrize("which", ["rate", "burst"])
def test_what_is_no_number_or_no_limit_is_refused_by_name(value: str, which: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"throttle:mail:{which} is "):
        limits.check(f"throttle:mail:{which}", value)


@pytest.mark.parametrize("value", ["0", "0.99", "0.9999999999", "1e-3"])
def test_a_burst_below_one_is_refused(value: str) -> None:
    with pytest.raises(InvalidArgumentError, match="from 1 to 1000000000"):
        limits.check("throttle:mail:burst", value)


@pytest.mark.parametrize(
    "key",
    [
        "throttle:mail:rat",
        "throttle:mail",
        "throttle:mail:rate:",
        "throttle:",
        "throttle:rate",
        "throttle::rate",
        "throttle::burst",
        "throttle:mail:RATE",
    ],
)
def test_a_throttle_setting_that_sets_nothing_is_refused(key: str) -> None:
    with pytest.raises(InvalidArgumentError, match="sets nothing"):
        limits.check(key, "5")


def test_other_settings_may_say_anything() -> None:
    limits.check("throttled", "anything")
    limits.check("feature:rate", "nan")


@pytest.mark.parametrize(
    ("config_key", "throttle_key"),
    [
        ("throttle:a:rate", "a"),
        ("throttle:a:b:c:rate", "a:b:c"),
        ("throttle:a:rate:burst", "a:rate"),
        ("throttle:a:burst:rate", "a:burst"),
        ("throttle:::rate", ":"),
        ("throttle:throttle:a:rate:rate", "throttle:a:rate"),
    ],
)
def test_a_throttle_key_may_have_colons(config_key: str, throttle_key: str) -> None:
    assert limits.throttle_key_of(config_key) == throttle_key


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({}, None),
        ({"throttle:a:burst": "5"}, None),
        ({"throttle:a:rate": "5"}, limits.Limit(5, 5)),
        ({"throttle:a:rate": "0.2"}, limits.Limit(0.2, 1)),
        ({"throttle:a:rate": "0"}, limits.Limit(0, 1)),
        ({"throttle:a:rate": "5", "throttle:a:burst": "50"}, limits.Limit(5, 50)),
        ({"throttle:a:rate": "5", "throttle:a:burst": "1"}, limits.Limit(5, 1)),
    ],
)
def test_a_rate_makes_a_limit_and_a_burst_alone_does_not(
    config: dict[str, str], limit: limits.Limit | None
) -> None:
    assert limits.limit_of(config, "a") == limit


def test_what_is_refused_is_not_stored_and_changes_nothing() -> None:
    driver = Throttled()
    driver.limit("p", 5, burst=10)

    for key, value in (("throttle:p:rate", "nan"), ("throttle:p:burst", "0.5")):
        with pytest.raises(InvalidArgumentError):
            driver.configure(key, value)

    assert driver.scheduler.config == {"throttle:p:rate": "5", "throttle:p:burst": "10"}
    assert driver.tokens("p") == 10


def test_deleting_says_whether_there_was_something() -> None:
    driver = Throttled()
    driver.limit("p", 5)

    assert driver.do(c.SetConfig(tag=0, key="throttle:p:rate", value="")) is True
    assert driver.do(c.SetConfig(tag=0, key="throttle:p:rate", value="")) is False
    assert driver.scheduler.config == {}
