"""The DAGs of every flow by which its source comes back into its place, and by which a failover is rehearsed.

Airflow parses this file every few seconds and before each of its tasks, so it reads one YAML file and imports neither
Spark nor a Kafka client.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from twinlog.airflow.approval import ANSWER_WITHIN, Approval, asking_params
from twinlog.airflow.frame import dags_of_flows, flow_dag
from twinlog.airflow.hook_dag import call_after
from twinlog.airflow.tasks import failback as tasks

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from twinlog.model.topology import Flow, Topology


def failback(topology: Topology, flow: Flow) -> DAG:
    """By hand: the plan, somebody's yes, and then its steps."""
    with flow_dag(
        "failback",
        topology,
        flow,
        summary="Returns home once the source is back: what was written on the target goes home, groups go on, and the "
        "flow is active again. Changes nothing before somebody has approved its plan.",
        run_timeout=ANSWER_WITHIN + timedelta(hours=24),
        params={**tasks.failback_params(), **asking_params()},
        by_hand=True,
    ) as dag:
        asked = Approval(flow_name=flow.name, plan_task=tasks.PLAN_TASK)
        done = tasks.carry_out(flow.name)
        tasks.plan(flow.name) >> asked >> done
        call_after(done, flow)
    return dag


def drill(topology: Topology, flow: Flow) -> DAG:
    """A failover rehearsed, as often as the flow says."""
    with flow_dag(
        "drill",
        topology,
        flow,
        summary="Rehearses a failover on shadow groups and checks every record that they read; touches nothing of "
        "production. Fails where a record is wrong or an objective is missed.",
        schedule=flow.drill_schedule,
        run_timeout=timedelta(hours=1),
        by_hand=flow.drill_schedule is None,
    ) as dag:
        tasks.drill(flow.name)
    return dag


globals().update(dags_of_flows(failback=failback, drill=drill))
