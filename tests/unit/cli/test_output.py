"""What people and programs read."""

import json

import pytest

from fila.cli import output
from fila.cli.output import (
    Output,
    console,
    duration,
    payload_fields,
    percent,
    preview,
    printable,
    table,
)


def test_text_from_elsewhere_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb\n") == r"a\x1b[2Jb\n"
    assert printable("plain ünïcode") == "plain ünïcode"


def test_a_preview_is_one_short_line() -> None:
    assert preview(b"line one\nline two", 10) == "line one\\…"
    assert preview(b"short", 10) == "short"
    assert preview(b"\xff\xfe", 10) == r"\xff\xfe"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1500, "1.5 s"),
        (600_000, "10 min"),
        (10_800_000, "3 h"),
        (259_200_000, "3 d"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(milliseconds: float, text: str) -> None:
    assert duration(milliseconds) == text


def test_a_share_is_shown_in_percent() -> None:
    assert percent(0.1234) == "12.3%"


def test_a_payload_that_is_no_text_goes_out_in_base64() -> None:
    assert payload_fields("ä".encode()) == {"payload": "ä"}
    assert payload_fields(b"\xff") == {"payload_base64": "/w=="}


def test_a_program_gets_one_document_and_a_person_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output(as_json=True).done("created orders", {"queue": "orders"})
    document = capsys.readouterr().out
    Output().done("created orders", {"queue": "orders"})
    line = capsys.readouterr().out

    assert json.loads(document) == {"queue": "orders"}
    assert line == "created orders\n"


def test_numbers_stand_to_the_right() -> None:
    drawn = table(("queue", "messages"), [("orders", 1000), ("mail", 5)])

    assert [column.justify for column in drawn.columns] == ["left", "right"]


def test_in_a_narrow_window_names_are_folded_and_numbers_are_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_PIPE_WIDTH", 40)
    row = ("a-tenant-with-a-long-name", 123_456, 654_321, "100.0%")

    console().print(table(("key", "waiting", "per second", "share"), [row]))
    lines = capsys.readouterr().out.splitlines()

    assert max(map(len, lines)) <= 40
    assert any(line.split()[1:] == ["123,456", "654,321", "100.0%"] for line in lines)


def test_what_people_copy_is_folded_only_if_it_must_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_PIPE_WIDTH", 60)
    message_id = "01890a5d-ac96-774b-bcce-b302099a8057"

    console().print(table(("id", "state", "key"), [(message_id, "ready", "a-tenant" * 4)]))

    assert message_id in capsys.readouterr().out
