"""One run of a flow as a Spark job: plans on the driver, copies on the executors, records on the driver.

    spark-submit spark_jobs/copy_ranges.py --topology topology.yaml --flow 'nyc->lon' --tasks 8

Secrets come from where the topology says (the driver's environment or files), never from the arguments. Standard error
says how far the run has come, standard output the result as one JSON object on a line: the last one where spark-submit,
in client mode, brings both on its own standard output. Ends with 1 where something could not be copied.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext
from twinlog.commands.progress_display import show_on
from twinlog.operations.copy_on_spark import copy_on_spark
from twinlog.operations.mirror import Limits, Mirror
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.spark_session import bring_package


def run(spark: SparkSession, arguments: argparse.Namespace, console: Console) -> MirrorResult:
    """One run, as the arguments say."""
    context = FlowContext(arguments)
    flow = context.flow
    mirror = Mirror(context.topology, flow, context.ends(), context.ledger(), show=show_on(console))
    return mirror.run(
        functools.partial(copy_on_spark, spark),
        tasks=min(arguments.tasks or flow.lanes, flow.lanes),
        limits=Limits(arguments.max_bytes, arguments.max_seconds),
        run=arguments.run,
    )


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    options.add_argument("--topology", required=True, type=Path, help="the topology file")
    options.add_argument("--flow", required=True, help="such as nyc->lon")
    options.add_argument("--run", help="the run's id (made up where left out)")
    options.add_argument("--tasks", type=int, help="Spark tasks at the most (default: the flow's lanes)")
    options.add_argument("--max-bytes", type=int, help="end after about so many bytes")
    options.add_argument("--max-seconds", type=float, help="end after so many seconds")
    return options


def main() -> int:
    arguments = parser().parse_args()
    console = Console()
    spark = SparkSession.builder.appName(f"twinlog {arguments.flow}").getOrCreate()
    try:
        bring_package(spark)
        result = run(spark, arguments, console)
    finally:
        spark.stop()
    console.out(json.dumps(result.to_json()))
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
