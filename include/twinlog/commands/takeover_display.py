"""A plan of a takeover, and what came of it, as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinlog.commands.console import table
from twinlog.commands.words import behind
from twinlog.model.takeover_report import MOST_ROWS, groups_table

if TYPE_CHECKING:
    from twinlog.model.takeover import TakeoverPlan
    from twinlog.operations.takeover_result import TakeoverResult


def plan_lines(plan: TakeoverPlan, kept_at: str) -> Iterator[str]:
    """The whole plan."""
    yield f"{plan.kind} of {plan.flow}, plan {plan.id}, kept in {kept_at}"
    if plan.provisional is not None:
        yield plan.provisional
    yield ""
    yield from _groups(plan)
    yield from _left_out(plan)
    yield ""
    yield f"lost: {behind(plan.lost_records, plan.lost_seconds)} ({plan.lost_note})"
    for loss in plan.losses[:MOST_ROWS]:
        yield f"  {loss.topic}: {behind(loss.records, loss.seconds)}"
    yield f"clients find {plan.target} at {plan.bootstrap_servers}"
    renamed = plan.names_changed
    for name, twin in list(renamed.items())[:MOST_ROWS]:
        yield f"  {name} is {twin} there"
    for change in plan.settings[:MOST_ROWS]:
        after = "the default" if change.after is None else change.after
        yield f"  {change.topic}: {change.name} {change.before or 'the default'} -> {after}"
    for one in plan.differences[:MOST_ROWS]:
        yield f"  differs: {one.resource}: {one.name} {one.before or 'none'}, on {plan.source} {one.after or 'none'}"
    for acl in plan.acls[:MOST_ROWS]:
        yield f"  grant {acl.principal} {acl.operation} on {acl.resource}"
    yield ""
    yield from plan.sentences


def _groups(plan: TakeoverPlan) -> Iterator[str]:
    if not plan.rows:
        yield "no group is moved"
        return
    found = groups_table(plan, MOST_ROWS)
    header = [column.upper() for column in found.columns]
    yield from table([header, *([_cell(value) for value in row] for row in found.rows[:MOST_ROWS])])
    if len(found.rows) > MOST_ROWS:
        yield f"and {len(found.rows) - MOST_ROWS:,} groups more"


def _left_out(plan: TakeoverPlan) -> Iterator[str]:
    for row in plan.left_out[:MOST_ROWS]:
        where = "" if row.topic is None else f" {row.topic}-{row.partition}"
        by = "" if row.behind is None else f", by {row.behind:,} offsets"
        yield f"left out: {row.group}{where}: {row.reason}{by}"
    if len(plan.left_out) > MOST_ROWS:
        yield f"and {len(plan.left_out) - MOST_ROWS:,} more are left out"


def _cell(value: object) -> str:
    return "unknown" if value is None else str(value)


def result_lines(result: TakeoverResult) -> Iterator[str]:
    """What was done."""
    for done in result.steps:
        yield f"{int(done.step)}. {done.said} ({done.seconds:.1f} s)"
    for row in result.moved.left_out[:MOST_ROWS]:
        yield f"left out: {row.group} {row.topic}-{row.partition}: {row.reason}"
    yield (
        f"{result.plan.flow}: {result.moved.groups:,} groups are ready on {result.plan.target} "
        f"({result.plan.bootstrap_servers}), {result.seconds:.1f} s; lost: "
        f"{behind(result.plan.lost_records, result.plan.lost_seconds)}"
    )
    yield from result.missed
