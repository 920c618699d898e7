"""The DAGs of every flow by which its target takes the source's place.

Airflow parses this file every few seconds and before each of its tasks, so it reads one YAML file and imports neither
Spark nor a Kafka client.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from twinlog.airflow.approval import ANSWER_WITHIN, Approval, asking_params
from twinlog.airflow.frame import CONTINUOUS, dags_of_flows, flow_dag
from twinlog.airflow.hook_dag import call_after
from twinlog.airflow.takeover_form import failover_params, switchover_params
from twinlog.airflow.tasks import failover as failover_tasks
from twinlog.airflow.tasks import switchover as switchover_tasks

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from twinlog.model.topology import Flow, Topology


def failover(topology: Topology, flow: Flow) -> DAG:
    """By hand: the plan, somebody's yes, and then its steps."""
    with flow_dag(
        "failover",
        topology,
        flow,
        summary="The target takes the source's place; the source may be gone. Groups go on there, topics are promoted, "
        "hooks are called. Changes nothing before somebody has approved its plan.",
        run_timeout=ANSWER_WITHIN + timedelta(hours=1),
        params={**failover_params(), **asking_params()},
        by_hand=True,
    ) as dag:
        asked = Approval(flow_name=flow.name, plan_task=failover_tasks.PLAN_TASK)
        done = failover_tasks.carry_out(flow.name)
        failover_tasks.plan(flow.name) >> asked >> done
        call_after(done, flow)
    return dag


def switchover(topology: Topology, flow: Flow) -> DAG:
    """By hand: the plan, somebody's yes, everything copied and proven, and then the steps of a failover."""
    with flow_dag(
        "switchover",
        topology,
        flow,
        summary="The target takes the source's place while the source is alive: everything is copied and proven first, "
        "so that nothing is lost and nothing read again. Changes nothing before somebody has approved its plan.",
        run_timeout=ANSWER_WITHIN + timedelta(hours=12),
        params={**switchover_params(), **asking_params()},
        by_hand=True,
    ) as dag:
        asked = Approval(flow_name=flow.name, plan_task=switchover_tasks.PLAN_TASK)
        done = switchover_tasks.carry_out(flow.name)
        switchover_tasks.plan(flow.name) >> asked >> done
        call_after(done, flow)
    return dag


def watch(topology: Topology, flow: Flow) -> DAG | None:
    """A failover that begins by itself, where the flow wants that."""
    if not flow.failover_automatic:
        return None
    with flow_dag(
        "watch",
        topology,
        flow,
        summary="Asks every probe whether the source is alive, again and again, and fails over once all have found it "
        "gone for as long as the flow says.",
        schedule=CONTINUOUS,
        # No run ends while the probes agree: how long they must is the flow's to say.
        run_timeout=timedelta(hours=2, seconds=2 * flow.failover_automatic_after_seconds),
    ) as dag:
        call_after(failover_tasks.watch(flow.name), flow)
    return dag


globals().update(dags_of_flows(failover=failover, switchover=switchover, watch=watch))
