"""What people type becomes values, or a line that says what to type."""

from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from fila.cli.values import HEADER, MOMENT, PAYLOAD, SCRIPT, SPAN


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("1.5", 1.5), ("500ms", 0.5), ("5m", 300), ("2h", 7200), ("1d", 86400), ("0", 0)],
)
def test_a_span_is_seconds_unless_it_says_otherwise(text: str, seconds: float) -> None:
    assert SPAN.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "5 weeks", "nan", "inf"])
def test_what_is_no_span_is_refused_with_examples(text: str) -> None:
    with pytest.raises(click.BadParameter, match="500ms"):
        SPAN.convert(text, None, None)


def test_a_header_may_hold_further_equals_signs() -> None:
    assert HEADER.convert("query=a=b", None, None) == ("query", "a=b")


@pytest.mark.parametrize("text", ["tenant", "=acme"])
def test_a_header_needs_a_key_and_an_equals_sign(text: str) -> None:
    with pytest.raises(click.BadParameter, match="key=value"):
        HEADER.convert(text, None, None)


def test_a_payload_is_the_text_or_a_files_content(tmp_path: Path) -> None:
    file = tmp_path / "order"
    file.write_bytes(b"\x00\xff")

    assert PAYLOAD.convert("höllo", None, None) == "höllo".encode()
    assert PAYLOAD.convert(f"@{file}", None, None) == b"\x00\xff"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(click.BadParameter, match="/nowhere/order"):
        PAYLOAD.convert("@/nowhere/order", None, None)


def test_a_moment_has_a_time_zone() -> None:
    assert MOMENT.convert("2030-01-31T08:00Z", None, None) == datetime(2030, 1, 31, 8, tzinfo=UTC)
    assert MOMENT.convert("2030-01-31T08:00", None, None).tzinfo is not None


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="2030"):
        MOMENT.convert("tomorrow", None, None)


def test_an_empty_file_takes_no_script_away(tmp_path: Path) -> None:
    file = tmp_path / "hook.lua"
    file.touch()

    with pytest.raises(click.BadParameter, match="there is no script in"):
        SCRIPT.convert(f"@{file}", None, None)
    assert SCRIPT.convert("", None, None) == ""
