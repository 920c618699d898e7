"""`twinlog checkpoint FLOW`: where every group goes on, on the target, written there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands.console import Console, table
from twinlog.commands.flow_context import FlowContext

if TYPE_CHECKING:
    from twinlog.operations.checkpoint import CheckpointResult


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser(
        "checkpoint", parents=[common], help="translate the positions of consumer groups and write them to the target"
    )
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be written")
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.checkpoint import Checkpointing  # noqa: PLC0415 - brings the Kafka clients

    context = FlowContext(asked)
    ends = context.access("source"), context.access("target")
    result = Checkpointing(context.topology, context.flow, *ends, context.ledger()).run(dry_run=asked.dry_run)
    console.result(_lines(result), result.to_json())
    for sentence in (*result.standings.notes, *result.failures):
        console.note(f"twinlog: {sentence}")
    return 1 if result.failures else 0


def _lines(result: CheckpointResult) -> Iterator[str]:
    if result.skipped is not None:
        yield result.skipped
        return
    found = result.standings
    written = "to be written" if result.dry_run else "written"
    yield (
        f"{result.flow}: {len(found.groups):,} groups, {found.ready:,} of them ready; {result.records:,} checkpoints "
        f"and {result.commits:,} offsets {written} in {result.seconds:.1f} s"
    )
    if found.filtered:
        yield f"  not taken by the flow: {found.filtered:,} groups"
    if found.left_out:
        rows = [["GROUP", "PARTITIONS", "BEHIND", "REASON"]]
        rows += [
            [str(row["group"]), str(row["partitions"]), _number(row["behind"]), str(row["reason"])]
            for row in found.left_out
        ]
        yield from table(rows)


def _number(value: object) -> str:
    return "" if value is None else f"{value:,}"
