"""A repair of a test's flow, without Spark."""

from __future__ import annotations

from support.mirroring import Twins
from twinlog.cluster.copy_order import carry_out_here
from twinlog.model.flow import Flow
from twinlog.model.repair import Records
from twinlog.model.topology import Topology
from twinlog.operations.flow_reach import FlowReach
from twinlog.operations.fresh_copy import Executors
from twinlog.operations.reconcile import prove_here
from twinlog.operations.repair import Repair
from twinlog.operations.repair_plan import RepairPlan, RepairRequest, RepairResult
from twinlog.operations.run_scope import Ends

HERE = Executors(carry_out_here, prove_here, tasks=2)


def repair_of(flow: Twins) -> Repair:
    return Repair(flow.topology, flow.flow, flow.ends(), flow.ledger, ends_of)


def ends_of(topology: Topology, flow: Flow) -> Ends:
    return FlowReach(topology, flow).ends()


def plan_of(flow: Twins, records: Records = Records.RECOPY, **more: bool) -> RepairPlan:
    return repair_of(flow).plan(RepairRequest(records, **more))


def repair(flow: Twins, records: Records = Records.RECOPY, **more: bool) -> RepairResult:
    """The whole of it, which must come to its end; the plan as it is read back."""
    plan = plan_of(flow, records, **more)
    assert plan.refused == ()
    result = repair_of(flow).carry_out(repair_of(flow).kept_plan(plan.id), HERE)
    assert result.complete, result.failure
    return result
