"""The tasks of a mirror run, in their order:

    plan  ->  copy (see `airflow.copying`)  ->  record  ->  checkpoint  ->  end

`plan` decides which of the others there is something to do for, and skips the rest, so that an idle flow costs one task
and no Spark. `record` and `checkpoint` run whatever became of `copy`: what a killed worker has committed comes into the
ledger too, and where one partition can't be copied, the groups of the others go on. `end` makes a run failed whose
`copy` has; the scheduler does it by itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import TriggerRule, get_current_context, task

from twinlog.airflow.frame import NO_POOL
from twinlog.airflow.lineage import update_assets
from twinlog.airflow.metrics import send, tell_errors, tells_errors
from twinlog.airflow.params import is_backfill, run_limits
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.errors import ClusterError, FlowStateError
from twinlog.intake.extensions import naming_of

if TYPE_CHECKING:
    from twinlog.operations.run_plan import RunPlan

log = logging.getLogger(__name__)

PLAN_TASK = "plan"
COPY_TASK = "copy"
RECORD_TASK = "record"
CHECKPOINT_TASK = "checkpoint"
END_TASK = "end"

LISTED_AT_MOST = 100
"""Findings and notes of a result; Airflow keeps it in its database, and an estate may have tens of thousands."""


@task(task_id=PLAN_TASK, pool=NO_POOL, retry_delay=timedelta(seconds=10))
@tells_errors(PLAN_TASK)
def plan(flow_name: str) -> dict[str, Any]:
    """What there is to do for the flow now; every other task that has nothing to do is skipped."""
    from airflow.sdk.exceptions import DownstreamTasksSkipped  # noqa: PLC0415 - no matter of parsing a DAG

    from twinlog.operations.mirror import new_run_id  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.run_plan import Looking, Step  # noqa: PLC0415 - as above

    context = get_current_context()
    reach = TaskReach(flow_name)
    looking = Looking(reach.topology, reach.flow, reach.ends(), reach.ledger())
    began = time.monotonic()
    found = looking.look(new_run_id(), run_limits(context))
    log.info("%s", found.sentence)
    if found.refused is not None and is_backfill(context):
        raise FlowStateError(f"the interval was not copied: {found.refused}")
    for finding in found.findings[:LISTED_AT_MOST]:
        log.warning("%s", finding.message)
    planned = listed(found.to_json(), "findings", "new_topics")
    idle = [str(step) for step in Step if step not in found.due]
    if found.refused is None:
        tell_of_idle(found, idle, time.monotonic() - began)
    if idle:
        if len(idle) == len(Step):
            idle.append(END_TASK)
        # Raised instead of returned, or the tasks would be looked at one by one; so the result has to be left by hand.
        context["ti"].xcom_push(key=RESULT_KEY, value=planned)
        raise DownstreamTasksSkipped(tasks=idle)  # type: ignore[no-untyped-call]
    return planned


@task(task_id=RECORD_TASK, pool=NO_POOL, trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
@tells_errors(RECORD_TASK)
def record(flow_name: str) -> dict[str, Any]:
    """The ledger brought up to what is committed, what of that is of this run, and who waits for it told."""
    from twinlog.operations.metrics import recorded_samples  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.mirror import Mirror  # noqa: PLC0415 - as above

    context = get_current_context()
    ti = context["ti"]
    planned, copied = ti.xcom_pull(task_ids=PLAN_TASK), ti.xcom_pull(task_ids=COPY_TASK) or {}
    reach = TaskReach(flow_name)
    mirror = Mirror(reach.topology, reach.flow, reach.ends(), reach.ledger())
    recorded = mirror.record(planned["run"], planned["since"])
    seconds = float(copied.get("seconds", 0.0))
    log.info("%s: %s records, %s bytes in run %s", flow_name, recorded.records, recorded.bytes, planned["run"])
    for note in recorded.notes:
        log.warning("%s", note)
    send(recorded_samples(flow_name, recorded, seconds))
    result = {
        "flow": flow_name,
        "run": planned["run"],
        "seconds": seconds,
        "partitions": copied.get("partitions", 0),
        "left_records": copied.get("left_records", 0),
        "mirrored_until_ms": copied.get("mirrored_until_ms"),
        **recorded.to_json(),
    }
    policy = naming_of(reach.flow)
    twins = [policy.target_name(topic) for topic in recorded.topics]
    update_assets(context, reach.flow, twins, result=result)
    return result


@task(task_id=CHECKPOINT_TASK, trigger_rule=TriggerRule.NONE_FAILED)
@tells_errors(CHECKPOINT_TASK)
def checkpoint(flow_name: str) -> dict[str, Any]:
    """The groups' positions, translated and written to the target."""
    from airflow.sdk.exceptions import AirflowSkipException  # noqa: PLC0415 - no matter of parsing a DAG

    from twinlog.operations.checkpoint import Checkpointing  # noqa: PLC0415 - brings the Kafka clients

    reach = TaskReach(flow_name)
    source, target = reach.access("source"), reach.access("target")
    done = Checkpointing(reach.topology, reach.flow, source, target, reach.ledger()).run()
    for note in done.standings.notes:
        log.warning("%s", note)
    if done.skipped is not None:
        log.info("%s", done.skipped)
        raise AirflowSkipException(done.skipped)
    result = listed(done.to_json(), "left_out", "notes")
    log.info("%s: %s groups, %s of them ready", flow_name, result["groups"], result["groups_ready"])
    if done.failures:
        get_current_context()["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise ClusterError("; ".join(done.failures[:LISTED_AT_MOST]))
    return result


def tell_of_idle(found: RunPlan, idle: Sequence[str], seconds: float) -> None:
    """The figures of steps that have nothing to do: those of the last run that had hold no longer."""
    from twinlog.operations.metrics import copy_samples, recorded_samples  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.mirror_result import CopyResult, RecordedRun  # noqa: PLC0415 - as above

    for step in idle:
        tell_errors(found.flow, step)
    if COPY_TASK in idle:
        send(copy_samples(CopyResult(found.flow, found.run, seconds=seconds, findings=found.findings)))
    if RECORD_TASK in idle:
        send(recorded_samples(found.flow, RecordedRun(), seconds))


def end() -> EmptyOperator:
    """The task by whose state Airflow tells how the run has ended."""
    return EmptyOperator(task_id=END_TASK, pool=NO_POOL, trigger_rule=TriggerRule.NONE_FAILED)


def listed(result: dict[str, Any], *lists: str) -> dict[str, Any]:
    """The result with its lists cut to what can be shown, and how long each of them was."""
    cut = {name: result[name][:LISTED_AT_MOST] for name in lists}
    return {**result, **cut, **{f"{name}_total": len(result[name]) for name in lists}}
