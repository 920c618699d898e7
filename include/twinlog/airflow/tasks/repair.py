"""The tasks of a repair, in their order:

    plan  ->  approve (see `airflow.approval`)  ->  repair

The plan lies beside the ledger under its id, so the task that carries it out does what was approved and nothing else.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param, get_current_context, task

from twinlog.airflow.approval import approved_by, with_question
from twinlog.airflow.frame import NO_POOL
from twinlog.airflow.metrics import tells_errors
from twinlog.airflow.settings import own_folder
from twinlog.airflow.spark_place import spark_place
from twinlog.airflow.tasks.mirror import listed
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.airflow.tasks.reconcile import TOPICS, asked_pattern
from twinlog.errors import DifferenceError, RepairError

if TYPE_CHECKING:
    from twinlog.operations.repair import Repair
    from twinlog.operations.repair_plan import RepairPlan, RepairResult

log = logging.getLogger(__name__)

PLAN_TASK = "plan"
REPAIR_TASK = "repair"

RECORDS = "records"
ACCEPT_LOSS = "accept_loss"


def repair_params() -> dict[str, Param]:
    """The fields of the form."""
    return {
        RECORDS: Param(
            "recopy",
            type="string",
            enum=["recopy", "recover", "leave"],
            title="Topics whose records differ",
            description="recopy: copied again into a fresh topic, which takes the twin's place once proven equal. "
            "recover: what the twin lacks is appended to <twin>.recovered. leave: they stay as they are.",
        ),
        TOPICS: Param(
            None,
            type=["null", "string"],
            title="Only these topics",
            description="A pattern; only records of source topics whose whole name matches it are repaired.",
        ),
        ACCEPT_LOSS: Param(
            False,
            type="boolean",
            title="Accept a loss",
            description="Copy a topic again although its twin has records that the source has no longer.",
        ),
    }


@task(task_id=PLAN_TASK, pool=NO_POOL)
def plan(flow_name: str) -> dict[str, Any]:
    """What the repair would do, for somebody to read; skips what follows where there is nothing to repair."""
    from twinlog.model.repair import Records  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.repair_plan import RepairRequest  # noqa: PLC0415 - as above

    context = get_current_context()
    params = context["params"]
    request = RepairRequest(Records(params[RECORDS]), asked_pattern(params.get(TOPICS)), bool(params.get(ACCEPT_LOSS)))
    made = _repair(flow_name).plan(request)
    for sentence in (*made.sentences, *made.notes):
        log.info("%s", sentence)
    result = listed(made.to_json(), "notes", "settings", "recover", "recopy")
    if made.refused:
        context["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise RepairError("; ".join(made.refused))
    if not made.remedies:
        from airflow.sdk.exceptions import AirflowSkipException  # noqa: PLC0415 - no matter of parsing a DAG

        context["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise AirflowSkipException(f"{flow_name}: there is nothing to repair")
    return with_question(result, f"Repair {made.flow}?", _question(made))


@task(task_id=REPAIR_TASK)
@tells_errors(REPAIR_TASK)
def carry_out(flow_name: str) -> dict[str, Any]:
    """The plan that was approved, or what is left of it; fails where something still differs afterwards."""
    context = get_current_context()
    approved = context["ti"].xcom_pull(task_ids=PLAN_TASK)
    repair = _repair(flow_name)
    done = _carried_out(repair, repair.kept_plan(approved["id"]))
    for sentence in (*done.warnings, *done.left):
        log.warning("%s", sentence)
    result = {**done.to_json(), "approved_by": approved_by(context)}
    if done.exit_code:
        context["ti"].xcom_push(key=RESULT_KEY, value=result)
        if done.failure is not None:
            raise RepairError(done.failure)
        raise DifferenceError(f"{flow_name} still differs after the repair: {'; '.join(done.left[:5])}")
    return result


def _carried_out(repair: Repair, kept: RepairPlan) -> RepairResult:
    from twinlog.cluster.copy_order import carry_out_here  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.fresh_copy import Executors  # noqa: PLC0415 - as above
    from twinlog.operations.prove_on_spark import prove_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.reconcile import prove_here  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import most_tasks, spark_session  # noqa: PLC0415 - as above

    flow, place = repair.flow, spark_place(repair.topology, repair.flow)
    if not place.address:
        # A job that is submitted would start anew for every run of the small flow and for every comparison.
        return repair.carry_out(kept, Executors(carry_out_here, prove_here, tasks=1))
    with spark_session(place.address, warm=flow.name, cache=own_folder()) as spark:
        copy, prove = functools.partial(copy_on_spark, spark), functools.partial(prove_on_spark, spark)
        return repair.carry_out(kept, Executors(copy, prove, most_tasks(spark, flow.lanes)))


def _repair(flow_name: str) -> Repair:
    from twinlog.operations.repair import Repair  # noqa: PLC0415 - brings the Kafka clients

    reach = TaskReach(flow_name)
    return Repair(
        reach.topology,
        reach.flow,
        reach.ends(),
        reach.ledger(),
        lambda topology, flow: reach.of(topology, flow).ends(),
        say=lambda sentence: log.info("%s", sentence),
    )


def _question(made: RepairPlan) -> str:
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(made.sentences, 1))
    notes = "\n".join(f"- {note}" for note in made.notes)
    return f"{steps}\n\nTo know:\n\n{notes}" if notes else steps
