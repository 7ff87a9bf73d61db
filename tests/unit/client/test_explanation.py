"""An answer of the broker as frozen values."""

from fila.client.explanation import CauseCode, CountFacts, ThrottleFacts, explanation
from fila.wire._pb import admin_pb2 as pb


def test_the_codes_are_those_on_the_wire() -> None:
    on_the_wire = {name.removeprefix("CAUSE_CODE_"): n for name, n in pb.CauseCode.items() if n}

    assert on_the_wire == {code.name: code.value for code in CauseCode if code.value}


def test_a_cause_of_a_newer_broker_is_shown_with_its_words() -> None:
    answer = pb.ExplainResponse(causes=[pb.Cause(text="A new thing.", advice="Do this.")])
    answer.causes[0].MergeFromString(b"\x08\xe7\x07")

    (cause,) = explanation(answer).causes

    assert (cause.code, cause.text, cause.facts) == (CauseCode.OTHER, "A new thing.", None)


def test_never_is_none_and_at_once_is_zero() -> None:
    never = pb.ThrottleFacts(buckets=[pb.BucketFacts(key="p")])
    at_once = pb.ThrottleFacts(
        buckets=[pb.BucketFacts(key="p", next_token_ms=0)], earliest_ms=0, likely_ms=0
    )
    answer = pb.ExplainResponse(causes=[pb.Cause(throttle=never), pb.Cause(throttle=at_once)])

    first, second = (cause.facts for cause in explanation(answer).causes)

    assert isinstance(first, ThrottleFacts)
    assert isinstance(second, ThrottleFacts)
    assert (first.earliest_ms, first.likely_ms, first.buckets[0].next_token_ms) == (None,) * 3
    assert (second.earliest_ms, second.likely_ms, second.buckets[0].next_token_ms) == (0, 0, 0)


def test_a_count_of_none_is_a_fact() -> None:
    answer = pb.ExplainResponse(causes=[pb.Cause(count=0)])

    assert explanation(answer).causes[0].facts == CountFacts(messages=0)
