"""What a message asks for and what a script decides for it, made one: the script comes first."""

from collections.abc import Sequence

from fila.model import EnqueueDecision, Spec, Timing
from fila.wire.intake import Columns

# Scripts decide few different things; each pair is made one only once.
_KNOWN_MAX = 1 << 16


class Rulings:
    """Makes specs of own options and decisions; equal ones are one object, as the core wants."""

    def __init__(self) -> None:
        # By the identity of both, which are kept along so that it stays theirs.
        self._known: dict[tuple[int, int], tuple[Spec, EnqueueDecision, Spec]] = {}
        self._specs: dict[Spec, Spec] = {}

    def apply(self, columns: Columns, decisions: Sequence[EnqueueDecision | None]) -> None:
        """Change what the columns ask for as the decisions say; None leaves a message as it is."""
        specs, timings, known = columns.specs, columns.timings, self._known
        for index, decision in enumerate(decisions):
            if decision is None:
                continue
            own = specs[index]
            found = known.get((id(own), id(decision)))
            specs[index] = found[2] if found is not None else self._merge(own, decision)
            if decision.delay_ms is not None:
                timing = _delayed(timings.pop(index, None), decision.delay_ms)
                if timing is not None:
                    timings[index] = timing

    def rule(
        self, spec: Spec, timing: Timing | None, decision: EnqueueDecision | None
    ) -> tuple[Spec, Timing | None]:
        """The same for one message."""
        if decision is None:
            return spec, timing
        delay_ms = decision.delay_ms
        return (
            self._merge(spec, decision),
            timing if delay_ms is None else _delayed(timing, delay_ms),
        )

    def _merge(self, own: Spec, decision: EnqueueDecision) -> Spec:
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
            self._specs.clear()
        spec = _merged(own, decision)
        spec = self._specs.setdefault(spec, spec)
        self._known[id(own), id(decision)] = own, decision, spec
        return spec


def _merged(own: Spec, decision: EnqueueDecision) -> Spec:
    throttle_keys = decision.throttle_keys
    return Spec(
        fairness_key=decision.fairness_key or own.fairness_key,
        weight=decision.weight or own.weight,
        throttle_keys=own.throttle_keys if throttle_keys is None else throttle_keys,
        priority=own.priority if decision.priority is None else decision.priority,
        cost=decision.cost or own.cost,
    )


def _delayed(own: Timing | None, delay_ms: int) -> Timing | None:
    """So long, whatever the message asked for itself; its time to live stays."""
    ttl_ms = own.ttl_ms if own is not None else 0
    return Timing(delay_ms=delay_ms, ttl_ms=ttl_ms) if delay_ms or ttl_ms else None
