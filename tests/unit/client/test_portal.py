"""The way from threads to the background loop."""

import asyncio

import pytest

from fila.client.portal import portal


async def answer() -> int:
    return 42


def fail() -> None:
    raise RuntimeError("this one only")


def test_a_job_that_fails_takes_nobody_along() -> None:
    way = portal()

    async def post_both_at_once() -> None:
        done = asyncio.Event()
        way.post(fail)
        way.post(done.set)
        await asyncio.wait_for(done.wait(), 5)

    way.call(post_both_at_once)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_would_end_a_program_does_not_end_the_loop(kind: type[BaseException]) -> None:
    way = portal()

    async def leave() -> None:
        raise kind

    with pytest.raises(kind):
        way.call(leave)

    assert way.call(answer) == 42
