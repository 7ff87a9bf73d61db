"""Waiting for what happens in another process, where no event can reach."""

import asyncio
from collections.abc import Awaitable, Callable

_LOOK_SECONDS = 0.01


async def until(condition: Callable[[], Awaitable[bool]], *, seconds_max: float = 10.0) -> None:
    """Return when the condition holds."""
    async with asyncio.timeout(seconds_max):
        while not await condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(_LOOK_SECONDS)
