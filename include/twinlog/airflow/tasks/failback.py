"""The tasks of a failback, in their order, and the one of a drill:

    plan  ->  approve (see `airflow.approval`)  ->  failback

The plan lies beside the ledger under its id, so the task that carries it out does what was approved and nothing else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param, get_current_context, task

from twinlog.airflow.approval import approved_by, table, with_question
from twinlog.airflow.executing import executors
from twinlog.airflow.frame import NO_POOL
from twinlog.airflow.hook_dag import EVENT
from twinlog.airflow.tasks.mirror import listed
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.errors import DrillError, FailbackError

if TYPE_CHECKING:
    from twinlog.operations.failback import Failback
    from twinlog.operations.failback_plan import FailbackPlan

log = logging.getLogger(__name__)

PLAN_TASK = "plan"
FAILBACK_TASK = "failback"
DRILL_TASK = "drill"

MODE = "mode"
STRANDED = "stranded"
REBUILD_DAMAGED = "rebuild_damaged"
ACCEPT_DEGRADED = "accept_degraded"
BLOCK_WRITES = "block_writes"
ALSO = "also"


def failback_params() -> dict[str, Param]:
    """The fields of the form."""
    return {
        MODE: Param(
            "resume",
            type="string",
            enum=["resume", "rebuild"],
            title="What of the source's data",
            description="resume: it is intact. rebuild: it is lost; the flow's topics there are deleted, and all of "
            "them come from the target.",
        ),
        STRANDED: Param(
            "leave",
            type="string",
            enum=["leave", "topic", "append"],
            title="Records that never crossed",
            description="They are kept as Parquet beside the ledger in any case. leave: they stay on the source. "
            "topic: they go to <topic>.stranded on the target. append: they are appended on the target.",
        ),
        REBUILD_DAMAGED: Param(
            False,
            type="boolean",
            title="Rebuild damaged topics",
            description="In mode resume, topics that have lost what had been mirrored are deleted and filled anew.",
        ),
        ACCEPT_DEGRADED: Param(
            False,
            type="boolean",
            title="Begin although the source is not whole",
            description="Brokers that have not come back, replicas that are not in sync, partitions without a leader.",
        ),
        ALSO: Param(
            [],
            type="array",
            items={"type": "string"},
            title="Topics that go home too",
            description="Topics that were made on the target while it led, one a line: they are made on the source.",
        ),
        BLOCK_WRITES: Param(
            False,
            type="boolean",
            title="Block writes on the target at the end",
            description="ACLs keep producers there from writing while the last of it goes home; otherwise stop them.",
        ),
    }


@task(task_id=PLAN_TASK, pool=NO_POOL)
def plan(flow_name: str) -> dict[str, Any]:
    """What the failback would do, for somebody to read; fails where it can't begin."""
    from twinlog.model.failback import Mode, Stranded  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.failback_plan import FailbackRequest  # noqa: PLC0415 - as above

    params = get_current_context()["params"]
    request = FailbackRequest(
        Mode(params[MODE]),
        Stranded(params[STRANDED]),
        rebuild_damaged=bool(params[REBUILD_DAMAGED]),
        accept_degraded=bool(params[ACCEPT_DEGRADED]),
        block_writes=bool(params[BLOCK_WRITES]),
        also=tuple(params[ALSO]),
    )
    made = _failback(flow_name).plan(request)
    for step in made.sentences:
        log.info("%s", step)
    result = listed(made.to_json(), "stranded", "records", "notes", "damaged")
    if made.refused:
        get_current_context()["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise FailbackError("; ".join(made.refused))
    return with_question(result, f"Fail {made.flow} back to {made.source}?", _question(made))


@task(task_id=FAILBACK_TASK)
def carry_out(flow_name: str) -> dict[str, Any]:
    """The plan that was approved, or what is left of it."""
    from twinlog.operations.hooks import Event, content  # noqa: PLC0415 - brings the Kafka clients

    context = get_current_context()
    approved = context["ti"].xcom_pull(task_ids=PLAN_TASK)
    failback = _failback(flow_name)
    kept = failback.kept_plan(approved["id"])
    flow = failback.flow
    with executors(failback.topology, flow) as by:
        done = failback.carry_out(kept, by.copy, tasks=by.tasks)
    for warning in done.warnings:
        log.warning("%s", warning)
    result = {**done.to_json(), "plan": kept.id, "approved_by": approved_by(context)}
    if done.failure is not None:
        context["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise FailbackError(done.failure)
    home = failback.topology.clusters[flow.source]
    told = {"plan": kept.id, "active": home.alias, "bootstrap_servers": home.bootstrap_servers}
    context["ti"].xcom_push(key=EVENT, value=content(flow.name, Event.FAILED_BACK, told))
    return result


@task(task_id=DRILL_TASK)
def drill(flow_name: str) -> dict[str, Any]:
    """A failover rehearsed on shadow groups; fails where a record is not as it should be, or an objective is missed."""
    from twinlog.operations.drill import Drill  # noqa: PLC0415 - brings the Kafka clients

    reach = TaskReach(flow_name)
    ends = reach.access("source"), reach.access("target")
    done = Drill(reach.topology, reach.flow, *ends, reach.ledger()).run()
    for note in done.notes:
        log.warning("%s", note)
    result = listed(done.to_json(), "groups", "left_out", "notes")
    log.info("%s: recovery time %s s, %s records checked", flow_name, result["recovery_time_s"], done.records)
    if done.exit_code:
        get_current_context()["ti"].xcom_push(key=RESULT_KEY, value=result)
        faults = f"{len(done.faults):,} faults" if done.faults else "not every group could read"
        raise DrillError(f"{flow_name}: {'; '.join(done.missed) or faults}")
    return result


def _failback(flow_name: str) -> Failback:
    from twinlog.operations.directions import with_way_home  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.failback import Failback  # noqa: PLC0415 - as above

    reach = TaskReach(flow_name)
    topology, home = with_way_home(reach.topology, reach.flow)
    return Failback(
        reach.topology,
        reach.flow,
        reach.ends(),
        reach.of(topology, home).ends(),
        reach.ledger(),
        say=lambda sentence: log.info("%s", sentence),
    )


def _question(made: FailbackPlan) -> str:
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(made.sentences, 1))
    if not made.records:
        return steps
    rows = ((one.topic, one.partition, one.offset, one.key) for one in made.records)
    return f"{steps}\n\nStranded:\n\n{table(('topic', 'partition', 'offset', 'key'), rows)}"
