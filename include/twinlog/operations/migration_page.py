"""A migration's report as a page that needs nothing but a browser: no script, and nothing that is fetched."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.ledger.schema import GAP_COLUMNS
from twinlog.operations.migration_evidence import totals

LISTED = 1_000
"""Rows of a table; the Parquet file beside the page has all."""

_STYLE = """
:root { color-scheme: light dark; --good: #2e7d32; --bad: #c62828; --open: #78909c; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { border-left: .5rem solid var(--tone); padding-left: .75rem; font-size: 1.6rem; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.line { display: inline-block; min-width: 18rem; border-bottom: 1px solid; margin-right: 2rem; }
"""


def page(flow: str, said: Mapping[str, Any], topics: pa.Table, groups: pa.Table, acls: pa.Table) -> str:
    """The whole page."""
    verdict = said.get("verdict")
    tone = {"equal": "var(--good)", None: "var(--open)"}.get(verdict, "var(--bad)")
    answer = "not proven yet" if verdict is None else f"the two clusters are {verdict}"
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>Migration {escape(flow)}</title>',
            f"<style>{_STYLE}</style></head><body style='--tone: {tone}'>",
            f"<h1>Migration of {escape(flow)}: {escape(answer)}</h1>",
            *_summary(said, topics, acls),
            *_phases(said),
            *_topics(topics),
            *_left_out(topics, said),
            *_groups(groups, said),
            *_acls(acls),
            *_removed(said),
            *_signed(said),
            "</body></html>",
        ]
    )


def _summary(said: Mapping[str, Any], topics: pa.Table, acls: pa.Table) -> Iterator[str]:
    sums = totals(topics)
    yield (
        f"<p>{sums['topics']:,} topics with {sums['partitions']:,} partitions, {sums['records']:,} records, "
        f"{sums['bytes'] / 1e6:,.1f} MB, {acls.num_rows:,} permissions. Migration {escape(said['migration'])}.</p>"
    )
    gaps = {kind.value: sums[column] for kind, column in GAP_COLUMNS.items() if sums[column]}
    if gaps:
        words = ", ".join(f"{offsets:,} {kind}" for kind, offsets in gaps.items())
        yield f"<p>Offsets of the source without a record on the target: {escape(words)}.</p>"
    if said.get("verdict_sentence"):
        where = said.get("verdict_report")
        more = f' (<a href="{escape(where)}">its report</a>)' if where else ""
        yield f"<p>{escape(said['verdict_sentence'])}{more}</p>"


def _phases(said: Mapping[str, Any]) -> Iterator[str]:
    rows = [(one["phase"], _when(one["at_ms"]), one["said"]) for one in said["phases"]]
    yield from _table("What was done", ("Phase", "Done", "What"), rows)


def _topics(topics: pa.Table) -> Iterator[str]:
    rows = [
        (
            row["topic"],
            row["twin"],
            row["partitions"],
            row["records"],
            row["bytes"],
            ", ".join(f"{row[column]:,} {kind}" for kind, column in GAP_COLUMNS.items() if row[column]),
            ", ".join(f"{name}={value}" for name, value in json.loads(row["settings"]).items()),
        )
        for row in topics.to_pylist()
        if row["twin"] is not None
    ]
    head = ("Topic", "On the target", "Partitions", "Records", "Bytes", "Offsets without a record", "Settings")
    yield from _table("Topics", head, rows)


def _left_out(topics: pa.Table, said: Mapping[str, Any]) -> Iterator[str]:
    rows = [(row["topic"], row["left_out"]) for row in topics.to_pylist() if row["left_out"] is not None]
    rows += [("", note) for note in said["notes"]]
    yield from _table("What was left out, and what there is to know", ("Topic", "Why"), rows)


def _groups(groups: pa.Table, said: Mapping[str, Any]) -> Iterator[str]:
    title = "Consumer groups at the cut-over"
    if said.get("plan"):
        title += f", by the plan {said['plan']}"
    rows = [tuple(row[name] for name in groups.column_names) for row in groups.to_pylist()]
    head = ("Group", "Topic", "Partition", "Offset", "How", "Unread", "Left out")
    yield from _table(title, head, rows)


def _acls(acls: pa.Table) -> Iterator[str]:
    rows = [tuple(row[name] for name in acls.column_names) for row in acls.to_pylist()]
    yield from _table("Permissions", ("Resource", "Name", "Pattern", "Who", "Host", "Operation", "Permission"), rows)


def _removed(said: Mapping[str, Any]) -> Iterator[str]:
    yield from _table("Removed by the clean-up", ("What",), [(what,) for what in said.get("removed", ())])
    yield from _table("Left by the clean-up", ("What",), [(what,) for what in said.get("left", ())])


def _signed(said: Mapping[str, Any]) -> Iterator[str]:
    at_ms = said.get("approved_at_ms")
    yield "<h2>Sign-off</h2>"
    if at_ms is not None:
        by = said.get("approved_by") or "whoever started it"
        yield f"<p>The cut-over was approved by {escape(by)} at {_when(at_ms)}.</p>"
    yield '<p>Name <span class="line">&nbsp;</span> Date <span class="line">&nbsp;</span></p>'


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    if not rows:
        return
    yield f"<h2>{escape(title)}</h2><table><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>"
    for row in rows[:LISTED]:
        yield f"<tr>{''.join(_cells(row))}</tr>"
    yield "</table>"
    if len(rows) > LISTED:
        yield f"<p>{len(rows) - LISTED:,} more are in the table beside this page.</p>"


def _cells(row: Iterable[object]) -> Iterator[str]:
    for value in row:
        if isinstance(value, int):
            yield f"<td class=number>{value:,}</td>"
        else:
            yield f"<td>{escape('' if value is None else str(value))}</td>"


def _when(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_ms / 1000))
