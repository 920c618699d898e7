"""`twinlog reconcile FLOW`: both logs compared by the ledger; exit 1 where they differ."""

from __future__ import annotations

import argparse
import functools
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands import metrics
from twinlog.commands.arguments import moment, pattern
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext

if TYPE_CHECKING:
    from twinlog.model.reconciliation import Difference
    from twinlog.operations.reconcile_result import Reconciliation

LISTED = 50


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("reconcile", parents=[common], help="prove the twin equal, or say which offsets differ")
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=moment,
        help="only what was copied since (2026-01-31T12:00:00Z, or milliseconds); else what is new and a share of the "
        "rest",
    )
    parser.add_argument("--topics", metavar="RE", type=pattern, help="only source topics whose name this matches")
    parser.add_argument("--full", action="store_true", help="everything that both logs still hold")
    parser.add_argument("--deep", action="store_true", help="record by record, not only by digest")
    parser.add_argument("--rate", metavar="MB/s", type=_rate, help="read no more than this from each cluster")
    metrics.add_option(parser)
    parser.set_defaults(run=run)


@metrics.tells_errors
def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.metrics import reconcile_samples  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.prove_on_spark import prove_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.reconcile import Reconciling, Scope  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import address, most_tasks, spark_session  # noqa: PLC0415 - as above

    context = FlowContext(asked)
    flow = context.flow
    scope = Scope(asked.since, asked.topics, asked.full, asked.deep, asked.rate)
    # The clients first: what is wrong with them is known before Spark has taken its twenty seconds.
    reconciling = Reconciling(context.topology, flow, context.ends(), context.ledger())
    with spark_session(address(context.topology.spark_for(flow))) as spark:
        execute = functools.partial(prove_on_spark, spark)
        tasks = most_tasks(spark, flow.lanes)
        if flow.reconcile_source_spark is None:
            result = reconciling.run(scope, execute, tasks=tasks)
        else:
            with spark_session(flow.reconcile_source_spark) as near:
                beside = functools.partial(prove_on_spark, near)
                result = reconciling.run(scope, execute, tasks=tasks, beside_source=beside)
    console.result(_lines(result), result.to_json())
    for note in result.notes:
        console.note(f"twinlog: {note}")
    metrics.write_done(asked, reconcile_samples(result))
    return 1 if result.differences else 0


def _lines(result: Reconciliation) -> Iterator[str]:
    yield result.sentence
    for one in result.differences[:LISTED]:
        yield f"  {_line(one)}"
    if len(result.differences) > LISTED:
        yield f"  and {len(result.differences) - LISTED:,} more, all of them in the report"
    for kind, count in sorted(result.tally.items()):
        yield f"  {kind}: {count:,} records"
    yield (
        f"  {result.bytes_read / 1e6:,.1f} MB read in {result.seconds:.1f} s, {result.bytes_crossed / 1e6:,.1f} MB of "
        f"them across from {result.flow.partition('->')[0]}"
    )
    if result.differences:
        yield f"  what can be done about it: twinlog repair {shlex.quote(result.flow)} --dry-run"
    if result.report is not None:
        yield f"  report: {result.report}"


def _line(one: Difference) -> str:
    where = "" if one.topic is None else f" {one.topic}"
    where += "" if one.partition is None else f"-{one.partition}"
    offsets = [
        f"{side} {offset}"
        for side, offset in (("source", one.source_offset), ("target", one.target_offset))
        if offset is not None
    ]
    several = f" ({one.count:,} from there on)" if one.count > 1 else ""
    detail = f": {one.detail}" if one.detail else ""
    return f"{one.kind}{where}{' at ' + ', '.join(offsets) if offsets else ''}{several}{detail}"


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e6:
        raise argparse.ArgumentTypeError(f"expected MB/s above 0, not {text!r}")
    return rate
