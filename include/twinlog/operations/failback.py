"""Failback: the way back after the source of a flow that had failed over has returned.

    begin      the flow is failing back: no scheduler runs it, its writers are fenced, the failback alone gets its lease
    export     what was stranded on the source is kept as Parquet
    settle     and is left there, sent to a topic of its own, or appended on the target: the positions stand behind it
    delete     (what is rebuilt) the topics on the source are deleted by the ids that were approved, and made anew
    home       what was written on the target goes home, by runs of the way home, while producers still write there
    seam       they have stopped, and the last of it is home
    over       the flow itself passes over what came home, so that nothing of it is mirrored again
    groups     go on, on the source, where they stopped on the target
    prove      both logs are compared
    resume     the flow is active
    hooks      whoever is to be told is told

What always holds:
- nothing that came from the source is sent back to it, and nothing that went home is mirrored again: the journals of
  both directions say which offsets those are. Only of topics that are rebuilt does everything go home;
- a step that is done is recorded in the flow's record on the target, and may be done again: who dies anywhere leaves a
  flow that is failing back, and the next call goes on with the same plan;
- positions move past stranded records in the transaction that journals them as a gap, as copying does it;
- the seam is cut only when the target's log ends have stood still and all of it is home. Producers that went on
  writing on the target would be heard of no more, so the failback waits for them, and ends where they don't stop.

Under prefixed names what was written on lon to `nyc.orders` goes home to `orders`. What was written there to lon's own
`orders` is the business of the topology's own flow lon->nyc, if it has one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twinlog.cluster.copy_order import Executor
from twinlog.cluster.fencing import fence_lanes
from twinlog.cluster.raw import RawClient
from twinlog.errors import FailbackError, FlowStateError
from twinlog.ledger.failbacks import Failbacks
from twinlog.ledger.store import Ledger
from twinlog.model.acls import Acl
from twinlog.model.failback import STEPS, FailbackProgress
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.topology import Flow, Topology
from twinlog.operations.failback_look import FailbackLooking
from twinlog.operations.failback_plan import FailbackPlan, FailbackRequest, FailbackResult
from twinlog.operations.failback_steps import FailbackSteps
from twinlog.operations.flow_gate import record_of
from twinlog.operations.lease import flow_store
from twinlog.operations.progress import Show
from twinlog.operations.run_scope import Ends
from twinlog.operations.write_blocking import allow

QUIET_S = 5.0
"""How long nothing may have been written on the target before the seam is cut."""
SEAM_WITHIN_S = 600.0


@dataclass(frozen=True)
class Failback:
    """A flow and everything that its failback needs."""

    topology: Topology
    flow: Flow
    ends: Ends
    home_ends: Ends
    """The same clusters the other way round, as the way home reaches them."""
    ledger: Ledger
    show: Show | None = None
    say: Callable[[str], None] = field(default=lambda _: None)
    """Told, in a sentence, of every step that begins."""
    quiet_s: float = QUIET_S
    seam_within_s: float = SEAM_WITHIN_S

    @property
    def looking(self) -> FailbackLooking:
        return FailbackLooking(self.topology, self.flow, self.ends, self.ledger)

    def plan(self, request: FailbackRequest) -> FailbackPlan:
        """What a failback would do now, kept beside the ledger; changes nothing else."""
        plan = self.looking.plan(request)
        if not plan.refused and plan.state == State.FAILED_OVER:
            Failbacks(self.ledger).keep(plan.id, plan.to_json())
        return plan

    def kept_plan(self, plan_id: str) -> FailbackPlan:
        """The plan that somebody has approved."""
        said = Failbacks(self.ledger).read(plan_id)
        if said is None:
            raise FailbackError(f"{self.flow.name}: there is no plan {plan_id} beside the ledger; make one first")
        return FailbackPlan.from_json(said)

    def carry_out(self, plan: FailbackPlan, execute: Executor, *, tasks: int) -> FailbackResult:
        """Do what is left of the plan; what stops it is in the result, and the next call goes on there."""
        refused = [*plan.refused, *self._not_ready(plan)]
        if refused:
            return FailbackResult(plan, failure="; ".join(refused))
        started = time.monotonic()
        steps = FailbackSteps(self, plan, execute, tasks)
        self._recall(plan, steps)
        progress = self._begun(plan)
        failure = None
        try:
            for step in progress.left:
                self.say(f"{self.flow.name}: {step}")
                getattr(steps, step.value)()
                progress = self._noted(progress.after(step))
                self._keep(plan, steps, progress, None, started)
        except FailbackError as stopped:
            failure = str(stopped)
        return self._keep(plan, steps, progress, failure, started)

    def _not_ready(self, plan: FailbackPlan) -> list[str]:
        """What has changed since somebody read the plan; nothing of one that is under way."""
        with self.ends.target.raw() as target:
            record = target.run(record_of(self.flow, target))
        if record.failback is not None and record.failback.id == plan.id:
            return []
        return self.looking.not_ready(plan) if record.state is State.FAILED_OVER else []

    def _keep(
        self, plan: FailbackPlan, steps: FailbackSteps, progress: FailbackProgress, failure: str | None, started: float
    ) -> FailbackResult:
        """Beside the ledger with its plan, so that what goes on after this process tells the whole of it."""
        result = FailbackResult(
            plan,
            STEPS[: progress.done],
            failure,
            dict(steps.figures),
            tuple(dict.fromkeys(steps.warnings)),
            time.monotonic() - started,
        )
        Failbacks(self.ledger).keep(plan.id, {**plan.to_json(), "result": result.to_json() | {"plan": plan.id}})
        return result

    def _recall(self, plan: FailbackPlan, steps: FailbackSteps) -> None:
        """What earlier tries have counted and had to say."""
        said: dict[str, Any] = (Failbacks(self.ledger).read(plan.id) or {}).get("result") or {}
        steps.figures.update(said.get("figures", {}))
        steps.warnings += said.get("warnings", [])

    def abandon(self) -> str:
        """End a failback that is under way; the flow is failed over again, and what went home stays there."""
        with self.ends.target.raw() as target:

            def decide(found: FlowRecord) -> FlowRecord:
                if found.state is not State.FAILING_BACK:
                    raise FlowStateError(f"{self.flow.name} is {found.state}: no failback is under way")
                ended = None if found.failback is None else replace(found.failback, ended_at_ms=int(time.time() * 1000))

                return replace(found.moved_to(State.FAILED_OVER, self.flow.name), lease=None, failback=ended)

            target.run(flow_store(self.flow, target).change(decide))
            record = target.run(record_of(self.flow, target))
            target.run(fence_lanes(target, self.flow.name, max(record.lanes, record.retiring_lanes)))
            self.unblock(target)
        return f"{self.flow.name} is failed over again; what went home stays on {self.flow.source}"

    def note_blocked(self, target: RawClient, denials: Sequence[Acl]) -> None:
        """Before they are added, so that they can be taken back without the source."""

        def noted(found: FlowRecord) -> FlowRecord:
            progress = found.failback or FailbackProgress("")
            return replace(found, failback=replace(progress, blocked=tuple(sorted({*progress.blocked, *denials}))))

        target.run(flow_store(self.flow, target).change(noted))

    def unblock(self, target: RawClient) -> None:
        """Let producers on the target write again, if they were kept from it."""
        progress = target.run(record_of(self.flow, target)).failback
        if progress is None or not progress.blocked:
            return
        allow(target, progress.blocked)
        nothing = replace(progress, blocked=())
        target.run(flow_store(self.flow, target).change(lambda found: replace(found, failback=nothing)))

    def _begun(self, plan: FailbackPlan) -> FailbackProgress:
        """The flow's record says who fails back, before anything is done."""

        def decide(found: FlowRecord) -> FlowRecord:
            if found.failback is not None and found.failback.id == plan.id:
                return _going_on(found, self.flow.name)
            if found.state is State.FAILING_BACK and found.failback is not None and found.failback.under_way:
                raise FlowStateError(
                    f"{self.flow.name}: failback {found.failback.id} is under way; carry that one on, or abandon it"
                )
            moved = found.moved_to(State.FAILING_BACK, self.flow.name)
            return replace(moved, failback=FailbackProgress(plan.id), came_home=True)

        with self.ends.target.raw() as target:
            record = target.run(flow_store(self.flow, target).change(decide))
        if record is None or record.failback is None:
            raise FlowStateError(f"{self.flow.name}: the failback could not be noted")
        return record.failback

    def _noted(self, progress: FailbackProgress) -> FailbackProgress:
        def decide(found: FlowRecord) -> FlowRecord:
            if found.failback is None or found.failback.id != progress.id:
                raise FlowStateError(f"{self.flow.name}: another failback has begun; this one ends here")
            ended = int(time.time() * 1000) if not progress.left else 0
            going_on = _going_on(found, self.flow.name)
            return replace(going_on, failback=replace(found.failback, done=progress.done, ended_at_ms=ended))

        with self.ends.target.raw() as target:
            target.run(flow_store(self.flow, target).change(decide))
        return progress


def _going_on(found: FlowRecord, flow: str) -> FlowRecord:
    """The record of a flow whose failback may go on, or has come to its end."""
    if found.state not in (State.FAILING_BACK, State.ACTIVE):
        raise FlowStateError(
            f"{flow} is {found.state}: this failback was abandoned, or the flow has failed over since; make a new plan"
        )
    return found
