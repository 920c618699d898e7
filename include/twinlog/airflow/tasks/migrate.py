"""The tasks of a migration, in their order:

    settings -> backfill -> live -> prove -> plan -> approve -> cut_over -> offer -> approve_clean_up -> clean_up

Which phase a migration is at is kept on the target, so a task whose phase is done ends at once, and one that was killed
goes on when it is tried again, or in another run. `plan` skips what lies before `offer` where the cut-over is done.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.sdk import Param, TriggerRule, get_current_context, task

from twinlog.airflow.approval import APPROVE_TASK, approved_by, table, with_question
from twinlog.airflow.frame import NO_POOL
from twinlog.airflow.params import moment_ms, moment_param
from twinlog.airflow.progress import ProgressReport
from twinlog.airflow.settings import own_folder
from twinlog.airflow.spark_place import session_address
from twinlog.airflow.tasks.mirror import LISTED_AT_MOST, listed
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.errors import DifferenceError, FlowStateError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlog.cluster.copy_order import Executor
    from twinlog.model.takeover import TakeoverPlan
    from twinlog.operations.migrate import Asked, MigrateResult, Migrating
    from twinlog.operations.migration_cut_over import CuttingOver
    from twinlog.operations.reconcile_evidence import Executor as Prover

log = logging.getLogger(__name__)

SETTINGS_TASK = "settings"
BACKFILL_TASK = "backfill"
LIVE_TASK = "live"
PROVE_TASK = "prove"
PLAN_TASK = "plan"
CUT_OVER_TASK = "cut_over"
OFFER_TASK = "offer"
APPROVE_CLEAN_UP_TASK = "approve_clean_up"
CLEAN_UP_TASK = "clean_up"

FROM = "from"
FROM_OFFSETS = "from_offsets"
THROTTLE = "throttle"
PRIORITY = "priority"
BLACKOUTS = "blackouts"
ADOPT = "adopt"
BLOCK_WRITES = "block_writes"
WITHOUT_SOURCE = "without_source"
NOBODY = "nobody"


def migrate_params() -> dict[str, Param]:
    """The fields of the form; what is left empty stays as the migration that is under way has it."""
    return {
        FROM: moment_param("From", "Only what was written then or later. Without it, all that the source still keeps."),
        FROM_OFFSETS: _texts("From these offsets", "Begin these partitions there: TOPIC:PARTITION:OFFSET, one a line."),
        THROTTLE: Param(
            None,
            type=["null", "number"],
            exclusiveMinimum=0,
            title="Throttle (MB/s)",
            description="Over all tasks. `twinlog throttle` changes it while it copies, within seconds.",
        ),
        PRIORITY: _texts("Topics to copy first", "Patterns of the source's topics, the most urgent first, one a line."),
        BLACKOUTS: _texts(
            "Blackout windows",
            "Nothing is backfilled then, in UTC: mon-fri 08:00-18:00, or fri 18:00-mon 06:00; one a line.",
        ),
        ADOPT: Param(
            NOBODY,
            type="string",
            enum=[NOBODY, "mm2", "other"],
            title="Go on after another mirror",
            description="mm2: MirrorMaker 2, which must be stopped for good. other: any that copies in order and into "
            "the same partitions. What it copied is compared record by record and not copied again.",
        ),
        BLOCK_WRITES: Param(
            False,
            type="boolean",
            title="Block writes on the source at the cut-over",
            description="ACLs keep producers there from writing while the last of it is copied; otherwise stop them.",
        ),
        WITHOUT_SOURCE: Param(
            False,
            type="boolean",
            title="The source is switched off",
            description="After the cut-over: what Twinlog keeps on the target is removed without asking the source.",
        ),
    }


@task(task_id=SETTINGS_TASK)
def settings(flow_name: str) -> dict[str, Any]:
    """The migration begun, or gone on with: topics, settings and permissions, and what another mirror has left."""
    migrating = _Scene(flow_name).migrating()
    begun = migrating.begin(_asked(get_current_context()["params"]))
    adoption, notes = migrating.settings()
    _warn(notes)
    result = {
        "flow": flow_name,
        "migration": begun.id,
        "adopted": sum(one.records for one in adoption.adopted),
        "notes": list(notes),
    }
    return listed(result, "notes")


@task(task_id=BACKFILL_TASK, retries=5)
def backfill(flow_name: str) -> dict[str, Any]:
    """All that the source holds, in large runs on Spark; how far it is and when it will be done is on the task."""
    scene = _Scene(flow_name)
    migrating = scene.migrating(ProgressReport(get_current_context()["ti"]))
    with scene.spark() as spark:
        done = migrating.backfill(spark.copy, tasks=spark.tasks)
    _warn(done.warnings)
    log.info("%s: %s records in %s runs", flow_name, f"{done.records:,}", done.runs)
    return {
        "flow": flow_name,
        "runs": done.runs,
        "records": done.records,
        "bytes": done.bytes,
        "seconds": round(done.seconds, 3),
    }


@task(task_id=LIVE_TASK)
def live(flow_name: str) -> dict[str, Any]:
    """Ordinary runs, from exactly the next offset on, until the flow keeps up."""
    scene = _Scene(flow_name)
    migrating = scene.migrating(ProgressReport(get_current_context()["ti"]))
    with scene.spark() as spark:
        notes = migrating.live(spark.copy, tasks=spark.tasks)
    _warn(notes)
    return listed({"flow": flow_name, "notes": list(notes)}, "notes")


@task(task_id=PROVE_TASK)
def prove(flow_name: str) -> dict[str, Any]:
    """Both clusters compared, all that they hold; fails where they differ."""
    scene = _Scene(flow_name)
    migrating = scene.migrating()
    with scene.spark() as spark:
        found = migrating.prove(spark.prove, tasks=spark.tasks)
    if found is None:
        return {"flow": flow_name}
    report = migrating.report()
    _warn(found.notes)
    log.info("%s; report: %s", found.sentence, report)
    result = listed({**found.to_json(), "migration_report": report}, "differences", "notes")
    if found.differences:
        get_current_context()["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise DifferenceError(f"{found.sentence}; report: {found.report}")
    return result


@task(task_id=PLAN_TASK, pool=NO_POOL)
def plan(flow_name: str) -> dict[str, Any]:
    """Where each group would go on, for somebody to read; nothing is asked where that is behind us."""
    from airflow.sdk.exceptions import DownstreamTasksSkipped  # noqa: PLC0415 - no matter of parsing a DAG

    made = _Scene(flow_name).cutting().plan()
    if made is None:
        log.info("%s is cut over", flow_name)
        raise DownstreamTasksSkipped(tasks=[APPROVE_TASK, CUT_OVER_TASK])  # type: ignore[no-untyped-call]
    for step in made.sentences:
        log.info("%s", step)
    result = {"flow": flow_name, "id": made.id, "groups": made.groups, "lost_records": made.lost_records}
    return with_question(result, f"Cut {made.flow} over to {made.target}?", _question(made))


@task(task_id=CUT_OVER_TASK)
def cut_over(flow_name: str) -> dict[str, Any]:
    """The plan that was approved, or what is left of it."""
    context = get_current_context()
    approved = context["ti"].xcom_pull(task_ids=PLAN_TASK)
    scene = _Scene(flow_name)
    cutting = scene.cutting()
    kept = cutting.switchover.failover.kept(approved["id"])
    with scene.spark() as spark:
        done = cutting.carry_out(
            kept,
            spark.copy,
            spark.prove,
            approved_by=approved_by(context),
            tasks=spark.tasks,
            block_writes=bool(context["params"][BLOCK_WRITES]),
        )
    return _ended(done)


@task(task_id=OFFER_TASK, pool=NO_POOL, trigger_rule=TriggerRule.NONE_FAILED)
def offer(flow_name: str) -> dict[str, Any]:
    """The question whether what Twinlog keeps for itself may go."""
    migrating = _Scene(flow_name).migrating()
    report = None if get_current_context()["params"][WITHOUT_SOURCE] else migrating.report()
    body = (
        f"Removed are what {flow_name} keeps for itself on both clusters: its journal, state and positions, the topics "
        "by which it shows that it lives, and what the switchover denied. The migrated topics stay, and so do their "
        f"settings and permissions. After that there is no failback. {'' if report is None else f'Report: {report}'}"
    )
    return with_question({"flow": flow_name, "report": report}, f"Remove what Twinlog keeps of {flow_name}?", body)


@task(task_id=CLEAN_UP_TASK)
def clean_up(flow_name: str) -> dict[str, Any]:
    """Nothing of ours left on either cluster."""
    without_source = bool(get_current_context()["params"][WITHOUT_SOURCE])
    return _ended(_Scene(flow_name).migrating().clean_up(without_source=without_source))


class _Spark(NamedTuple):
    """What copies and what compares, in so many tasks."""

    copy: Executor
    prove: Prover
    tasks: int


class _Scene:
    """A flow, and what its migration needs."""

    def __init__(self, flow_name: str) -> None:
        self._reach = TaskReach(flow_name)

    def migrating(self, show: ProgressReport | None = None) -> Migrating:
        from twinlog.operations.migrate import Migrating  # noqa: PLC0415 - brings the Kafka clients

        reach = self._reach
        tell = functools.partial(log.info, "%s")
        return Migrating(reach.topology, reach.flow, reach.ends(), reach.ledger(), show=show, tell=tell)

    def cutting(self) -> CuttingOver:
        from twinlog.operations.migration_cut_over import CuttingOver  # noqa: PLC0415 - brings the Kafka clients
        from twinlog.operations.switchover_proof import switchover_of  # noqa: PLC0415 - as above

        reach = self._reach
        course = self.migrating().course
        return CuttingOver(reach.topology, reach.flow, reach.ends(), reach.ledger(), course, switchover_of(reach))

    @contextmanager
    def spark(self) -> Iterator[_Spark]:
        from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - brings the Kafka clients
        from twinlog.operations.prove_on_spark import prove_on_spark  # noqa: PLC0415 - as above
        from twinlog.operations.spark_session import most_tasks, spark_session  # noqa: PLC0415 - as above

        flow = self._reach.flow
        where = session_address(self._reach.topology, flow)
        with spark_session(where, warm=flow.name, cache=own_folder()) as spark:
            copy, compare = functools.partial(copy_on_spark, spark), functools.partial(prove_on_spark, spark)
            yield _Spark(copy, compare, most_tasks(spark, flow.lanes))


def _asked(params: Mapping[str, Any]) -> Asked:
    """What the form was filled in with, checked before anything is reached."""
    from twinlog.model.backfill import Priorities  # noqa: PLC0415 - no matter of parsing a DAG
    from twinlog.model.blackouts import Blackouts  # noqa: PLC0415 - as above
    from twinlog.model.migration import named_beginning  # noqa: PLC0415 - as above
    from twinlog.operations.migrate import Asked  # noqa: PLC0415 - brings the Kafka clients

    since, priority, blackouts = params.get(FROM), params.get(PRIORITY), params.get(BLACKOUTS)
    Priorities(priority or ())
    Blackouts.parse(blackouts or ())
    return Asked(
        from_ms=moment_ms(FROM, since) if since else None,
        from_offsets=dict(named_beginning(text) for text in params.get(FROM_OFFSETS) or ()),
        priority=None if priority is None else tuple(priority),
        blackouts=None if blackouts is None else tuple(blackouts),
        throttle=params.get(THROTTLE),
        adopts=None if params.get(ADOPT) in (None, NOBODY) else params[ADOPT],
    )


def _ended(done: MigrateResult) -> dict[str, Any]:
    _warn(done.notes)
    result = listed(done.to_json(), "notes", "failures", "removed")
    if done.failures:
        get_current_context()["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise FlowStateError("; ".join(done.failures[:LISTED_AT_MOST]))
    return result


def _question(made: TakeoverPlan) -> str:
    starts = [(row.group, row.topic, row.partition, row.offset, row.how, row.unread) for row in made.rows]
    parts = [
        "Both logs were compared and are equal. What is written until the cut-over is copied first.",
        "\n".join(made.sentences),
        table(("group", "topic", "partition", "offset", "how", "unread"), starts),
    ]
    if made.left_out:
        behind = [(row.group, row.topic, row.partition, row.reason) for row in made.left_out]
        parts += ["Left out:", table(("group", "topic", "partition", "reason"), behind)]
    return "\n\n".join(parts)


def _texts(title: str, description: str) -> Param:
    return Param(
        None,
        type=["null", "array"],
        items={"type": "string", "minLength": 1, "maxLength": 300},
        title=title,
        description=description,
    )


def _warn(notes: tuple[str, ...]) -> None:
    for note in notes[:LISTED_AT_MOST]:
        log.warning("%s", note)
