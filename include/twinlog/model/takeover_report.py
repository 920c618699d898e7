"""A plan of a takeover as tables for people: on a terminal, and in Airflow before they approve it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twinlog.model.takeover import GroupStart, TakeoverPlan

MOST_ROWS = 100
"""Of groups and partitions; of more than that, groups alone."""


@dataclass(frozen=True)
class Table:
    """One table; a cell is None where it is not known."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def groups_table(plan: TakeoverPlan, most: int = MOST_ROWS) -> Table:
    """Where each group goes on, partition by partition; or, where those are more than `most`, a row a group."""
    if len(plan.rows) <= most:
        columns = ("group", "topic", "partition", "offset", "how", "unread")
        rows = [(row.group, row.topic, row.partition, row.offset, row.how, row.unread) for row in plan.rows]
        return Table("Groups", columns, tuple(rows))
    by_group: dict[str, list[GroupStart]] = {}
    for row in plan.rows:
        by_group.setdefault(row.group, []).append(row)
    return Table(
        "Groups",
        ("group", "partitions", "how", "unread"),
        tuple((name, len(found), _how(found), _unread(found)) for name, found in sorted(by_group.items())),
    )


def tables(plan: TakeoverPlan, most: int = MOST_ROWS) -> Iterator[Table]:
    """Every table of the plan that has rows, the groups' first."""
    found = (
        groups_table(plan, most),
        Table(
            "Left out",
            ("group", "topic", "partition", "why", "offsets behind"),
            tuple((one.group, one.topic, one.partition, one.reason, one.behind) for one in plan.left_out),
        ),
        Table(
            "Lost",
            ("topic", "records", "seconds, at most"),
            tuple((loss.topic, loss.records, loss.seconds) for loss in plan.losses),
        ),
        Table("Other names for clients", (plan.source, plan.target), tuple(sorted(plan.names_changed.items()))),
        Table(
            "Settings that are put back",
            ("topic", "setting", "now", "then"),
            tuple(
                (change.topic, change.name, change.before or "the default", change.after or "the default")
                for change in plan.settings
            ),
        ),
        Table(
            "Permissions that are granted",
            ("principal", "operation", "on"),
            tuple((acl.principal, acl.operation, acl.resource) for acl in plan.acls),
        ),
        Table(
            "Differences, which stay",
            ("what", "on", "name", plan.target, plan.source),
            tuple(
                (change.kind, change.resource, change.name, change.before, change.after) for change in plan.differences
            ),
        ),
    )
    return (table for table in found if table.rows)


def _how(rows: list[GroupStart]) -> str:
    return ", ".join(sorted({row.how for row in rows}))


def _unread(rows: list[GroupStart]) -> int | None:
    known = [row.unread for row in rows if row.unread is not None]
    return sum(known) if len(known) == len(rows) else None
