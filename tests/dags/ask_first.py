"""A DAG as those of takeovers are: a plan, a person's approval, and what is done by it. For tests of a real Airflow."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context, task

from twinlog.airflow.approval import ANSWER_WITHIN, Approval, approved_by, asking_params, table, with_question
from twinlog.airflow.frame import dags_of_flows, flow_dag

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from twinlog.model.topology import Flow, Topology


@task
def plan(flow_name: str) -> dict[str, Any]:
    body = table(("group", "unread"), [("billing", 3)])
    return with_question({"flow": flow_name, "groups": 1}, f"Take {flow_name} over?", body)


@task
def carry_out() -> dict[str, Any]:
    context = get_current_context()
    return {"groups": context["ti"].xcom_pull(task_ids="plan")["groups"], "approved_by": approved_by(context)}


def ask(topology: Topology, flow: Flow) -> DAG | None:
    if flow.target != "asked":
        return None
    with flow_dag(
        "ask",
        topology,
        flow,
        summary="Asks somebody before it does nothing.",
        run_timeout=ANSWER_WITHIN + timedelta(minutes=10),
        params=asking_params(),
        by_hand=True,
    ) as dag:
        plan(flow.name) >> Approval(flow_name=flow.name, plan_task="plan") >> carry_out()
    return dag


globals().update(dags_of_flows(ask=ask))
