"""The tasks of a switchover, in their order:

    plan  ->  approve (see `airflow.approval`)  ->  switchover  ->  hook (see `airflow.hook_dag`)

Producers stop while the plan is read, before it is approved, or are denied writing; consumers too.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context, task

from twinlog.airflow.approval import approved_by
from twinlog.airflow.executing import executors
from twinlog.airflow.frame import NO_POOL
from twinlog.airflow.notices import Notice, NoticeKind, tell
from twinlog.airflow.takeover_form import BLOCK_WRITES, TIMEOUT, asked_request
from twinlog.airflow.tasks.failover import PLAN_TASK, planned, taken_over
from twinlog.airflow.tasks.reach import TaskReach

if TYPE_CHECKING:
    from twinlog.operations.switchover import Switchover

log = logging.getLogger(__name__)

SWITCHOVER_TASK = "switchover"


@task(task_id=PLAN_TASK, pool=NO_POOL)
def plan(flow_name: str) -> dict[str, Any]:
    """What the switchover would do, for somebody to read."""
    params = get_current_context()["params"]
    switchover = _switchover(TaskReach(flow_name), params[TIMEOUT])
    begun = switchover.failover.unfinished()
    made = begun or switchover.plan(asked_request(params))
    return planned(switchover.failover, made, goes_on=begun is not None)


@task(task_id=SWITCHOVER_TASK)
def carry_out(flow_name: str) -> dict[str, Any]:
    """The plan that was approved, by what is known once both logs are equal."""
    from twinlog.operations.switchover_proof import prove_with  # noqa: PLC0415 - brings the Kafka clients

    context = get_current_context()
    params, reach = context["params"], TaskReach(flow_name)
    switchover = _switchover(reach, params[TIMEOUT])
    kept = switchover.failover.kept(context["ti"].xcom_pull(task_ids=PLAN_TASK)["id"])
    with executors(reach.topology, reach.flow) as by:
        prove = prove_with(reach, by.prove, tasks=by.tasks)
        done = switchover.apply(kept, by.copy, prove, tasks=by.tasks, block_writes=bool(params[BLOCK_WRITES]))
    for note in done.notes:
        log.warning("%s", note)
    if done.late is not None:
        # The switchover has taken place all the same, and trying again would not bring them over.
        tell(context, Notice(NoticeKind.DIFFERENT, flow_name, f"{flow_name}: {done.late}"))
    log.info("copied in %s runs; %s; %s", done.runs, done.proof, done.reverse)
    return taken_over(
        context,
        switchover.failover,
        done.takeover,
        approved_by=approved_by(context),
        runs=done.runs,
        blocked=done.blocked,
        proof=done.proof,
        reverse=done.reverse,
        late=done.late,
        switchover_notes=list(done.notes),
    )


def _switchover(reach: TaskReach, within_s: float) -> Switchover:
    from twinlog.operations.switchover_proof import switchover_of  # noqa: PLC0415 - brings the Kafka clients

    return switchover_of(reach, within_s=float(within_s))
