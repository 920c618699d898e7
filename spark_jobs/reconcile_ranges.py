"""One reconciliation of a flow as a Spark job: chooses on the driver, compares on the executors, judges on the driver.

    spark-submit spark_jobs/reconcile_ranges.py --topology topology.yaml --flow 'nyc->lon' --tasks 8 --full

Secrets come from where the topology says (the driver's environment or files), never from the arguments. Standard output
has the result as one JSON object on a line, the last one in client mode. Ends with 1 where something differs.

It is one action; a second one looks up later records of keys, where a log cleaner has removed records on one side only.
With `reconcile.source.spark` the flow names a Connect server beside the source, which computes the source's digests.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from twinlog.commands.arguments import moment
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext
from twinlog.operations.prove_on_spark import prove_on_spark
from twinlog.operations.reconcile import Reconciling, Scope
from twinlog.operations.reconcile_result import Reconciliation
from twinlog.operations.spark_session import bring_package, spark_session


def run(spark: SparkSession, arguments: argparse.Namespace) -> Reconciliation:
    """One reconciliation, as the arguments say."""
    context = FlowContext(arguments)
    flow = context.flow
    reconciling = Reconciling(context.topology, flow, context.ends(), context.ledger())
    scope = Scope(arguments.since, arguments.topics, arguments.full, arguments.deep, arguments.rate)
    with ExitStack() as stack:
        beside = None
        if flow.reconcile_source_spark is not None:
            near = stack.enter_context(spark_session(flow.reconcile_source_spark))
            beside = functools.partial(prove_on_spark, near)
        return reconciling.run(
            scope, functools.partial(prove_on_spark, spark), tasks=arguments.tasks or flow.lanes, beside_source=beside
        )


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    options.add_argument("--topology", required=True, type=Path, help="the topology file")
    options.add_argument("--flow", required=True, help="such as nyc->lon")
    options.add_argument("--tasks", type=int, help="Spark tasks (default: as many as the flow has lanes)")
    options.add_argument("--since", type=moment, help="only what was copied since")
    options.add_argument("--topics", help="only source topics whose name this pattern matches")
    options.add_argument("--full", action="store_true", help="everything that both logs still hold")
    options.add_argument("--deep", action="store_true", help="record by record")
    options.add_argument("--rate", type=float, help="MB/s read from each cluster at the most")
    return options


def main() -> int:
    arguments = parser().parse_args()
    spark = SparkSession.builder.appName(f"twinlog reconcile {arguments.flow}").getOrCreate()
    try:
        bring_package(spark)
        result = run(spark, arguments)
    finally:
        spark.stop()
    Console().out(json.dumps(result.to_json()))
    return 1 if result.differences else 0


if __name__ == "__main__":
    sys.exit(main())
