"""Whose limits a script runs within, and what becomes of one that can't be used any more."""

from collections.abc import AsyncIterator, Callable

import pytest

from fila.hooks.calls import HookKind
from fila.hooks.stats import HookStats
from fila.model import Limits, QueueSettings
from fila.server.config import LuaSection
from fila.server.hook_line import Decision
from fila.server.hook_thread import HookThread
from fila.server.policy import Policy
from fila.testing.clock import ManualClock
from fila.wire.outline import outline_of

LONG = "function on_enqueue() for i = 1, 2000000 do end return { fairness_key = 'k' } end"
LARGE = "function on_enqueue() return { weight = #('x'):rep(200000) } end"
BROKEN = "function on_enqueue() error('no') end"
FINE = "function on_enqueue() return { fairness_key = 'k' } end"


class Asked:
    """Policies that differ in the server's settings."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._made: list[Policy] = []

    def policy(self, lua: LuaSection | None = None) -> Policy:
        made = Policy(
            thread=HookThread(self.clock),
            lua=lua or LuaSection(),
            limits=Limits(),
            config=lambda _key: None,
        )
        self._made.append(made)
        return made

    async def ask(self, policy: Policy, queue: str, count: int = 1) -> list[Decision | None]:
        line = policy.line(queue, HookKind.ON_ENQUEUE)
        assert line is not None
        return await policy.ask(line, [outline_of({}, 0)] * count)

    def stats(self, policy: Policy, queue: str) -> HookStats:
        found = policy.stats(queue, HookKind.ON_ENQUEUE, now_ns=self.clock.now_ns())
        assert found is not None
        return found

    def close(self) -> None:
        for policy in self._made:
            policy.close()


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    made = Asked()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("script", "lua", "own", "failed"),
    [
        (
            LONG,
            LuaSection(default_timeout_ms=1),
            QueueSettings(on_enqueue_script=LONG, hook_timeout_ms=1000),
            lambda stats: stats.timeouts,
        ),
        (
            LARGE,
            LuaSection(default_memory_limit_bytes=65536),
            QueueSettings(on_enqueue_script=LARGE, hook_memory_bytes=1 << 20),
            lambda stats: stats.out_of_memory,
        ),
    ],
    ids=["time", "memory"],
)
async def test_a_queues_own_limits_go_before_the_servers(
    asked: Asked,
    script: str,
    lua: LuaSection,
    own: QueueSettings,
    failed: Callable[[HookStats], int],
) -> None:
    policy = asked.policy(lua)
    policy.restore([("plain", QueueSettings(on_enqueue_script=script)), ("own", own)])

    answers = [(await asked.ask(policy, queue))[0] for queue in ("plain", "own")]

    assert answers[0] is None
    assert answers[1] is not None
    assert [failed(asked.stats(policy, queue)) for queue in ("plain", "own")] == [1, 0]


async def test_the_breaker_is_as_the_server_is_set(asked: Asked) -> None:
    policy = asked.policy(LuaSection(circuit_breaker_threshold=2, circuit_breaker_cooldown_ms=5000))
    policy.restore([("q", QueueSettings(on_enqueue_script=BROKEN))])

    await asked.ask(policy, "q", count=5)
    asked.clock.advance(4.999)
    await asked.ask(policy, "q")
    before = asked.stats(policy, "q")
    asked.clock.advance(0.001)
    await asked.ask(policy, "q")
    after = asked.stats(policy, "q")

    assert (before.errors, before.bypassed) == (2, 4)
    assert (after.errors, after.bypassed) == (3, 4)


async def test_a_stored_script_that_does_not_compile_keeps_nothing_else_from_starting(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    policy = asked.policy()

    policy.restore(
        [
            ("bad", QueueSettings(on_enqueue_script="function")),
            ("good", QueueSettings(on_enqueue_script=FINE)),
        ]
    )

    assert policy.line("bad", HookKind.ON_ENQUEUE) is None
    assert (await asked.ask(policy, "good"))[0] is not None
    assert [record.message for record in caplog.records] == ["a stored script was left out"]


async def test_scripts_that_stay_the_same_are_not_made_anew(asked: Asked) -> None:
    policy = asked.policy()
    settings = QueueSettings(on_enqueue_script=FINE)
    policy.install(await policy.compile("q", settings))

    again = await policy.compile("q", QueueSettings(on_enqueue_script=FINE, max_attempts=3))
    others = await policy.compile("q", QueueSettings(on_enqueue_script=FINE, hook_timeout_ms=5))
    policy.discard(others)

    assert not again.hooks
    assert list(others.hooks) == [HookKind.ON_ENQUEUE]
