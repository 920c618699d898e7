"""The tasks of a failover, in their order, and the one that begins one by itself:

    plan  ->  approve (see `airflow.approval`)  ->  failover  ->  hook (see `airflow.hook_dag`)
    watch  ->  hook

The plan lies beside the ledger under its id, so the task that carries it out does what was approved. None of them takes
a slot of a pool: tasks that hang on the source that is gone may hold all of those.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context, task

from twinlog.airflow.approval import approved_by, with_question
from twinlog.airflow.frame import NO_POOL
from twinlog.airflow.hook_dag import EVENT, HOOK_TASK
from twinlog.airflow.notices import Notice, NoticeKind, tell
from twinlog.airflow.takeover_form import SOURCE_TIMEOUT, asked_request
from twinlog.airflow.takeover_view import question, shown_plan, shown_result
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.errors import TakeoverError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinlog.model.takeover import TakeoverPlan
    from twinlog.operations.failover import Failover
    from twinlog.operations.takeover_result import TakeoverResult

log = logging.getLogger(__name__)

PLAN_TASK = "plan"
FAILOVER_TASK = "failover"
WATCH_TASK = "watch"

WATCH_FOR = timedelta(minutes=10)
"""A run of the watch; the next begins as soon as it has ended, and none ends while the source is thought gone."""


@task(task_id=PLAN_TASK, pool=NO_POOL)
def plan(flow_name: str) -> dict[str, Any]:
    """What the failover would do, for somebody to read."""
    params = get_current_context()["params"]
    reach = TaskReach(flow_name)
    failover = failover_of(reach, float(params[SOURCE_TIMEOUT]))
    begun = failover.unfinished()
    return planned(failover, begun or failover.plan(asked_request(params)), goes_on=begun is not None)


@task(task_id=FAILOVER_TASK, pool=NO_POOL)
def carry_out(flow_name: str) -> dict[str, Any]:
    """The plan that was approved, or what is left of it."""
    context = get_current_context()
    failover = failover_of(TaskReach(flow_name), float(context["params"][SOURCE_TIMEOUT]))
    kept = failover.kept(context["ti"].xcom_pull(task_ids=PLAN_TASK)["id"])
    return taken_over(context, failover, failover.apply(kept), approved_by=approved_by(context))


@task(task_id=WATCH_TASK, pool=NO_POOL)
def watch(flow_name: str) -> dict[str, Any]:
    """The probes asked again and again; once all have found the source gone for long enough, a failover."""
    from airflow.sdk.exceptions import DownstreamTasksSkipped  # noqa: PLC0415 - no matter of parsing a DAG

    from twinlog.operations.automatic_failover import AutomaticFailover  # noqa: PLC0415 - brings the Kafka clients

    context = get_current_context()
    reach = TaskReach(flow_name)
    failover = failover_of(reach)
    ends = reach.access("source"), reach.access("target")
    watching = AutomaticFailover(reach.flow, *ends, failover, lambda sentence: log.warning("%s", sentence))
    done = watching.watch(for_s=WATCH_FOR.total_seconds())
    if done is not None:
        return taken_over(context, failover, done, approved_by=None)
    result = {"flow": flow_name, "failed_over": False}
    if reach.flow.hook_dag is not None:
        context["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise DownstreamTasksSkipped(tasks=[HOOK_TASK])  # type: ignore[no-untyped-call]
    return result


def failover_of(reach: TaskReach, source_within_s: float | None = None) -> Failover:
    from twinlog.operations.failover import Failover  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.source_look import ANSWERS_WITHIN_S  # noqa: PLC0415 - as above

    return Failover(
        reach.topology,
        reach.flow,
        reach.access("source"),
        reach.access("target"),
        reach.ledger(),
        source_within_s=source_within_s or ANSWERS_WITHIN_S,
    )


def planned(failover: Failover, made: TakeoverPlan, *, goes_on: bool) -> dict[str, Any]:
    """A plan's result with the question that is asked about it."""
    for sentence in (*made.sentences, *made.notes):
        log.info("%s", sentence)
    kept_at = failover.plan_path(made)
    verb = "Fail" if made.kind == "failover" else "Switch"
    subject = f"{verb} {made.flow} over to {made.target}?"
    if goes_on:
        subject = f"Go on with the {made.kind} of {made.flow} to {made.target} that was cut short?"
    body = question(made, kept_at, failover.csv_path(made))
    return with_question({**shown_plan(made, kept_at), "goes_on": goes_on}, subject, body)


def taken_over(
    context: Context, failover: Failover, done: TakeoverResult, *, approved_by: str | None, **more: Any
) -> dict[str, Any]:
    """The result of a takeover, told to those who are told of things; fails where something of it was refused."""
    for step in done.steps:
        log.info("%d. %s (%.1f s)", step.step, step.said, step.seconds)
    for sentence in (*done.failures, *done.missed, *done.plan.notes):
        log.warning("%s", sentence)
    context["ti"].xcom_push(key=EVENT, value=done.event)
    result = {**shown_result(done, failover.plan_path(done.plan)), **more, "approved_by": approved_by}
    tell(context, _notice(done))
    if done.missed:
        tell(context, Notice(NoticeKind.RECOVERY_TIME, done.plan.flow, done.missed[0], text="\n".join(done.missed)))
    if done.failures:
        context["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise TakeoverError("; ".join(done.failures))
    return result


def _notice(done: TakeoverResult) -> Notice:
    made = done.plan
    lost = "an unknown number of" if made.lost_records is None else f"{made.lost_records:,}"
    left = len({row.group for row in done.left_out})
    return Notice(
        NoticeKind.TAKEOVER,
        made.flow,
        f"{made.flow}: {made.target} has taken over from {made.source}: {done.moved.groups:,} groups are ready, "
        f"{left:,} are not wholly, {lost} records lost",
        text="\n".join((f"Clients find {made.target} at {made.bootstrap_servers}.", *done.failures)),
        details={"plan": made.id, "kind": str(made.kind), "seconds": round(done.seconds, 3)},
    )
