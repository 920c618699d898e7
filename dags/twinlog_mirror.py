"""The mirror DAG of every flow in the topology: what is new is copied on Spark, recorded and checkpointed; and the one
by which people pause, resume and drain the flow.

Airflow parses this file every few seconds and before each of its tasks, so it reads one YAML file and imports neither
Spark nor a Kafka client.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from twinlog.airflow.copying import CopyOperator
from twinlog.airflow.frame import dags_of_flows, flow_dag
from twinlog.airflow.lineage import outlets
from twinlog.airflow.params import run_params
from twinlog.airflow.tasks.control import MOST_WAIT_SECONDS, control_params
from twinlog.airflow.tasks.control import control as act
from twinlog.airflow.tasks.mirror import COPY_TASK, checkpoint, end, plan, record

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from twinlog.model.topology import Flow, Topology


def mirror(topology: Topology, flow: Flow) -> DAG:
    """plan -> copy -> record -> checkpoint -> end.

    A copy that failed fails the run, by way of its end. What was copied is recorded and the groups' positions are
    written all the same: a partition that can't be copied holds up none of the others.
    """
    copying = timedelta(seconds=flow.budget_seconds)
    with flow_dag(
        "mirror",
        topology,
        flow,
        summary="Copies what is new on the source to the target, exactly once, and records which offset became which.",
        schedule=flow.schedule,
        run_timeout=3 * copying + timedelta(hours=1),
        params=run_params(flow),
    ) as dag:
        planned = plan(flow.name)
        copied = CopyOperator(
            task_id=COPY_TASK,
            flow_name=flow.name,
            execution_timeout=copying + timedelta(minutes=15),
            retry_delay=timedelta(seconds=10),
        )
        recorded = record.override(outlets=outlets(flow))(flow.name)
        checked = checkpoint(flow.name)
        planned >> copied >> recorded >> checked
        planned >> recorded
        [copied, checked] >> end()
    return dag


def control(topology: Topology, flow: Flow) -> DAG:
    """A person's hand on the flow."""
    with flow_dag(
        "control",
        topology,
        flow,
        summary="Pauses, resumes or drains the flow, for every scheduler: its state is kept on the target.",
        run_timeout=timedelta(seconds=MOST_WAIT_SECONDS) + timedelta(minutes=10),
        params=control_params(),
        by_hand=True,
    ) as dag:
        act(flow.name)
    return dag


globals().update(dags_of_flows(mirror=mirror, control=control))
