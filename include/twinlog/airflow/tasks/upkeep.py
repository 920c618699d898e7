"""The tasks that look after a flow between its runs: keeping in step, signs of life, and a ledger that stays small."""

from __future__ import annotations

import functools
import logging
from dataclasses import asdict
from typing import Any

from airflow.sdk import Param, get_current_context, task

from twinlog.airflow.frame import NO_POOL
from twinlog.airflow.metrics import send, tells_errors
from twinlog.airflow.settings import own_folder
from twinlog.airflow.spark_place import spark_place
from twinlog.airflow.tasks.mirror import LISTED_AT_MOST, listed
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.errors import CanaryError, ClusterError

log = logging.getLogger(__name__)

SYNC_TASK = "sync"
HEARTBEAT_TASK = "heartbeat"
CANARY_TASK = "canary"
COMPACT_TASK = "compact"

APPROVED = "approved"
KEEP_DAYS = 30.0


def sync_params() -> dict[str, Param]:
    """The form of a sync that is started by hand."""
    return {
        APPROVED: Param(
            False,
            type="boolean",
            title="Delete now",
            description="Topics that are gone from the source are deleted on the target without waiting for "
            "sync.topic.deletes.grace.seconds, where sync.topic.deletes is on, and permissions and quotas are removed "
            "that a source cluster built anew does not have. Only what Twinlog created is ever deleted.",
        )
    }


@task(task_id=SYNC_TASK)
@tells_errors(SYNC_TASK)
def sync(flow_name: str) -> dict[str, Any]:
    """Topics, partitions, settings and permissions of the target brought in step with the source."""
    from twinlog.operations.sync import Sync  # noqa: PLC0415 - brings the Kafka clients

    context = get_current_context()
    reach = TaskReach(flow_name)
    skip_if(_moved(reach))
    keeping = Sync(reach.topology, reach.flow, reach.access("source"), reach.access("target"))
    done = keeping.run(approved=bool(context["params"].get(APPROVED)))
    skip_if(done.skipped if not done.failed else None)
    log.info("%s: %s changes", flow_name, len(done.changes))
    for change in done.changes[:LISTED_AT_MOST]:
        log.info("  %s", change.to_json())
    for warning in (*done.warnings, *(one.message for one in done.preflight)):
        log.warning("%s", warning)
    result = listed(done.to_json(), "changes", "reports", "notes", "scram_users", "quotas")
    if done.failed:
        context["ti"].xcom_push(key=RESULT_KEY, value=result)
        raise ClusterError("; ".join(done.failed[:LISTED_AT_MOST]))
    return result


@task(task_id=HEARTBEAT_TASK, pool=NO_POOL)
@tells_errors(HEARTBEAT_TASK)
def heartbeat(flow_name: str) -> dict[str, Any]:
    """A sign of life on the source, for the next run to bring over."""
    from twinlog.operations.heartbeat import emit_heartbeat  # noqa: PLC0415 - brings the Kafka clients

    reach = TaskReach(flow_name)
    skip_if(_moved(reach))
    done = emit_heartbeat(reach.flow, reach.access("source"), reach.access("target"))
    skip_if(done.skipped)
    return done.to_json()


@task(task_id=CANARY_TASK)
@tells_errors(CANARY_TASK)
def canary(flow_name: str) -> dict[str, Any]:
    """Marked records sent through a real run; fails where any is lost, late, doubled, out of order or altered."""
    from twinlog.cluster.copy_order import carry_out_here  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.canary import Canary  # noqa: PLC0415 - as above
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.metrics import canary_samples  # noqa: PLC0415 - as above
    from twinlog.operations.mirror import Mirror  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import most_tasks, spark_session  # noqa: PLC0415 - as above

    reach = TaskReach(flow_name)
    skip_if(_moved(reach))
    flow, ends, place = reach.flow, reach.ends(), spark_place(reach.topology, reach.flow)
    flying = Canary(flow, Mirror(reach.topology, flow, ends, reach.ledger()), ends.source, ends.target)
    if place.address:
        with spark_session(place.address, warm=flow.name, cache=own_folder()) as spark:
            done = flying.fly(functools.partial(copy_on_spark, spark), tasks=most_tasks(spark, flow.lanes))
    else:
        # A job that starts for half a minute would be most of what is measured.
        done = flying.fly(carry_out_here, tasks=1)
    skip_if(done.skipped)
    send(canary_samples(done))
    for note in done.notes:
        log.warning("%s", note)
    result = done.to_json()
    log.info("%s: %s of %s canaries arrived", flow_name, result["arrived"], result["sent"])
    if done.exit_code:
        get_current_context()["ti"].xcom_push(key=RESULT_KEY, value=result)
        faults = ", ".join(f"{count} {fault}" for fault, count in done.verdict.faults.items() if count)
        raise CanaryError(f"{flow_name}: of {result['sent']} canaries in round {done.round}: {faults}")
    return result


@task(task_id=COMPACT_TASK)
@tells_errors(COMPACT_TASK)
def compact(flow_name: str) -> dict[str, Any]:
    """The ledger's files merged, and what both clusters have long dropped removed from it and from the journal."""
    from twinlog.operations.ledger_upkeep import keep_up  # noqa: PLC0415 - brings the Kafka clients

    reach = TaskReach(flow_name)
    skip_if(_moved(reach))
    done = keep_up(reach.flow, reach.access("source"), reach.access("target"), reach.ledger(), keep_days=KEEP_DAYS)
    for note in done.notes:
        log.warning("%s", note)
    return {**asdict(done), "notes": list(done.notes)}


def skip_if(reason: str | None) -> None:
    """End the task as skipped, with the reason in its log, if there is one."""
    from airflow.sdk.exceptions import AirflowSkipException  # noqa: PLC0415 - no matter of parsing a DAG

    if reason is not None:
        log.info("%s", reason)
        raise AirflowSkipException(reason)


def _moved(reach: TaskReach) -> str | None:
    """Why there is nothing to look after any more, if so."""
    from twinlog.operations.migration_evidence import reason_to_stay_away  # noqa: PLC0415 - brings the Kafka clients

    return reason_to_stay_away(reach.flow, reach.ledger())
