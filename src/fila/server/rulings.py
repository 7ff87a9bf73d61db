"""What a message asks for and what a script decides for it, made one: the script comes first."""

from collections.abc import Sequence
from typing import cast

from fila.model import EnqueueDecision, Spec, Timing
from fila.wire.intake import Columns

# Scripts decide few different things; each pair is made one only once.
_KNOWN_MAX = 1 << 16


class Rulings:
    """Makes specs of own options and decisions; equal ones are one object, as the core wants."""

    def __init__(self) -> None:
        # By own spec, then by the identity of the decision, which is kept along so that it stays
        # its own. Decisions that delay are not among them: they change more than the spec.
        self._known: dict[Spec, dict[int, Spec]] = {}
        self._kept: list[EnqueueDecision] = []
        self._specs: dict[Spec, Spec] = {}

    def apply(self, columns: Columns, decisions: Sequence[EnqueueDecision | None]) -> None:
        """Change what the columns ask for as the decisions say; None leaves a message as it is."""
        specs = columns.specs
        if specs and specs.count(specs[0]) == len(specs):
            # Nearly always they ask for nothing, and what is decided was decided before.
            known = self._known.get(specs[0], {})
            ruled = list(map(known.get, map(id, decisions)))
            if all(ruled):
                specs[:] = cast("list[Spec]", ruled)
                return
        for index, decision in enumerate(decisions):
            if decision is not None:
                self._apply_one(columns, index, decision)

    def _apply_one(self, columns: Columns, index: int, decision: EnqueueDecision) -> None:
        own, timing = columns.specs[index], columns.timings.pop(index, None)
        columns.specs[index], timing = self.rule(own, timing, decision)
        if timing is not None:
            columns.timings[index] = timing

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
        known = self._known.get(own)
        spec = known.get(id(decision)) if known is not None else None
        if spec is not None:
            return spec
        if len(self._specs) >= _KNOWN_MAX or len(self._kept) >= _KNOWN_MAX:
            self._known.clear()
            self._kept.clear()
            self._specs.clear()
        spec = own.ruled(
            fairness_key=decision.fairness_key,
            weight=decision.weight,
            throttle_keys=decision.throttle_keys,
            priority=decision.priority,
            cost=decision.cost,
        )
        spec = self._specs.setdefault(spec, spec)
        if decision.delay_ms is None:
            self._known.setdefault(own, {})[id(decision)] = spec
            self._kept.append(decision)
        return spec


def _delayed(own: Timing | None, delay_ms: int) -> Timing | None:
    """So long, whatever the message asked for itself; its time to live stays."""
    ttl_ms = own.ttl_ms if own is not None else 0
    return Timing(delay_ms=delay_ms, ttl_ms=ttl_ms) if delay_ms or ttl_ms else None
