"""A script's line: who is asked about, in what order, and who is told what."""

import pytest

from fila.errors import ExhaustedError, StorageError
from fila.server.hook_line import HookLine, Question
from tests.unit.server.scripts import Request, Script


def filled(script: Script | None, *requests: Request) -> HookLine:
    line = HookLine("q", script.hook if script else None)
    for request in requests:
        line.append(request.job)
    return line


def turn(line: HookLine) -> bool:
    """One turn; whether the script was asked."""
    question = line.next_question(0)
    if question is not None:
        line.take(question, question.ask(1), 0)
    return question is not None


def finish(line: HookLine) -> None:
    while len(line):
        turn(line)


def test_requests_are_asked_together_and_told_in_order() -> None:
    told: list[Request] = []
    requests = [Request("a", told=told.append), Request("b", "c", told=told.append)]
    script = Script()

    finish(filled(script, *requests))

    assert script.runs == [3]
    assert told == requests
    assert [request.keys for request in requests] == [["a"], ["b", "c"]]


def test_a_turn_that_ends_early_goes_on_where_it_stopped_without_packing_again() -> None:
    script, request = Script(per_run=2), Request("a", "b", "c", "d", "e")
    line = filled(script, request)

    finish(line)

    assert script.runs == [2, 2, 1]
    assert script.packs == 1
    assert request.keys == ["a", "b", "c", "d", "e"]


def test_a_request_is_told_as_soon_as_its_own_calls_are_decided() -> None:
    first, second = Request("a"), Request("b", "c")
    line = filled(Script(per_run=2), first, second)

    turn(line)

    assert first.keys == ["a"]
    assert second.keys is None


def test_a_failed_call_leaves_its_message_as_it_is_and_the_others_go_on() -> None:
    script, request = Script(), Request("a", "fail", "c")

    finish(filled(script, request))

    assert request.keys == ["a", None, "c"]
    assert script.runs == [2, 1]


def test_an_open_breaker_lets_everybody_through_unasked() -> None:
    script, request = Script(), Request("a", "b")
    script.is_open = True
    line = filled(script, request)

    asked = turn(line)

    assert not asked
    assert request.keys == [None, None]
    assert script.asked == []


def test_a_breaker_that_opens_in_the_middle_lets_the_rest_through() -> None:
    script, request = Script(per_run=1), Request("a", "b", "c")
    line = filled(script, request)
    turn(line)
    script.is_open = True

    finish(line)

    assert request.keys == ["a", None, None]


def test_a_new_script_is_asked_about_what_the_old_one_has_not_decided() -> None:
    old, new = Script("old-", per_run=1), Script("new-")
    request = Request("a", "b", "c")
    line = filled(old, request)
    turn(line)

    line.hook = new.hook
    finish(line)

    assert request.keys == ["old-a", "new-b", "new-c"]


def test_without_a_script_whoever_waits_is_let_through() -> None:
    first, second = Request("a", "b"), Request("c")
    line = filled(Script(per_run=1), first, second)
    turn(line)

    line.hook = None
    finish(line)

    assert (first.keys, second.keys) == (["a", None], [None])


def test_an_answer_of_a_script_that_was_replaced_meanwhile_still_counts() -> None:
    old, request = Script("old-"), Request("a", "b")
    line = filled(old, request)
    question = line.next_question(0)
    assert isinstance(question, Question)

    line.hook = None
    line.take(question, question.ask(1), 0)

    assert request.keys == ["old-a", "old-b"]


def test_nobody_is_asked_about_for_a_caller_who_has_gone() -> None:
    gone, stays = Request("a"), Request("b")
    gone.is_wanted = False
    script = Script()
    line = filled(script, gone, stays)

    finish(line)

    assert script.asked == ["b"]
    assert gone.keys is None
    assert stays.keys == ["b"]


def test_a_request_without_calls_is_told_in_its_turn() -> None:
    told: list[Request] = []
    requests = [Request("a", told=told.append), Request(told=told.append)]

    finish(filled(Script(), *requests))

    assert told == requests
    assert requests[1].keys == []


def test_calls_are_prepared_once_and_when_their_turn_comes() -> None:
    first, second = Request(*"abc" * 200), Request("z")
    line = filled(Script(per_run=100), first, second)

    turn(line)

    assert (first.prepared, second.prepared) == (1, 0)
    finish(line)
    assert (first.prepared, second.prepared) == (1, 1)


def test_a_big_request_is_asked_about_in_parts() -> None:
    script, request = Script(per_run=10_000), Request(*map(str, range(1300)))

    finish(filled(script, request))

    assert script.runs == [512, 512, 276]
    assert request.keys == list(map(str, range(1300)))


def test_an_answer_that_never_comes_leaves_the_messages_as_they_are() -> None:
    request = Request("a", "b")
    line = filled(Script(), request)
    question = line.next_question(0)
    assert question is not None

    line.give_up(question)

    assert request.keys == [None, None]
    assert not len(line)


def test_what_would_wait_too_long_is_refused_with_the_reason() -> None:
    line = filled(Script(), Request(*["a"] * 15_000))

    with pytest.raises(
        ExhaustedError, match="15000 messages wait for the on_enqueue script of queue 'q'"
    ):
        line.admit(6000, 0)
    line.admit(5000, 0)


def test_too_many_bytes_are_refused_too_but_never_the_only_request() -> None:
    line = filled(None)
    line.admit(30_000, 1 << 30)
    line.append(Request("a").job)

    with pytest.raises(ExhaustedError, match="make the script quicker"):
        line.admit(1, 1 << 30)


def test_what_has_left_makes_room() -> None:
    line = filled(Script(), Request(*["a"] * 15_000), Request("b"))
    finish(line)
    line.append(Request("c").job)

    line.admit(19_999, 64 * 1024 * 1024 - 10)


def test_a_request_that_cannot_say_what_to_ask_goes_on_and_nobody_behind_it_is_lost() -> None:
    script, before, broken, after = Script(), Request("a"), Request("b"), Request("c")
    job = broken.job

    def unreadable() -> None:
        raise StorageError("the disk is on fire")

    job.prepare = unreadable
    line = filled(script, before)
    line.append(job)
    line.append(after.job)

    finish(line)

    assert (before.keys, broken.keys, after.keys) == (["a"], [], ["c"])
