"""What is left of a script that was refused."""

import gc
from collections.abc import AsyncIterator

import lupa.lua54
import pytest

from fila.errors import ScriptError
from fila.model import Limits, QueueSettings
from fila.server.config import LuaSection
from fila.server.hook_thread import HookThread
from fila.server.policy import Policy
from fila.testing.clock import ManualClock


@pytest.fixture
async def policy() -> AsyncIterator[Policy]:
    thread = HookThread(ManualClock())
    made = Policy(thread=thread, lua=LuaSection(), limits=Limits(), config=lambda _key: None)
    yield made
    made.close()


def runtimes() -> int:
    return sum(type(each) is lupa.lua54.LuaRuntime for each in gc.get_objects())


async def test_the_error_of_a_refused_script_does_not_hold_its_runtime(policy: Policy) -> None:
    gc.collect()
    before = runtimes()

    with pytest.raises(ScriptError, match="no such tenant") as refused:
        await policy.compile("orders", QueueSettings(on_enqueue_script="error('no such tenant')"))

    assert refused.tb is not None
    assert runtimes() == before
