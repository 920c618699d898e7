"""What came of a takeover: the plan that was carried out, its steps, what was refused, and what hooks are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from twinlog.model.objectives import Objectives
from twinlog.model.takeover import GroupLeftOut, Kind, TakeoverPlan
from twinlog.model.takeover_progress import Step
from twinlog.operations.hooks import Event, HookResult, content
from twinlog.operations.takeover_groups import GroupsMoved

NOT_MOVED = GroupsMoved()
EVENTS = {Kind.FAILOVER: Event.FAILED_OVER, Kind.SWITCHOVER: Event.SWITCHED_OVER}


@dataclass(frozen=True, slots=True)
class StepDone:
    """One step of a takeover."""

    step: Step
    seconds: float
    said: str


@dataclass(frozen=True)
class TakeoverResult:
    """What was planned, and what came of it."""

    plan: TakeoverPlan
    steps: tuple[StepDone, ...] = ()
    """Those that were taken now."""
    moved: GroupsMoved = NOT_MOVED
    failures: tuple[str, ...] = ()
    """What was refused, each a sentence; everything else was done."""
    hooks: tuple[HookResult, ...] = ()
    seconds: float = 0.0
    dry_run: bool = False
    objectives: Objectives = field(default_factory=Objectives)
    """What it took and what it lost, against what the flow asks for."""

    @property
    def exit_code(self) -> int:
        return 1 if self.failures else 0

    @property
    def left_out(self) -> tuple[GroupLeftOut, ...]:
        return (*self.plan.left_out, *self.moved.left_out)

    @property
    def missed(self) -> list[str]:
        """A sentence for each objective that is missed."""
        return list(self.objectives.missed(self.plan.flow))

    @property
    def event(self) -> dict[str, Any]:
        """What hooks of every kind are told."""
        return content(self.plan.flow, EVENTS[self.plan.kind], told(self.plan))

    def to_json(self) -> dict[str, Any]:
        return {
            **self.plan.to_json(),
            "left_out": [row._asdict() for row in self.left_out],
            "dry_run": self.dry_run,
            "done": [
                {"step": step.step.name.lower(), "seconds": round(step.seconds, 3), "said": step.said}
                for step in self.steps
            ],
            "groups_moved": self.moved.groups,
            "offsets_committed": self.moved.committed,
            "failures": list(self.failures),
            "hooks": [hook.to_json() for hook in self.hooks],
            "seconds": round(self.seconds, 3),
            "objectives": self.objectives.to_json(),
        }


def told(plan: TakeoverPlan) -> dict[str, Any]:
    """Of a takeover by this plan, beside the event and the flow."""
    return {
        "active": plan.target,
        "bootstrap_servers": plan.bootstrap_servers,
        "source": plan.source,
        "target": plan.target,
        "plan": plan.id,
        "topics": dict(plan.topics),
        "promoted": list(plan.promoted),
        "groups": sorted({row.group for row in plan.rows}),
        "lost_records": plan.lost_records,
        "lost_seconds": plan.lost_seconds,
    }
