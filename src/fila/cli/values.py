"""The kinds of values that people type: time spans, headers, payloads, scripts, moments."""

import re
import sys
from datetime import datetime
from pathlib import Path

import click

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Span(click.ParamType[float]):
    """A time span, in seconds unless it says otherwise: 30, 500ms, 5m, 2h, 1d."""

    name = "span"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
        if isinstance(value, int | float):
            return float(value)
        match = _SPAN.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no time span; write 30, 500ms, 5m, 2h or 1d", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


class Header(click.ParamType[tuple[str, str]]):
    """One header, as key=value."""

    name = "key=value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Key and value."""
        key, equals, text = str(value).partition("=")
        if not key or not equals:
            self.fail(f"{value!r} is no header; write key=value", param, ctx)
        return key, text


class Payload(click.ParamType[bytes]):
    """A payload: the text itself, @FILE for a file's content, - for standard input."""

    name = "payload"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> bytes:
        """The bytes."""
        if isinstance(value, bytes):
            return value
        text = str(value)
        if text == "-":
            return sys.stdin.buffer.read()
        if not text.startswith("@"):
            return text.encode(errors="surrogateescape")
        try:
            return Path(text[1:]).read_bytes()
        except OSError as error:
            self.fail(f"cannot read {text[1:]}: {error.strerror}", param, ctx)


class Script(click.ParamType[str]):
    """A script: the text itself, @FILE for a file's content, - for standard input."""

    name = "script|@file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The source."""
        try:
            source = PAYLOAD.convert(value, param, ctx).decode()
        except UnicodeDecodeError:
            self.fail("the script is not UTF-8 text", param, ctx)
        if value and not source:
            # An empty file is a mistake more often than a wish.
            self.fail(f"there is no script in {value}; '' takes the queue's away", param, ctx)
        return source


class Moment(click.ParamType[datetime]):
    """A point in time, as in 2030-01-31T08:00 (local) or 2030-01-31T08:00Z."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """With its time zone."""
        if isinstance(value, datetime):
            return value.astimezone()
        try:
            return datetime.fromisoformat(str(value)).astimezone()
        except ValueError:
            self.fail(f"{value!r} is no time; write 2030-01-31T08:00 or with Z", param, ctx)


SPAN = Span()
HEADER = Header()
PAYLOAD = Payload()
SCRIPT = Script()
MOMENT = Moment()
