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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.fencing import fence
from twinlog.cluster.groups import list_groups
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.errors import FlowStateError, NotAuthorizedError
from twinlog.ledger.store import Ledger
from twinlog.ledger.takeovers import Takeovers
from twinlog.model.checkpoints import checkpoints_transactional_id
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.lanes import state_topic, transactional_id, trim_transactional_id
from twinlog.model.made import made_transactional_id
from twinlog.model.takeover import GroupLeftOut, Kind, Request, TakeoverPlan
from twinlog.model.takeover_progress import Step, Takeover
from twinlog.model.topology import Flow, Topology
from twinlog.operations.flow_gate import record_of
from twinlog.operations.hooks import Event, HookResult, run_hooks
from twinlog.operations.internal_topics import create_small_topic
from twinlog.operations.lease import flow_store
from twinlog.operations.promotion import promote
from twinlog.operations.recording import bring_up_to_date
from twinlog.operations.recovery_series import Recovery, RecoverySeries
from twinlog.operations.source_look import ANSWERS_WITHIN_S
from twinlog.operations.takeover_groups import GroupMoving, GroupsMoved
from twinlog.operations.takeover_plan import TakeoverPlanning

NOT_MOVED = GroupsMoved()

_NOT_KEPT = "the flow's state can't be kept"
_EVENTS = {Kind.FAILOVER: Event.FAILED_OVER, Kind.SWITCHOVER: Event.SWITCHED_OVER}


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

    @property
    def exit_code(self) -> int:
        return 1 if self.failures else 0

    @property
    def left_out(self) -> tuple[GroupLeftOut, ...]:
        return (*self.plan.left_out, *self.moved.left_out)

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
        }


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
        return self._planning.renewed(plan)

    def active_on_source(self, groups: Sequence[str]) -> list[str]:
        """Those of the groups that have members on the source now."""
        with self._source.raw() as source:
            known = source.run(list_groups(source))
        return [name for name in groups if name in known and known[name].active]

    def kept(self, plan_id: str) -> TakeoverPlan:
        """The plan of that id."""
        plan = self._takeovers.read(plan_id)
        if plan is None:
            raise FlowStateError(f"{self._flow.name} has no plan {plan_id} beside its ledger; make one anew")
        return plan

    def plan_path(self, plan: TakeoverPlan) -> str:
        """Where the plan is kept."""
        return self._takeovers.plan_path(plan)

    def apply(self, plan: TakeoverPlan) -> TakeoverResult:
        """Carry it out, or go on where it was cut short."""
        with self._target.raw() as target:
            carrying = _CarryingOut(self, target, plan)
            result = carrying.run()
        if len(result.steps) == len(Step):
            # One that was cut short and gone on with took as long as people took to notice.
            RecoverySeries(self._ledger).add(_measured(result))
        self._takeovers.write_result(plan.id, _kept_result(result))
        return result


def _measured(result: TakeoverResult) -> Recovery:
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
    return {name: said[name] for name in said if name not in ("plan", "topics", "settings", "acls", "promoted")}


class _CarryingOut:
    """One plan on its way."""

    def __init__(self, failover: Failover, target: RawClient, plan: TakeoverPlan) -> None:
        self._flow = failover._flow
        self._access = failover._target
        self._ledger = failover._ledger
        self._planning = failover._planning
        self._takeovers = failover._takeovers
        self._target = target
        self._plan = plan
        self._steps: list[StepDone] = []
        self._failures: list[str] = []
        self._moved = NOT_MOVED
        self._hooks: tuple[HookResult, ...] = ()

    def run(self) -> TakeoverResult:
        started = time.monotonic()
        record = self._begin()
        done = record.takeover.done if record.takeover is not None else 0
        # The first two are taken again by whoever goes on: in between, a writer may have come that read an old state.
        self._take(Step.STOP, lambda: self._fence(record))
        self._take(Step.RECORD, lambda: self._record(groups_done=done >= Step.GROUPS))
        for step, work in ((Step.GROUPS, self._groups), (Step.PROMOTE, self._promote), (Step.ANNOUNCE, self._announce)):
            if done < step:
                self._take(step, work)
        return TakeoverResult(
            self._plan,
            tuple(self._steps),
            self._moved,
            tuple(self._failures),
            self._hooks,
            time.monotonic() - started,
        )

    def _begin(self) -> FlowRecord:
        """The flow is failed over from here on, and this plan is the one that is carried out."""
        flow, plan = self._flow, self._plan
        topic = state_topic(flow.source, flow.target)
        principal = principal_of(self._access.settings)
        self._target.run(
            create_small_topic(self._target, principal, topic, flow.journal_topic_replication_factor, _NOT_KEPT)
        )

        def decide(found: FlowRecord) -> FlowRecord:
            known = found.takeover
            goes_on = known is not None and known.plan == plan.id
            takeover = known if goes_on else Takeover(plan.id, plan.kind, int(time.time() * 1000))
            # Without its lease, a run that is still there renews nothing, and nobody waits for it.
            return replace(found.moved_to(State.FAILED_OVER, flow.name), lease=None, takeover=takeover)

        return self._target.run(flow_store(flow, self._target).change(decide)) or FlowRecord()

    def _take(self, step: Step, work: Callable[[], str]) -> None:
        began = time.monotonic()
        failed = len(self._failures)
        said = work()
        self._steps.append(StepDone(step, time.monotonic() - began, said))
        if len(self._failures) == failed:
            self._remember(step)

    def _remember(self, step: Step) -> None:
        def decide(found: FlowRecord) -> FlowRecord | None:
            known = found.takeover
            if known is None or known.plan != self._plan.id:
                other = "nobody" if known is None else known.plan
                raise FlowStateError(
                    f"{self._flow.name}: while the plan {self._plan.id} was being carried out, another takeover has "
                    f"begun, by the plan {other}; this one stops here"
                )
            return replace(found, takeover=known.after(step, int(time.time() * 1000)))

        self._target.run(flow_store(self._flow, self._target).change(decide))

    def _fence(self, record: FlowRecord) -> str:
        flow = self._flow
        lanes = max(record.lanes, record.retiring_lanes)
        names = [
            *(transactional_id(flow.name, lane) for lane in range(lanes)),
            checkpoints_transactional_id(flow.name),
            trim_transactional_id(flow.name),
            made_transactional_id(flow.source, flow.target),
        ]
        try:
            self._target.run(fence(self._target, names))
        except NotAuthorizedError as refused:
            self._failures.append(f"{refused}; so a writer that is under way there is not fenced")
        return f"{flow.name} is failed over on {flow.target}, and {len(names)} writers of it are fenced"

    def _record(self, *, groups_done: bool) -> str:
        recorded = bring_up_to_date(self._ledger, self._flow, self._access, self._target, set()).read
        total = self._ledger.mark().node.total
        if groups_done or (self._plan.provisional is None and total == self._plan.ledger_rows):
            return f"the ledger holds everything: {total:,} rows"
        self._plan = self._planning.renewed(self._plan)
        return f"the ledger gained {recorded.rows:,} rows, and the groups' offsets were looked up again"

    def _groups(self) -> str:
        self._moved = GroupMoving(self._plan, self._access).move(self._target)
        moved = self._moved
        return f"{moved.groups:,} groups are ready, {moved.committed:,} offsets were committed and read back"

    def _promote(self) -> str:
        refused = self._target.run(promote(self._target, self._flow, self._plan))
        self._failures += refused
        return (
            f"{len(self._plan.promoted):,} topics are promoted: {len(self._plan.settings):,} settings put back, "
            f"{len(self._plan.acls):,} permissions granted"
        )

    def _announce(self) -> str:
        plan = self._plan
        told = {
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
        self._hooks = run_hooks(self._flow, _EVENTS[plan.kind], told)
        self._failures += _failed(self._hooks)
        return f"{len(self._hooks)} hooks were called" if self._hooks else "there is no hook to call"


def _failed(hooks: Sequence[HookResult]) -> list[str]:
    return [hook.failure for hook in hooks if hook.failure is not None]
