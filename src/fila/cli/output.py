"""What a command prints: tables for people, JSON for programs. Colour only on a terminal."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Cell: TypeAlias = str | int | float | Text | None

# A pipe has no width: a table takes what it needs, and no line is folded.
_PIPE_WIDTH = 100_000


def console(*, stderr: bool = False) -> Console:
    """A console for one of the two outputs, as they are now."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, emoji=False, markup=False)


@dataclass(frozen=True, slots=True)
class Output:
    """Where one command's result goes."""

    as_json: bool = False

    def document(self, value: Json) -> None:
        """Print one JSON document."""
        print(json.dumps(value), flush=True)  # noqa: T201 - the result itself

    def line(self, text: str) -> None:
        """Print one line for a person."""
        console().print(Text(printable(text)), soft_wrap=True)

    def done(self, text: str, value: Json) -> None:
        """Say what was done: a line for a person, a document for a program."""
        if self.as_json:
            self.document(value)
        else:
            self.line(text)


# Between columns; and what is folded only if it is longer.
_GAP = 2
_SHORT = 8


def table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """Plain columns: numbers to the right, no lines.

    In a narrow window long texts are folded, short ones and numbers are not; the first column,
    which people copy from, only if it must be.
    """
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    cells = [[_cell(value) for value in row] for row in rows]
    least = [
        _least_width(heading, [row[position] for row in cells])
        for position, heading in enumerate(headings)
    ]
    first = max((row[0].cell_len for row in cells), default=0)
    is_first_whole = first + sum(least[1:]) + _GAP * len(least) <= console().width
    for position, heading in enumerate(headings):
        numeric = all(isinstance(row[position], int | float) for row in rows) and bool(rows)
        drawn.add_column(
            heading,
            justify="right" if numeric else "left",
            min_width=least[position],
            no_wrap=position == 0 and is_first_whole,
            overflow="fold",
        )
    for row in cells:
        drawn.add_row(*row)
    return drawn


def _least_width(heading: str, cells: Sequence[Text]) -> int:
    """What a column needs at least: the heading's words, and what is too short to be folded."""
    words = [len(word) for word in heading.split()]
    return max([*words, *(min(cell.cell_len, _SHORT) for cell in cells)], default=0)


def _cell(value: Cell) -> Text:
    if isinstance(value, Text):
        return value
    return Text(number(value) if isinstance(value, int | float) else printable(value or ""))


def number(value: float) -> str:
    """A count or a rate as people write it."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}"


def percent(share: float) -> str:
    """A share of one."""
    return f"{share:.1%}"


def duration(milliseconds: float) -> str:
    """A time span, in the unit that suits it."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    if minutes < 120:
        return f"{minutes:.0f} min"
    hours = minutes / 60
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} d"


def moment(at: datetime | None) -> str:
    """A time of day here, with the date when that is another one."""
    if at is None:
        return ""
    local = at.astimezone()
    today = datetime.now(UTC).astimezone().date()
    return local.strftime("%H:%M:%S" if local.date() == today else "%Y-%m-%d %H:%M:%S")


def stamp(at: datetime | None) -> str | None:
    """A time for programs."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def printable(text: str) -> str:
    """Text from elsewhere without what could steer a terminal."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def preview(payload: bytes, width: int) -> str:
    """The beginning of a payload, in one line."""
    text = printable(payload[: 4 * width].decode(errors="backslashreplace"))
    return text if len(text) <= width else text[: width - 1] + "…"


def payload_fields(payload: bytes) -> dict[str, Json]:
    """A payload for programs: as text where it is text, else in base64."""
    try:
        return {"payload": payload.decode()}
    except UnicodeDecodeError:
        import base64

        return {"payload_base64": base64.b64encode(payload).decode()}
