"""Failover: the target takes the source's place. Everything comes from the target and the ledger alone.

    plan    see `takeover_plan`; nothing is changed
    apply   1 stop      the flow is failed over on the target; then every transactional id of it is fenced
            2 record    the ledger up to everything that was copied; where that was more than the plan knew, the plan's
                        offsets are looked up again
            3 groups    committed, read back, compared
            4 promote   settings and permissions of topics that producers write to from now on
            5 announce  hooks

The target remembers which plan is being carried out and which steps are whole, so whoever comes after a takeover that
was cut short goes on where it stopped, and one that is carried out twice changes nothing the second time. The state
comes first: a writer reads it after its own fencing, so one that comes later stops by itself, and one that came before
is fenced. Nobody waits for the source.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.groups import list_groups
from twinlog.errors import FlowStateError
from twinlog.ledger.store import Ledger
from twinlog.ledger.takeovers import Takeovers
from twinlog.model.flow_state import State
from twinlog.model.objectives import Objective, Objectives
from twinlog.model.takeover import Kind, Request, TakeoverPlan
from twinlog.model.takeover_progress import Step
from twinlog.model.topology import Flow, Topology
from twinlog.operations.collecting import collector_held_back
from twinlog.operations.flow_gate import record_of
from twinlog.operations.recovery_series import Recovery, RecoverySeries
from twinlog.operations.source_look import ANSWERS_WITHIN_S
from twinlog.operations.takeover_plan import TakeoverPlanning
from twinlog.operations.takeover_result import TakeoverResult
from twinlog.operations.takeover_steps import CarryingOut


class Failover:
    """A flow, and how to reach its clusters and its ledger; the source is asked only while a plan is made."""

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        source: ClusterAccess,
        target: ClusterAccess,
        ledger: Ledger,
        *,
        source_within_s: float = ANSWERS_WITHIN_S,
    ) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger
        self._takeovers = Takeovers(ledger)
        self._planning = TakeoverPlanning(topology, flow, source, target, ledger, source_within_s=source_within_s)

    def plan(self, request: Request, kind: Kind = Kind.FAILOVER) -> TakeoverPlan:
        """What would be done, kept beside the ledger; nothing is changed."""
        with collector_held_back():
            return self._planning.plan(request, kind)

    def unfinished(self) -> TakeoverPlan | None:
        """The plan of a takeover that was begun and not ended, where it is still there."""
        with self._target.raw() as target:
            record = target.run(record_of(self._flow, target))
        takeover = record.takeover
        if record.state is not State.FAILED_OVER or takeover is None or takeover.ended:
            return None
        return self._takeovers.read(takeover.plan)

    def renewed(self, plan: TakeoverPlan) -> TakeoverPlan:
        """The same plan by what is known now."""
        with collector_held_back():
            return self._planning.renewed(plan)

    def active_on_source(self, groups: Sequence[str]) -> list[str]:
        """Those of the groups that have members on the source now."""
        with self._source.raw() as source:
            known = source.run(list_groups(source))
        return [name for name in groups if name in known and known[name].active]

    def kept(self, plan_id: str) -> TakeoverPlan:
        """The plan of that id."""
        with collector_held_back():
            plan = self._takeovers.read(plan_id)
        if plan is None:
            raise FlowStateError(f"{self._flow.name} has no plan {plan_id} beside its ledger; make one anew")
        return plan

    def plan_path(self, plan: TakeoverPlan) -> str:
        """Where the plan is kept."""
        return self._takeovers.plan_path(plan)

    def csv_path(self, plan: TakeoverPlan) -> str:
        """Where the plan is kept for Kafka's own tool."""
        return self._takeovers.csv_path(plan)

    def apply(self, plan: TakeoverPlan) -> TakeoverResult:
        """Carry it out, or go on where it was cut short."""
        with self._target.raw() as target, collector_held_back():
            carrying = CarryingOut(self._flow, self._target, self._ledger, self._planning, target=target, plan=plan)
            result = self._measured(carrying.run())
        if len(result.steps) == len(Step):
            # One that was cut short and gone on with took as long as people took to notice.
            RecoverySeries(self._ledger).add(_recovery(result))
        self._takeovers.write_result(plan.id, _kept_result(result))
        return result

    def _measured(self, result: TakeoverResult) -> TakeoverResult:
        plan, flow = result.plan, self._flow
        at_ms = int(time.time() * 1000)
        return replace(
            result,
            objectives=Objectives(
                Objective(flow.recovery_point_seconds, plan.lost_seconds, str(plan.kind), plan.made_at_ms),
                Objective(flow.recovery_time_seconds, result.seconds, str(plan.kind), at_ms),
            ),
        )


def _recovery(result: TakeoverResult) -> Recovery:
    plan = result.plan
    return Recovery(
        plan.flow,
        plan.made_at_ms,
        str(plan.kind),
        result.seconds,
        plan.lost_seconds,
        plan.lost_records,
        plan.groups,
        result.moved.groups,
        records_checked=0,
        faults=0,
    )


def _kept_result(result: TakeoverResult) -> dict[str, Any]:
    """What is kept beside the plan, which has the rows."""
    said = result.to_json()
    return {
        name: said[name]
        for name in said
        if name not in ("plan", "topics", "settings", "acls", "differences", "promoted")
    }
