"""What a measurement says: a value with its spread, and what was demanded of it."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Unit(Enum):
    """How a value reads."""

    RATE = "/s"
    MS = "ms"
    US = "µs"
    SECONDS = "s"
    PERCENT = "%"
    BYTES = "B"
    MEGABYTES = "MB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. Without `must` it is shown for what it says beside the others."""

    workload: str
    what: str
    value: float
    unit: Unit
    # Half the distance between the smallest and the largest reading.
    spread: float | None = None
    readings: int = 1
    must: float | None = None
    aim: float | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the demand is met; None when there is none."""
        if self.must is None:
            return None
        if self.unit is Unit.RATE:
            return self.value >= self.must
        return self.value <= self.must

    @property
    def verdict(self) -> str:
        """The last column."""
        met = self.is_met
        if met is None or self.must is None:
            return ""
        if not met:
            return f"no, {self.value / self.must:.2f} x"
        if self.aim is None:
            return "yes"
        beyond = self.value >= self.aim if self.unit is Unit.RATE else self.value <= self.aim
        return "yes, aim too" if beyond else "yes"


def of_readings(
    workload: str,
    what: str,
    readings: Sequence[float],
    unit: Unit,
    *,
    must: float | None = None,
    aim: float | None = None,
) -> Figure:
    """The median of repeated readings, with their spread."""
    return Figure(
        workload=workload,
        what=what,
        value=statistics.median(readings),
        unit=unit,
        spread=(max(readings) - min(readings)) / 2 if len(readings) > 1 else None,
        readings=len(readings),
        must=must,
        aim=aim,
    )


def percentile(readings: Sequence[float], share: float) -> float:
    """The smallest reading that at least this share of all does not exceed."""
    ordered = sorted(readings)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
