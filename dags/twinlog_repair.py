"""One DAG a flow that puts right what the last reconciliation has found: by hand, with a form and somebody's yes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from twinlog.airflow.approval import ANSWER_WITHIN, Approval, asking_params
from twinlog.airflow.frame import dags_of_flows, flow_dag
from twinlog.airflow.tasks import repair as tasks

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from twinlog.model.topology import Flow, Topology


def repair(topology: Topology, flow: Flow) -> DAG:
    """The plan, somebody's yes, and then its steps."""
    with flow_dag(
        "repair",
        topology,
        flow,
        summary="Puts right what the last reconciliation has found: settings and permissions, the ledger, topics whose "
        "records differ. Changes nothing before somebody has approved its plan.",
        run_timeout=ANSWER_WITHIN + timedelta(hours=24),
        params={**tasks.repair_params(), **asking_params()},
        by_hand=True,
    ) as dag:
        asked = Approval(flow_name=flow.name, plan_task=tasks.PLAN_TASK)
        tasks.plan(flow.name) >> asked >> tasks.carry_out(flow.name)
    return dag


globals().update(dags_of_flows(repair=repair))
