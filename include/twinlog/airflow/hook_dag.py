"""The third kind of hook, beside a command and a webhook (see `operations.hooks`): a DAG of the user's own, triggered
once a flow has changed sides, with what the other hooks are told as its conf."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from twinlog.airflow.frame import NO_POOL

if TYPE_CHECKING:
    from airflow.sdk import XComArg

    from twinlog.model.topology import Flow

HOOK_TASK = "hook"
EVENT = "event"
"""Where a task that changes sides leaves in its XComs what hooks are told."""

_LOOK_EVERY_S = 2


def call_after(done: XComArg, flow: Flow) -> None:
    """Put the flow's hook, where it has one, behind the task that changes sides.

    It succeeds when the DAG's run does, and fails where there is no such DAG, or nobody lets it run.
    """
    if flow.hook_dag is None:
        return
    (task,) = (operator.task_id for operator, _ in done.iter_references())
    done >> TriggerDagRunOperator(
        task_id=HOOK_TASK,
        trigger_dag_id=flow.hook_dag,
        conf=f"{{{{ ti.xcom_pull(task_ids='{task}', key='{EVENT}') | tojson }}}}",  # type: ignore[arg-type]
        logical_date=None,
        fail_when_dag_is_paused=True,
        wait_for_completion=True,
        poke_interval=_LOOK_EVERY_S,
        execution_timeout=timedelta(seconds=flow.hook_timeout_seconds),
        pool=NO_POOL,
        retries=0,
    )
