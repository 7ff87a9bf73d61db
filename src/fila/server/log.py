"""What the broker says on stderr: JSON lines for programs, readable lines on a terminal.

Never a payload or a header value: log what was asked and what it names, not what it carries.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

ROOT = "fila"
# Extra fields of a record: `log.info("…", extra=facts(queue=…))`.
_FACTS = "facts"


def facts(**values: object) -> dict[str, object]:
    """Fields of a log line beside its text."""
    return {_FACTS: values}


class JsonFormatter(logging.Formatter):
    """One JSON object for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": _moment(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, _FACTS, {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """Time, level, text, facts."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        known: dict[str, object] = getattr(record, _FACTS, {})
        extra = "".join(f"  {name}={value}" for name, value in known.items())
        clock = _moment(record).astimezone().strftime("%H:%M:%S.%f")[:-3]
        line = f"{clock} {record.levelname.lower():7} {record.getMessage()}{extra}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def configure(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send the broker's log to a stream, stderr by default."""
    target = stream or sys.stderr
    readable = form == "text" or (form == "auto" and target.isatty())
    handler = logging.StreamHandler(target)
    handler.setFormatter(TextFormatter() if readable else JsonFormatter())
    for name in (ROOT, "grpc", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(level.upper() if name == ROOT else logging.ERROR)
