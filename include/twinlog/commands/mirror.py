"""`twinlog mirror FLOW`: one whole run, without Airflow."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands import metrics
from twinlog.commands.arguments import moment, positive
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext
from twinlog.commands.progress_display import show_on

if TYPE_CHECKING:
    from twinlog.operations.mirror_result import MirrorResult


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("mirror", parents=[common], help="copy what is new, once")
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument("--max-bytes", metavar="N", type=positive, help="end after about so many bytes")
    parser.add_argument("--max-seconds", metavar="S", type=positive, help="end after so many seconds")
    parser.add_argument(
        "--until",
        metavar="TIME",
        type=moment,
        help="only what was written before (2026-01-31T12:00:00Z, or milliseconds)",
    )
    parser.add_argument("--topic", metavar="NAME", action="append", help="only this topic; may be repeated")
    metrics.add_option(parser)
    parser.set_defaults(run=run)


@metrics.tells_errors
def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.metrics import run_samples  # noqa: PLC0415 - as above
    from twinlog.operations.mirror import Limits, Mirror  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import address, most_tasks, spark_session  # noqa: PLC0415 - as above

    context = FlowContext(asked)
    flow = context.flow
    topics = frozenset(asked.topic) if asked.topic else None
    limits = Limits(asked.max_bytes, asked.max_seconds, topics, asked.until)
    where = address(context.topology.spark_for(flow))
    # The clients first: what is wrong with them is known before Spark has taken its twenty seconds.
    mirror = Mirror(context.topology, flow, context.ends(), context.ledger(), show=show_on(console))
    with spark_session(where) as spark:
        result = mirror.run(functools.partial(copy_on_spark, spark), tasks=most_tasks(spark, flow.lanes), limits=limits)
    console.result(_lines(result), result.to_json())
    for sentence in result.warnings:
        console.note(f"twinlog: {sentence}")
    metrics.write_done(asked, run_samples(result))
    return 1 if result.failures else 0


def _lines(result: MirrorResult) -> Iterator[str]:
    if result.skipped is not None:
        yield result.skipped
        return
    rate = result.recorded.bytes / 1e6 / result.seconds if result.seconds else 0.0
    yield (
        f"{result.flow}: {result.recorded.records:,} records, {result.recorded.bytes / 1e6:,.1f} MB from "
        f"{result.partitions} partitions in {result.seconds:.1f} s ({rate:.1f} MB/s), run {result.run}"
    )
    for kind, offsets in sorted(result.recorded.gaps.items()):
        yield f"  not copied: {offsets:,} offsets {kind}"
    if result.left_records:
        yield f"  left for the next run: {result.left_records:,} records"
