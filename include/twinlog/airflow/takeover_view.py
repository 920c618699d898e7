"""A takeover as Airflow keeps and shows it: its plan as a result that fits a database and as a question to a person,
and what came of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from twinlog.airflow.approval import table
from twinlog.airflow.tasks.mirror import LISTED_AT_MOST

if TYPE_CHECKING:
    from twinlog.model.takeover import TakeoverPlan
    from twinlog.operations.takeover_result import TakeoverResult

_LISTS = ("left_out", "losses", "settings", "acls", "differences", "promoted", "notes")


def shown_plan(plan: TakeoverPlan, kept_at: str) -> dict[str, Any]:
    """The plan, cut to what can be shown, and how much there is of each; all of it is kept at `kept_at`."""
    cut: dict[str, Any] = {name: getattr(plan, name)[:LISTED_AT_MOST] for name in _LISTS}
    short = replace(
        plan,
        rows=plan.rows[:LISTED_AT_MOST],
        topics=dict(islice(plan.topics.items(), LISTED_AT_MOST)),
        registry={},
        **cut,
    )
    return {
        **short.to_json(),
        "plan_total": len(plan.rows),
        "topics_total": len(plan.topics),
        **{f"{name}_total": len(getattr(plan, name)) for name in _LISTS},
        "groups": plan.groups,
        "registry": {name: value for name, value in plan.registry.items() if not isinstance(value, list | dict)},
        "steps": list(plan.sentences),
        "kept_at": kept_at,
    }


def shown_result(result: TakeoverResult, kept_at: str) -> dict[str, Any]:
    """What came of it, cut in the same way."""
    plan = result.plan
    short = replace(
        plan, rows=(), left_out=(), losses=(), settings=(), acls=(), differences=(), promoted=(), topics={}, notes=()
    )
    done = replace(result, plan=short).to_json()
    return {
        **shown_plan(plan, kept_at),
        **{name: done[name] for name in ("done", "groups_moved", "offsets_committed", "failures", "hooks", "seconds")},
        "left_out": [row._asdict() for row in result.left_out[:LISTED_AT_MOST]],
        "left_out_total": len(result.left_out),
        "objectives": done["objectives"],
    }


def question(plan: TakeoverPlan, kept_at: str, csv_at: str) -> str:
    """What a person reads before a yes, in Markdown."""
    from twinlog.model.takeover_report import tables  # noqa: PLC0415 - no matter of parsing a DAG

    parts = ["\n".join(plan.sentences), _lost(plan)]
    parts += [plan.provisional] if plan.provisional else []
    parts.append(f"Clients find {plan.target} at `{plan.bootstrap_servers}`.")
    parts += [f"{found.title}:\n\n{table(found.columns, found.rows)}" for found in tables(plan, LISTED_AT_MOST)]
    parts += ["\n".join(f"- {note}" for note in plan.notes[:LISTED_AT_MOST])] if plan.notes else []
    parts.append(f"The whole plan: `{kept_at}`; for `kafka-consumer-groups --reset-offsets --from-file`: `{csv_at}`.")
    return "\n\n".join(parts)


def _lost(plan: TakeoverPlan) -> str:
    records = "an unknown number of" if plan.lost_records is None else f"{plan.lost_records:,}"
    seconds = "" if plan.lost_seconds is None else f", {plan.lost_seconds:,.1f} s at most"
    verb = "Not copied yet" if plan.kind == "switchover" else "Lost"
    return f"{verb}: {records} records{seconds} ({plan.lost_note})."
