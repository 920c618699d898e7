"""The task that looks at a flow: what is there on both sides, how far behind it is, and the metrics of that."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context, task

from twinlog.airflow.metrics import send
from twinlog.airflow.notices import TOLD, Notice, NoticeKind, tell_changes, told_before
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.errors import ClusterError, ClusterUnreachableError, ObjectiveMissedError, TwinlogError

if TYPE_CHECKING:
    from twinlog.cluster.access import ClusterAccess
    from twinlog.model.objectives import Objective
    from twinlog.model.topology import Flow
    from twinlog.operations.status import FlowStatus, SideStatus, Status

log = logging.getLogger(__name__)

STATUS_TASK = "status"
"""In the result: the kinds of notices that hold."""


# Who asks for the status wants to know how it is now: one more try tells a hiccup from an outage.
@task(task_id=STATUS_TASK, retries=1, retry_delay=timedelta(seconds=5))
def status(flow_name: str) -> dict[str, Any]:
    """Both sides of the flow as they are now; fails with their own sentences where one is unreachable, and where a
    recovery objective is missed."""
    from twinlog.operations.metrics import collect  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.status import status as ask  # noqa: PLC0415 - as above

    reach = TaskReach(flow_name)

    def accesses(_: Flow, side: str) -> ClusterAccess:
        return reach.access(side)

    result = ask(reach.topology, accesses, [flow_name])
    log.info("%s", status_table(result.flows[0]))
    collected = collect(reach.topology, accesses, result)
    send(collected.samples)
    for problem in collected.problems:
        log.warning("%s", problem)
    context = get_current_context()
    failure = _failure(result)
    # What the next try may mend is told by that one, if it does not.
    final = failure is None or not failure.retriable or context["ti"].try_number > context["ti"].max_tries
    before = told_before(context, STATUS_TASK)
    told = tell_changes(context, notices(result.flows[0]), before) if final else before
    row: dict[str, Any] = {**result.to_json()["flows"][0], TOLD: told}
    if failure is not None:
        # A failed task returns nothing, and it is the failed ones of which people want to see the sides.
        context["ti"].xcom_push(key=RESULT_KEY, value=row)
        raise failure
    return row


def _failure(result: Status) -> TwinlogError | None:
    """What the task is to fail with; a task that fails is what Airflow's own alerts go by."""
    failed = [side for side in result.sides if not side.reachable]
    if failed:
        kind = ClusterUnreachableError if all(side.retriable for side in failed) else ClusterError
        return kind("; ".join(f"{side.error}" for side in failed))
    return ObjectiveMissedError("; ".join(result.missed)) if result.missed else None


def notices(flow: FlowStatus) -> list[Notice]:
    """What people are to be told of the flow as it is, bad news and good; what is not known is neither."""
    away = [side for side in (flow.source, flow.target) if not side.reachable]
    found = [
        Notice(
            NoticeKind.UNREACHABLE,
            flow.flow,
            f"{flow.flow}: {' and '.join(side.cluster for side in away) or 'both clusters'} "
            f"{'could not be reached' if away else 'can be reached again'}",
            text="\n".join(f"{side.error}" for side in away),
            over=not away,
        )
    ]
    for kind, objective in ((NoticeKind.LAG, flow.objectives.point), (NoticeKind.RECOVERY_TIME, flow.objectives.time)):
        if objective.met is not None:
            name = kind.replace("_", " ")
            figures = f"{objective.measured_s:,.0f} s measured, {objective.wanted_s:,.0f} s wanted"
            title = f"{flow.flow}: {name} is {'within' if objective.met else 'beyond'} what is wanted: {figures}"
            found.append(Notice(kind, flow.flow, title, over=objective.met, details=objective.to_json()))
    return found


def status_table(flow: FlowStatus) -> str:
    """The flow's status for a person who reads the task's log."""
    return "\n".join(
        [
            f"{flow.flow} is {flow.state}",
            _side_line("source", flow.source),
            _side_line("target", flow.target),
            _objective_line("recovery point", flow.objectives.point),
            _objective_line("recovery time", flow.objectives.time),
        ]
    )


def _objective_line(name: str, objective: Objective) -> str:
    measured = "not measured" if objective.measured_s is None else f"{objective.measured_s:,.1f} s"
    by = f" by the {objective.measured_by}" if objective.measured_by else ""
    wanted = "" if objective.wanted_s is None else f", {objective.wanted_s:,.0f} s wanted"
    return f"  {name}  {measured}{by}{wanted}{', MISSED' if objective.met is False else ''}"


def _side_line(name: str, side: SideStatus) -> str:
    found = (
        f"{side.brokers} brokers, {side.topics} topics, {side.partitions} partitions" if side.reachable else side.error
    )
    return f"  {name}  {side.cluster:<16} {'reached' if side.reachable else 'not reached':<12} {found}"
