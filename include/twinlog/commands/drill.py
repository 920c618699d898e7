"""`twinlog drill FLOW`: a failover rehearsed on shadow groups, which touches nothing of production."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands.arguments import positive, seconds
from twinlog.commands.console import Console, table
from twinlog.commands.flow_context import FlowContext

if TYPE_CHECKING:
    from twinlog.operations.drill import DrillResult

LISTED = 20


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("drill", parents=[common], help="rehearse a failover without touching production")
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument("--groups", metavar="RE", help="only groups of these names")
    parser.add_argument("--groups-at-most", metavar="N", type=positive, default=20, help="rehearse no more groups (20)")
    parser.add_argument(
        "--records", metavar="N", type=positive, default=100, help="read so many records of each partition (100)"
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=120.0, help="how long consumers may take (120)"
    )
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.drill import Drill, DrillLimits  # noqa: PLC0415 - keeps --help quick

    context = FlowContext(asked)
    limits = DrillLimits(asked.groups, asked.groups_at_most, asked.records, asked.timeout)
    ends = context.access("source"), context.access("target")
    result = Drill(context.topology, context.flow, *ends, context.ledger()).run(limits)
    console.result(_lines(result), result.to_json())
    for sentence in (*result.notes, *result.missed):
        console.note(f"twinlog: {sentence}")
    return result.exit_code


def _lines(result: DrillResult) -> Iterator[str]:
    took = "not every group could read" if result.recovery_time_s is None else f"{result.recovery_time_s:.1f} s"
    point = "unknown" if result.recovery_point_s is None else f"{result.recovery_point_s:.1f} s"
    yield f"{result.flow}: recovery time {took}, recovery point {point}"
    yield (
        f"  {result.records:,} records read and held against the ledger, {result.compared:,} against the source too: "
        f"{len(result.faults):,} faults"
    )
    rows = [["GROUP", "PARTITIONS", "RECORDS", "READY AFTER", "FAULTS"]]
    rows += [
        [
            row["group"],
            str(row["partitions"]),
            f"{row['records']:,}",
            "never" if row["ready_s"] is None else f"{row['ready_s']:.1f} s",
            str(row["faults"]),
        ]
        for row in result.groups
    ]
    if len(rows) > 1:
        yield from table(rows)
    for fault in result.faults[:LISTED]:
        yield f"  {fault.what}: group {fault.group}, {fault.topic}-{fault.partition} offset {fault.offset}"
