"""The thread in which scripts run: turns between lines, and nothing that holds the loop."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from fila.server.hook_line import HookLine
from fila.server.hook_thread import HookThread
from fila.testing.clock import ManualClock
from tests.unit.server.scripts import Request, Script

PATIENCE_S = 10


@pytest.fixture
async def thread() -> AsyncIterator[HookThread]:
    made = HookThread(ManualClock())
    yield made
    made.close()


class Told:
    """A request whose end can be waited for."""

    def __init__(self, *names: str) -> None:
        self._done = asyncio.Event()
        self.order: list[str] = []
        self.request = Request(*names, told=lambda _request: self._done.set())

    async def wait(self) -> list[str | None]:
        await asyncio.wait_for(self._done.wait(), PATIENCE_S)
        assert self.request.keys is not None
        return self.request.keys


async def until_asked(script: Script) -> None:
    assert await asyncio.to_thread(script.is_asked.wait, PATIENCE_S)


async def test_requests_that_arrive_together_are_asked_together(thread: HookThread) -> None:
    script = Script()
    line = HookLine("q", script.hook)
    requests = [Told(name) for name in "abc"]

    for told in requests:
        thread.submit(line, told.request.job)
    answers = [await told.wait() for told in requests]

    assert answers == [["a"], ["b"], ["c"]]
    assert script.runs == [3]


async def test_the_loop_goes_on_while_a_script_runs(thread: HookThread) -> None:
    script, told = Script(), Told("a")
    script.may_run.clear()

    thread.submit(HookLine("q", script.hook), told.request.job)
    for _ in range(100):
        await asyncio.sleep(0)

    assert told.request.keys is None
    script.may_run.set()
    assert await told.wait() == ["a"]


async def test_a_slow_line_takes_turns_with_a_quick_one(thread: HookThread) -> None:
    slow, quick = Script(per_run=1), Script()
    slow_line, quick_line = HookLine("q", slow.hook), HookLine("q", quick.hook)
    long, short = Told(*map(str, range(200))), Told("a")

    thread.submit(slow_line, long.request.job)
    thread.submit(quick_line, short.request.job)
    await short.wait()

    assert len(slow.asked) <= 2
    assert await long.wait() == list(map(str, range(200)))


async def test_a_fault_in_a_run_is_logged_and_the_queue_goes_on(
    thread: HookThread, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, told, after = Script(), Told("a", "b"), Told("c")
    line = HookLine("q", script.hook)

    def broken(*_arguments: object, **_more: object) -> None:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(script, "run", broken)
        thread.submit(line, told.request.job)
        assert await told.wait() == [None, None]
    thread.submit(line, after.request.job)

    assert await after.wait() == ["c"]
    assert "a script could not be run" in caplog.text


async def test_who_waits_for_a_script_that_was_taken_away_is_let_through(
    thread: HookThread,
) -> None:
    script, first, second = Script(per_run=1), Told("a"), Told("b")
    line = HookLine("q", script.hook)
    script.may_run.clear()
    thread.submit(line, first.request.job)
    await asyncio.sleep(0)
    thread.submit(line, second.request.job)

    line.hook = None
    thread.resume(line)
    script.may_run.set()

    assert await second.wait() == [None]


async def test_what_is_called_comes_after_what_is_being_done(thread: HookThread) -> None:
    done = threading.Event()

    answer = await thread.run(lambda: threading.current_thread().name)
    thread.call(done.set)

    assert answer.startswith("fila-hooks")
    assert await asyncio.to_thread(done.wait, PATIENCE_S)


async def test_a_quick_script_is_asked_on_the_loop_and_a_slow_one_in_the_thread(
    thread: HookThread,
) -> None:
    quick, slow = Script(), Script()
    quick.is_quick = True
    first, second = Told("a"), Told("b")

    thread.submit(HookLine("q", quick.hook), first.request.job)
    thread.submit(HookLine("s", slow.hook), second.request.job)

    assert (await first.wait(), await second.wait()) == (["a"], ["b"])
    assert quick.threads == [threading.main_thread().name]
    assert slow.threads[0].startswith("fila-hooks")


async def test_a_quick_line_does_not_wait_for_a_slow_one(thread: HookThread) -> None:
    quick, slow = Script(), Script()
    quick.is_quick = True
    slow.may_run.clear()
    first, second = Told("a"), Told("b")
    thread.submit(HookLine("s", slow.hook), first.request.job)

    thread.submit(HookLine("q", quick.hook), second.request.job)

    assert await second.wait() == ["b"]
    assert first.request.keys is None
    slow.may_run.set()
    assert await first.wait() == ["a"]


async def test_a_line_whose_question_is_out_is_not_asked_on_the_loop_as_well(
    thread: HookThread,
) -> None:
    script, first, second = Script(), Told("a"), Told("b")
    line = HookLine("q", script.hook)
    script.may_run.clear()
    thread.submit(line, first.request.job)
    await until_asked(script)

    # As after a quick turn in the thread that has been followed by the next one there.
    script.is_quick = True
    thread.submit(line, second.request.job)
    for _ in range(100):
        await asyncio.sleep(0)

    assert len(script.threads) == 1
    script.may_run.set()
    assert (await first.wait(), await second.wait()) == (["a"], ["b"])
    assert script.asked == ["a", "b"]


async def test_what_a_script_says_that_was_taken_away_meanwhile_is_for_those_it_was_asked_about(
    thread: HookThread,
) -> None:
    script, told = Script(), Told(*map(str, range(1000)))
    line = HookLine("q", script.hook)
    script.may_run.clear()
    thread.submit(line, told.request.job)
    await until_asked(script)

    line.hook = None
    thread.resume(line)
    for _ in range(100):
        await asyncio.sleep(0)
    script.may_run.set()

    assert await told.wait() == [*map(str, range(512)), *[None] * 488]
