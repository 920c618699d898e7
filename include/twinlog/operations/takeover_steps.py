"""The steps of a takeover on the target, each noted once it is whole (see `failover`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.fencing import fence
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.errors import FlowStateError, NotAuthorizedError
from twinlog.ledger.store import Ledger
from twinlog.model.checkpoints import checkpoints_transactional_id
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.lanes import state_topic, transactional_id, trim_transactional_id
from twinlog.model.made import made_transactional_id
from twinlog.model.takeover import TakeoverPlan
from twinlog.model.takeover_progress import Step, Takeover
from twinlog.model.topology import Flow
from twinlog.operations.hooks import HookResult, run_hooks
from twinlog.operations.internal_topics import create_small_topic
from twinlog.operations.lease import flow_store
from twinlog.operations.promotion import promote
from twinlog.operations.recording import bring_up_to_date
from twinlog.operations.takeover_groups import GroupMoving
from twinlog.operations.takeover_plan import TakeoverPlanning
from twinlog.operations.takeover_result import EVENTS, NOT_MOVED, StepDone, TakeoverResult, told

OLD_AFTER_S = 60.0
"""Groups go on reading while people look at a plan."""

_NOT_KEPT = "the flow's state can't be kept"


class CarryingOut:
    """One plan on its way."""

    def __init__(
        self,
        flow: Flow,
        access: ClusterAccess,
        ledger: Ledger,
        planning: TakeoverPlanning,
        *,
        target: RawClient,
        plan: TakeoverPlan,
    ) -> None:
        """`access` leads to the target, to which `target` is a connection."""
        self._flow = flow
        self._access = access
        self._ledger = ledger
        self._planning = planning
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
            takeover = known if known is not None and known.plan == plan.id else None
            if found.state is not State.FAILED_OVER and takeover is not None:
                # The flow has come home since: what the plan says of groups was true of another time.
                raise FlowStateError(
                    f"the plan {plan.id} of {flow.name} was carried out before, and the flow is {found.state} again; "
                    "make one anew"
                )
            takeover = takeover or Takeover(plan.id, plan.kind, int(time.time() * 1000))
            # Without its lease, a run that is still there renews nothing, and nobody waits for it.
            return replace(found.moved_to(State.FAILED_OVER, flow.name), lease=None, takeover=takeover)

        return self._target.run(flow_store(flow, self._target).change(decide)) or FlowRecord()

    def _take(self, step: Step, work: Callable[[], str]) -> None:
        began = time.monotonic()
        said = work()
        self._steps.append(StepDone(step, time.monotonic() - began, said))
        # A step is whole with all before it: where something was refused, whoever goes on begins there.
        if not self._failures:
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
        if groups_done or not self._is_old(total):
            return f"the ledger holds everything: {total:,} rows"
        self._plan = self._planning.renewed(self._plan)
        return f"the ledger gained {recorded.rows:,} rows, and the groups' offsets were looked up again"

    def _is_old(self, ledger_rows: int) -> bool:
        """Whether groups may be elsewhere than the plan says: it knows less than the ledger, or people took their time
        with it, and a group that has read all there is moves its position without a row more."""
        plan = self._plan
        age_s = time.time() - plan.made_at_ms / 1000
        return plan.provisional is not None or ledger_rows != plan.ledger_rows or age_s > OLD_AFTER_S

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
        self._hooks = run_hooks(self._flow, EVENTS[self._plan.kind], told(self._plan))
        self._failures += _failed(self._hooks)
        return f"{len(self._hooks)} hooks were called" if self._hooks else "there is no hook to call"


def _failed(hooks: Sequence[HookResult]) -> list[str]:
    return [hook.failure for hook in hooks if hook.failure is not None]
