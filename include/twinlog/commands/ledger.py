"""`twinlog ledger rebuild FLOW`: the ledger made anew from the journal."""

from __future__ import annotations

import argparse
from typing import Any

from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("ledger", help="look after a flow's ledger")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    rebuild = actions.add_parser("rebuild", parents=[common], help="make the ledger anew from the journal")
    rebuild.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    rebuild.set_defaults(run=run_rebuild)


def run_rebuild(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.recording import rebuild_ledger  # noqa: PLC0415 - keeps --help quick

    context = FlowContext(asked)
    done = rebuild_ledger(context.ledger(), context.flow, context.access("target"))
    console.result(
        [f"{context.flow.name}: {done.rows:,} segments from the journal, {done.rows_before:,} before"],
        {"flow": context.flow.name, "rows": done.rows, "rows_before": done.rows_before},
    )
    return 0
