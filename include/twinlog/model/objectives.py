"""What a flow must achieve in a disaster, and what it was last measured to achieve: recovery point and recovery time.

The recovery point is how many seconds of records would be lost if the source went now: the age of the oldest record
that is not copied yet, and where the source does not answer, the age of the newest heartbeat that came over, which goes
on growing. The recovery time is what the last drill or takeover took, from its trigger until groups could read.

What was never measured is not known, and what is not known is neither met nor missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Objective:
    """One figure: what is wanted, what was measured, each None where there is none."""

    wanted_s: float | None = None
    measured_s: float | None = None
    measured_by: str | None = None
    """What measured it: `lag`, `heartbeat`, or the kind of event."""
    measured_at_ms: int | None = None
    """When, where that is not now."""

    @property
    def met(self) -> bool | None:
        """None where nothing is wanted or nothing was measured."""
        if self.wanted_s is None or self.measured_s is None:
            return None
        return self.measured_s <= self.wanted_s

    def to_json(self) -> dict[str, Any]:
        return {
            "wanted_s": self.wanted_s,
            "measured_s": None if self.measured_s is None else round(self.measured_s, 3),
            "measured_by": self.measured_by,
            "measured_at_ms": self.measured_at_ms,
            "met": self.met,
        }


@dataclass(frozen=True, slots=True)
class Objectives:
    """Both figures of one flow."""

    point: Objective = field(default_factory=Objective)
    time: Objective = field(default_factory=Objective)

    def missed(self, flow: str) -> Iterator[str]:
        """A sentence for each that is missed."""
        for name, objective in (("recovery point", self.point), ("recovery time", self.time)):
            if objective.met is False:
                yield (
                    f"{flow}: the {name} is missed: {objective.measured_s:,.1f} s by the {objective.measured_by}, "
                    f"{objective.wanted_s:,.0f} s wanted"
                )

    def to_json(self) -> dict[str, Any]:
        return {"recovery_point": self.point.to_json(), "recovery_time": self.time.to_json()}


def recovery_point(wanted_s: float | None, lag_s: float | None, heartbeat_age_s: float | None) -> Objective:
    """By the lag where the source could be asked, otherwise by the heartbeats that came over."""
    if lag_s is not None:
        return Objective(wanted_s, lag_s, "lag")
    if heartbeat_age_s is not None:
        return Objective(wanted_s, heartbeat_age_s, "heartbeat")
    return Objective(wanted_s)
