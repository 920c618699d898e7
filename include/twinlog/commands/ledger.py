"""`twinlog ledger rebuild FLOW`: the ledger made anew from the journal; `ledger compact FLOW`: both kept small; `ledger
floors FLOW`: what a Spark job that compacts the files must know."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from typing import Any

from twinlog.commands.console import Console, table
from twinlog.commands.flow_context import FlowContext

KEEP_DAYS = 30.0


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("ledger", help="look after a flow's ledger")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    rebuild = actions.add_parser("rebuild", parents=[common], help="make the ledger anew from the journal")
    rebuild.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    rebuild.set_defaults(run=run_rebuild)
    compact = actions.add_parser(
        "compact", parents=[common], help="merge the ledger's files, and drop what both clusters have dropped"
    )
    compact.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    compact.add_argument(
        "--keep-days",
        metavar="N",
        type=_days,
        default=KEEP_DAYS,
        help=f"drop nothing that was copied in the last N days (default {KEEP_DAYS:g})",
    )
    compact.add_argument("--all", action="store_true", help="write files anew that are large already, too")
    compact.set_defaults(run=run_compact)
    floors = actions.add_parser(
        "floors", parents=[common], help="where both logs start, as spark_jobs/compact_ledger.py takes it (with --json)"
    )
    floors.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    floors.set_defaults(run=run_floors)


def run_rebuild(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.recording import rebuild_ledger  # noqa: PLC0415 - keeps --help quick

    context = FlowContext(asked)
    done = rebuild_ledger(context.ledger(), context.flow, context.access("target"))
    console.result(
        [f"{context.flow.name}: {done.rows:,} segments from the journal, {done.rows_before:,} before"],
        {"flow": context.flow.name, "rows": done.rows, "rows_before": done.rows_before},
    )
    return 0


def run_compact(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.ledger_upkeep import keep_up  # noqa: PLC0415 - keeps --help quick

    context = FlowContext(asked)
    done = keep_up(
        context.flow,
        context.access("source"),
        context.access("target"),
        context.ledger(),
        keep_days=asked.keep_days,
        everything=asked.all,
    )
    console.result(
        [
            f"{done.flow}: {done.files_merged:,} files merged, {done.rows_before:,} segments before and "
            f"{done.rows_after:,} now, {done.journal_entries_removed:,} entries removed from the journal"
        ],
        {**asdict(done), "notes": list(done.notes)},
    )
    for note in done.notes:
        console.note(f"twinlog: {note}")
    return 0


def run_floors(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.ledger_upkeep import floors_of  # noqa: PLC0415 - keeps --help quick

    context = FlowContext(asked)
    found, notes = floors_of(context.flow, context.access("source"), context.access("target"), context.ledger())
    rows = [
        {
            "source_topic": floor.pair.source_topic,
            "source_topic_id": str(floor.pair.source_topic_id),
            "target_topic": floor.pair.target_topic,
            "target_topic_id": str(floor.pair.target_topic_id),
            "partition": floor.pair.partition,
            "source_start": floor.source_start,
            "target_start": floor.target_start,
        }
        for floor in found
    ]
    headings = ("source_topic", "target_topic", "partition", "source_start", "target_start")
    lines = [[heading.upper() for heading in headings]]
    lines += [[str(row[heading]) for heading in headings] for row in rows]
    console.result(table(lines), {"flow": context.flow.name, "floors": rows})
    for note in notes:
        console.note(f"twinlog: {note}")
    return 0


def _days(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of days from 0 on, not {text!r}")
    return number
