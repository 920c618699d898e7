"""The DAG of every flow by which a cluster is moved for good.

Airflow parses this file every few seconds and before each of its tasks, so it reads one YAML file and imports neither
Spark nor a Kafka client.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import TriggerRule

from twinlog.airflow.approval import Approval, asking_params
from twinlog.airflow.frame import dags_of_flows, flow_dag
from twinlog.airflow.tasks import migrate as tasks

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from twinlog.model.topology import Flow, Topology

MOST_DAYS = 90
ANSWER_WITHIN = timedelta(days=7)
"""What was copied does not grow old while people agree on a time: the flow mirrors on."""


def migrate(topology: Topology, flow: Flow) -> DAG:
    """By hand: its phases, each a task that goes on where it was; a person's yes before the cut-over and after it.

    A phase that is done ends at once, so a run that failed, or that nobody answered, is followed by another one.
    """
    with flow_dag(
        "migrate",
        topology,
        flow,
        summary="Moves the cluster for good: settings, a backfill of all that it holds, mirroring without a seam, "
        "proof, and after somebody's approval the cut-over; after another one, nothing of Twinlog's own is left.",
        run_timeout=timedelta(days=MOST_DAYS),
        params={**tasks.migrate_params(), **asking_params()},
        by_hand=True,
    ) as dag:
        name = flow.name
        phases = tasks.settings(name) >> tasks.backfill(name) >> tasks.live(name) >> tasks.prove(name)
        asked = Approval(flow_name=name, plan_task=tasks.PLAN_TASK, within=ANSWER_WITHIN)
        (
            phases
            >> tasks.plan(name)
            >> asked
            >> tasks.cut_over(name)
            >> tasks.offer(name)
            >> Approval(
                task_id=tasks.APPROVE_CLEAN_UP_TASK,
                flow_name=name,
                plan_task=tasks.OFFER_TASK,
                within=ANSWER_WITHIN,
                always_asks=True,
                trigger_rule=TriggerRule.NONE_FAILED,
            )
            >> tasks.clean_up(name)
        )
    return dag


globals().update(dags_of_flows(migrate=migrate))
