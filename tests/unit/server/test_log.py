"""Log lines."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from fila.server import log as logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    names = ("fila", "grpc", "asyncio")
    before = [
        (logger, list(logger.handlers), logger.propagate, logger.level)
        for logger in map(logging.getLogger, names)
    ]
    yield
    for logger, handlers, propagate, level in before:
        logger.handlers[:] = handlers
        logger.propagate = propagate
        logger.setLevel(level)


def lines(form: str, level: str = "info") -> list[str]:
    stream = io.StringIO()
    logs.configure(level, form, stream)
    log = logging.getLogger("fila.server.test")
    log.debug("quiet")
    log.info("stored %d", 3, extra=logs.facts(queue="q", count=3))
    return stream.getvalue().splitlines()


def test_programs_get_one_object_a_line_with_the_facts_as_fields() -> None:
    [line] = lines("auto")

    found = json.loads(line)
    assert found["message"] == "stored 3"
    assert (found["level"], found["queue"], found["count"]) == ("info", "q", 3)


def test_people_get_text() -> None:
    [line] = lines("text")

    assert line.endswith("info    stored 3  queue=q  count=3")


def test_the_level_is_the_configured_one() -> None:
    assert lines("json", "error") == []
    assert len(lines("json", "debug")) == 2
