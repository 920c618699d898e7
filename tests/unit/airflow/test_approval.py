from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, task
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import DownstreamTasksSkipped, TaskAwaitingInput

from twinlog.airflow.approval import (
    APPROVE_TASK,
    MOST_ROWS,
    Approval,
    approved_by,
    asking_params,
    table,
    with_question,
)

PLAN = with_question({"groups": 3}, "Fail nyc->lon over?", "3 groups, {{ no template }}")


class Task:
    """What a task sees of its instance: results of others by their ids."""

    id = "0190-ti"
    map_index = -1
    log_url = "http://airflow/task"

    def __init__(self, **results: Any) -> None:
        self._results = results

    def xcom_pull(self, task_ids: str) -> Any:
        return self._results.get(task_ids)

    def xcom_push(self, key: str, value: Any) -> None:
        self._results[key] = value


@pytest.fixture
def approval(monkeypatch: pytest.MonkeyPatch) -> Approval:
    monkeypatch.setattr(ExecutorSafeguard, "test_mode", True)
    with DAG("failover__nyc_to_lon", params=asking_params()):

        @task
        def plan() -> None: ...

        @task(trigger_rule="all_done")
        def carry_out() -> None: ...

        asked = Approval(flow_name="nyc->lon", plan_task="plan", within=timedelta(minutes=5))
        plan() >> asked >> carry_out()
    return asked


def context(approval: Approval, **params: Any) -> Any:
    return {
        "ti": (ti := Task(plan=PLAN)),
        "task_instance": ti,
        "task": approval,
        "params": params,
        "dag_run": SimpleNamespace(run_id="r"),
    }


def answer(option: str) -> dict[str, Any]:
    return {
        "chosen_options": [option],
        "params_input": {},
        "responded_at": datetime(2026, 1, 1, tzinfo=UTC),
        "responded_by_user": {"id": "1", "name": "ada"},
    }


def test_it_asks_what_the_plan_says_and_takes_no_answer_for_no(
    approval: Approval, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **it: asked.update(it))
    told: list[Any] = []
    approval.notifiers = [told.append]
    approval.render_template_fields(context(approval))
    with pytest.raises(TaskAwaitingInput) as waiting:
        approval.execute(context(approval, without_asking=False))
    assert (asked["subject"], asked["body"]) == ("Fail nyc->lon over?", "3 groups, {{ no template }}")
    assert (asked["options"], asked["defaults"]) == (["Approve", "Reject"], ["Reject"])
    assert waiting.value.timeout == timedelta(minutes=5)
    assert len(told) == 1
    assert approval.pool == "default_pool"


def test_whoever_has_approved_by_starting_it_is_not_asked(approval: Approval) -> None:
    assert approval.execute(context(approval, without_asking=True)) is None


def test_what_always_asks_asks_whoever_started_it_too(approval: Approval, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HITLOperator, "execute", lambda *_: "asked")
    with DAG("migrate__nyc_to_lon", params=asking_params()):
        asked = Approval(flow_name="nyc->lon", plan_task="offer", task_id="again", always_asks=True)
    assert approval.execute(context(approval, without_asking=True)) is None
    assert asked.execute(context(asked, without_asking=True)) == "asked"


def test_after_a_no_nothing_behind_runs_whatever_its_trigger_rule(approval: Approval) -> None:
    with pytest.raises(DownstreamTasksSkipped) as skipped:
        approval.execute_complete(context(approval), answer("Reject"))
    assert set(skipped.value.tasks) == {"carry_out"}


def test_after_a_yes_it_is_known_who_said_it(approval: Approval) -> None:
    given = approval.execute_complete(context(approval), answer("Approve"))
    assert approved_by({"ti": Task(**{APPROVE_TASK: given})}) == "ada"  # type: ignore[typeddict-item]
    assert approved_by({"ti": Task()}) is None  # type: ignore[typeddict-item]


def test_a_table_is_cut_and_says_so() -> None:
    rows = [(f"g{number}|x", None) for number in range(MOST_ROWS + 2)]
    lines = table(("group", "unread"), rows).splitlines()
    assert lines[:3] == ["| group | unread |", "| --- | --- |", "| g0\\|x |  |"]
    assert lines[-2:] == ["", "and 2 more"]
