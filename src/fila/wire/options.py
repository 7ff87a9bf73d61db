"""What a producer asked for a message (`MessageOptions`), checked and turned into `Spec`, `Timing`.

Most messages ask for nothing, and most of the others for what others asked before: the same bytes
lead to the same, shared objects.
"""

from typing import TypeAlias

from google.protobuf.timestamp_pb2 import Timestamp

from fila.errors import InvalidArgumentError
from fila.model import (
    COST_MAX,
    DEFAULT_FAIRNESS_KEY,
    DELAY_MAX_MS,
    NS_PER_S,
    PRIORITY_MAX,
    WEIGHT_MAX,
    Limits,
    Spec,
    Timing,
)
from fila.wire._pb import messages_pb2 as pb
from fila.wire.envelope import time_ns
from fila.wire.names import check_key

Wishes: TypeAlias = tuple[Spec, Timing | None]

# Year 2200. Later is a mistake, and nanoseconds must fit in 64 bits.
_DELIVER_AT_MAX_S = 7_258_118_400
# Enough for a hundred thousand tenants; together with the size of an entry it bounds the memory.
_CACHED_MAX = 1 << 17
_CACHED_BYTES_MAX = 128


class OptionReader:
    """Reads options, and remembers what it read."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.plain = Spec()
        self._seen: dict[bytes, Wishes] = {}
        self._specs: dict[Spec, Spec] = {self.plain: self.plain}

    def read(self, options: pb.MessageOptions) -> Wishes:
        """The spec and, for the few that have one, the timing."""
        data = options.SerializeToString()
        known = self._seen.get(data)
        if known is not None:
            return known
        wishes = self._intern(self._spec(options)), self._timing(options)
        # A moment is hardly ever asked for twice.
        if len(data) <= _CACHED_BYTES_MAX and not options.HasField("deliver_at"):
            if len(self._seen) >= _CACHED_MAX:
                self._seen.clear()
            self._seen[data] = wishes
        return wishes

    def _intern(self, spec: Spec) -> Spec:
        if len(self._specs) >= _CACHED_MAX:
            self._specs = {self.plain: self.plain}
        return self._specs.setdefault(spec, spec)

    def _spec(self, options: pb.MessageOptions) -> Spec:
        key = DEFAULT_FAIRNESS_KEY
        if options.HasField("fairness_key"):
            key = options.fairness_key
            check_key("fairness_key", key, self._limits)
        return Spec(
            fairness_key=key,
            weight=_within(options, "weight", 1, WEIGHT_MAX, default=1),
            throttle_keys=self._throttle_keys(options),
            priority=_within(options, "priority", 0, PRIORITY_MAX, default=0),
            cost=_within(options, "cost", 1, COST_MAX, default=1),
        )

    def _throttle_keys(self, options: pb.MessageOptions) -> tuple[str, ...]:
        keys = tuple(dict.fromkeys(options.throttle_keys))
        limit = self._limits.throttle_keys_max
        if len(keys) > limit:
            raise InvalidArgumentError(
                f"{len(keys)} throttle keys; the limit is {limit} (limits.throttle_keys_max)"
            )
        for key in keys:
            check_key("throttle key", key, self._limits)
        return keys

    def _timing(self, options: pb.MessageOptions) -> Timing | None:
        delay_ms = _within(options, "delay_ms", 0, DELAY_MAX_MS, default=0)
        ttl_ms = _within(options, "ttl_ms", 0, DELAY_MAX_MS, default=0)
        deliver_at_ns = None
        if options.HasField("deliver_at"):
            if options.HasField("delay_ms"):
                raise InvalidArgumentError("delay_ms and deliver_at exclude each other; set one")
            deliver_at_ns = moment_ns("deliver_at", options.deliver_at)
        if not delay_ms and not ttl_ms and deliver_at_ns is None:
            return None
        return Timing(delay_ms=delay_ms, deliver_at_ns=deliver_at_ns, ttl_ms=ttl_ms)


def moment_ns(what: str, stamp: Timestamp) -> int:
    """A moment that a request names, in nanoseconds; before 1970 is the past like any other."""
    if not 0 <= stamp.nanos < NS_PER_S or stamp.seconds > _DELIVER_AT_MAX_S:
        raise InvalidArgumentError(f"{what} must be a valid time before the year 2200")
    return max(1, time_ns(stamp))


def _within(options: pb.MessageOptions, name: str, low: int, high: int, *, default: int) -> int:
    if not options.HasField(name):
        return default
    value: int = getattr(options, name)
    if not low <= value <= high:
        raise InvalidArgumentError(f"{name} is {value}; it must be from {low} to {high}")
    return value
