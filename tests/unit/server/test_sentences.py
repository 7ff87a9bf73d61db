"""Every cause is said in words that say what to do."""

import pytest

from fila.core.explanation import Cause, Code, Count, Explanation, QueueState
from fila.server.sentences import sentence, span, summary
from fila.wire._pb import admin_pb2 as pb
from tests.unit.core import test_explain, test_explain_keys, test_explain_limits
from tests.unit.core.explained import Explained, story_name

TABLES = (
    test_explain.MESSAGES,
    test_explain_limits.LIMITS,
    test_explain_keys.KEYS,
    test_explain_keys.QUEUES,
)
STORIES = [story for table in TABLES for story, _ in table]


@pytest.mark.parametrize("story", STORIES, ids=story_name)
def test_every_cause_is_a_sentence_with_advice(story: test_explain.Story) -> None:
    driver = Explained()
    driver.create()

    explanation = story(driver)

    said = [sentence(cause, explanation) for cause in explanation.causes]
    assert len({text for text, _ in said}) == len(said)
    for text, advice in said:
        assert text.endswith(".")
        assert advice.endswith(".")
        assert "None" not in text + advice
        assert not text[0].isupper()
    assert summary(explanation).endswith(said[0].text)


def test_the_stories_have_all_causes() -> None:
    seen: set[Code] = {Code.DELIVERABLE}
    for story in STORIES:
        driver = Explained()
        driver.create()
        seen |= {cause.code for cause in story(driver).causes}

    assert seen == set(Code)


def test_the_codes_are_those_on_the_wire() -> None:
    on_the_wire = {name.removeprefix("CAUSE_CODE_"): n for name, n in pb.CauseCode.items() if n}

    assert on_the_wire == {code.name: int(code) for code in Code}


@pytest.mark.parametrize(
    ("count", "said"), [(1, "1 message "), (2, "2 messages "), (1200, "1,200 ")]
)
def test_one_is_one_and_many_are_many(count: int, said: str) -> None:
    subject = QueueState(
        ready=0,
        delayed=count,
        throttled=0,
        in_flight=0,
        consumers=0,
        active_keys=0,
        key_count=1,
        delivered_per_second=0,
        longest_waiting=(),
    )
    explanation = Explanation(
        queue="q", subject=subject, causes=(), is_deliverable=False, is_exact=True
    )

    text = sentence(Cause(Code.DELAYED, Count(messages=count)), explanation).text

    assert text.startswith(said)


@pytest.mark.parametrize(
    ("nanoseconds", "said"),
    [
        (1, "1 ms"),
        (999_000_000, "999 ms"),
        (1_500_000_000, "1.5 s"),
        (300 * 10**9, "5 min"),
        (3 * 3600 * 10**9, "3 h"),
        (72 * 3600 * 10**9, "3 d"),
    ],
)
def test_a_span_has_the_unit_that_suits_it(nanoseconds: int, said: str) -> None:
    assert span(nanoseconds) == said
