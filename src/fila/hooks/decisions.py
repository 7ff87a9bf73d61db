"""What a hook returned: read from its line, brought into range, counted where that was needed."""

from fila.hooks.calls import HookKind
from fila.model import (
    COST_MAX,
    DELAY_MAX_MS,
    PRIORITY_MAX,
    WEIGHT_MAX,
    EnqueueDecision,
    FailureAction,
    FailureDecision,
    Limits,
)
from fila.wire.names import has_control

Decision = EnqueueDecision | FailureDecision

# As results.lua writes them.
_SEPARATOR = b"\x01"
_UNUSABLE = b"\x02"
_SURPLUS = b"\x03"
_ACTIONS = {action.value.encode(): action for action in FailureAction}


class Reader:
    """Reads one line; counts what it could not take as it was."""

    def __init__(self, kind: HookKind, limits: Limits) -> None:
        self._kind = kind
        self._limits = limits
        self.clamped = 0

    def read(self, line: bytes) -> Decision:
        """The decision."""
        self.clamped = 0
        key, weight, third, priority, delay_ms, *throttle_keys = line.split(_SEPARATOR)
        fairness_key = self._key(key)
        checked_weight = self._number(weight, 1, WEIGHT_MAX)
        checked_priority = self._number(priority, 0, PRIORITY_MAX)
        checked_delay_ms = self._number(delay_ms, 0, DELAY_MAX_MS)
        keys = self._throttle_keys(throttle_keys)
        if self._kind is HookKind.ON_ENQUEUE:
            return EnqueueDecision(
                fairness_key=fairness_key,
                weight=checked_weight,
                throttle_keys=keys,
                cost=self._number(third, 1, COST_MAX),
                priority=checked_priority,
                delay_ms=checked_delay_ms,
            )
        return FailureDecision(
            action=_ACTIONS.get(third),
            delay_ms=checked_delay_ms,
            fairness_key=fairness_key,
            weight=checked_weight,
            throttle_keys=keys,
            priority=checked_priority,
        )

    def _key(self, field: bytes) -> str | None:
        if not field:
            return None
        try:
            key = field.decode()
        except UnicodeDecodeError:
            self.clamped += 1
            return None
        if len(field) > self._limits.key_bytes_max or has_control(key):
            self.clamped += 1
            return None
        return key

    def _number(self, field: bytes, lowest: int, highest: int) -> int | None:
        if not field:
            return None
        if field == _UNUSABLE:
            self.clamped += 1
            return None
        value = int(field)
        within = min(max(value, lowest), highest)
        self.clamped += within != value
        return within

    def _throttle_keys(self, fields: list[bytes]) -> tuple[str, ...] | None:
        # The first says that there is a list, be it empty.
        if not fields[0]:
            return None
        listed = fields[1:]
        if listed and listed[-1] == _SURPLUS:
            listed.pop()
            self.clamped += 1
        keys = [key for field in listed if (key := self._key(field)) is not None]
        most = self._limits.throttle_keys_max
        self.clamped += len(keys) > most
        return tuple(keys[:most])
