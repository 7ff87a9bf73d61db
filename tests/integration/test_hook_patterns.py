"""Our find, match, gmatch and gsub say what Lua's own say, errors included."""

from itertools import islice

import pytest

from tests import proof
from tests.integration.pattern_duel import Duel, calls

_CALLS = proof.length(reduced=40_000, full=3_000_000)
_SEED = 20_261_119
_MISTAKES = (
    "while count >= 0 do => while count > 0 do",
    "if length == POSITION then return from end => if length == POSITION then return from + 1 end",
    "if not stop then state.length[level] = UNFINISHED end => ",
    "if not stop then state.level = state.level - 1 end => if not stop then state.level = 0 end",
    "if stop and stop ~= last then => if stop and stop ~= from then",
    "position > 1 and byte(state.subject, position - 1) or 0 => byte(state.subject, position)",
    "until byte(pattern, at) == 93 -- ] => until byte(pattern, at) == 93 or at > stop",
    "at + 2 < last then -- - => at + 2 <= last then -- -",
    'error("invalid pattern capture", 0) => error("invalid capture", 0)',
    "if open == 0 then return index + 1 end => if open == 0 then return index end",
    "if init == 0 or init < -size then return 1 end => if init == 0 then return 1 end",
    "local CAPTURES_MAX = 32 => local CAPTURES_MAX = 31",
    "local DEPTH_MAX = 200 => local DEPTH_MAX = 199",
)
# Where only a long pattern shows the difference.
_LONG = (
    f"return match('{'a' * 40}', '{'(a)' * 32}')",
    f"return match('{'a' * 40}', '{'(a)' * 33}')",
    f"return match('{'a' * 300}', '{'a?' * 199}')",
    f"return match('{'a' * 300}', '{'a?' * 200}')",
    f"return match('{'a' * 300}', '{'()' * 33}')",
)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_our_patterns_agree_with_those_of_lua() -> None:
    duel = Duel()

    for call in (*_LONG, *islice(calls(_SEED), _CALLS)):
        difference = duel.differs(call)
        assert difference is None, f"{call}\n{difference}"
    proof.record("hook_patterns", seed=_SEED, calls=_CALLS, differences=0)


@pytest.mark.parametrize("mistake", _MISTAKES)
def test_the_duel_notices_a_mistake(mistake: str) -> None:
    duel = Duel(break_ours=mistake)

    assert any(duel.differs(call) for call in (*_LONG, *islice(calls(_SEED), 40_000)))
