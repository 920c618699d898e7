"""A hook of somebody's own, as `hook.dag` names it: it gets what has happened as its conf. For tests of a real
Airflow."""

from __future__ import annotations

from typing import Any

from airflow.sdk import dag, get_current_context, task


@dag(schedule=None, is_paused_upon_creation=False)
def move_dns() -> None:
    @task
    def told() -> dict[str, Any]:
        return dict(get_current_context()["dag_run"].conf or {})

    told()


move_dns()
