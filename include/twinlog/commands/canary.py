"""`twinlog canary FLOW`: marked records go through a real run, and what arrives of them is judged."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands import metrics
from twinlog.commands.arguments import positive, seconds
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext

if TYPE_CHECKING:
    from twinlog.operations.canary import CanaryResult


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser(
        "canary", parents=[common], help="send marked records through a run; exit 1 where they do not arrive as sent"
    )
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument("--records", metavar="N", type=positive, help="records a partition (the flow's canary.records)")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=120.0, help="how long to wait for them to arrive (120)"
    )
    metrics.add_option(parser)
    parser.set_defaults(run=run)


@metrics.tells_errors
def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.canary import Canary  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.metrics import canary_samples  # noqa: PLC0415 - as above
    from twinlog.operations.mirror import Mirror  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import address, most_tasks, spark_session  # noqa: PLC0415 - as above

    context = FlowContext(asked)
    flow, ends = context.flow, context.ends()
    # The clients first: what is wrong with them is known before Spark has taken its twenty seconds.
    canary = Canary(flow, Mirror(context.topology, flow, ends, context.ledger()), ends.source, ends.target)
    with spark_session(address(context.topology.spark_for(flow))) as spark:
        result = canary.fly(
            functools.partial(copy_on_spark, spark),
            tasks=most_tasks(spark, flow.lanes),
            records=asked.records,
            timeout_s=asked.timeout,
        )
    console.result(_lines(result), result.to_json())
    for sentence in result.notes:
        console.note(f"twinlog: {sentence}")
    metrics.write_done(asked, canary_samples(result))
    return result.exit_code


def _lines(result: CanaryResult) -> Iterator[str]:
    verdict = result.verdict
    if result.skipped is not None:
        yield result.skipped
        return
    yield (
        f"{result.flow}: {verdict.arrived:,} of {verdict.sent:,} canaries arrived in {result.twin}, "
        f"{result.partitions} partitions, round {result.round}"
    )
    if verdict.latency_p50_s is not None and verdict.latency_p99_s is not None:
        yield f"  from sending to being readable: p50 {verdict.latency_p50_s:.2f} s, p99 {verdict.latency_p99_s:.2f} s"
    for fault, count in verdict.faults.items():
        if count:
            yield f"  {fault.replace('_', ' ')}: {count:,}"
