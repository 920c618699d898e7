"""One run of a flow as a Spark job: plans on the driver, copies on the executors, records on the driver.

    spark-submit spark_jobs/copy_ranges.py --topology topology.yaml --flow 'nyc->lon' --tasks 8

Secrets come from where the topology says (the driver's environment or files), never from the arguments. Standard error
says how far the run has come, standard output the result as one JSON object on a line: the last one where spark-submit,
in client mode, brings both on its own standard output. Ends with 1 where something could not be copied.

With `--result FILE`, as Airflow submits it, it only copies: what follows is recorded by whoever reads that file.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from twinlog.commands.console import Console
from twinlog.commands.progress_display import show_on
from twinlog.intake.topology_file import load
from twinlog.operations.copy_on_spark import copy_on_spark
from twinlog.operations.flow_reach import FlowReach
from twinlog.operations.job_result import write_result
from twinlog.operations.mirror import Limits, Mirror, new_run_id
from twinlog.operations.mirror_result import CopyResult
from twinlog.operations.spark_session import bring_package


def run(spark: SparkSession, arguments: argparse.Namespace, console: Console) -> CopyResult:
    """One run, as the arguments say."""
    topology = load(arguments.topology, content=arguments.content)
    reach = FlowReach(topology, topology.flow(arguments.flow))
    flow = reach.flow
    mirror = Mirror(topology, flow, reach.ends(), reach.ledger(), show=show_on(console))
    execute, tasks = functools.partial(copy_on_spark, spark), min(arguments.tasks or flow.lanes, flow.lanes)
    topics = frozenset(arguments.topic) if arguments.topic else None
    limits = Limits(arguments.max_bytes, arguments.max_seconds, topics, arguments.until_ms, from_ms=arguments.from_ms)
    if arguments.result is not None:
        return mirror.copy(execute, tasks=tasks, limits=limits, run=arguments.run or new_run_id())
    return mirror.run(execute, tasks=tasks, limits=limits, run=arguments.run)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    options.add_argument("--topology", required=True, type=Path, help="the topology file")
    options.add_argument("--flow", required=True, help="such as nyc->lon")
    options.add_argument("--run", help="the run's id (made up where left out)")
    options.add_argument("--tasks", type=int, help="Spark tasks at the most (default: the flow's lanes)")
    options.add_argument("--max-bytes", type=int, help="end after about so many bytes")
    options.add_argument("--max-seconds", type=float, help="end after so many seconds")
    options.add_argument("--from-ms", type=int, help="begin what has no position there, in milliseconds since 1970")
    options.add_argument("--until-ms", type=int, help="copy only what was written before, in milliseconds since 1970")
    options.add_argument("--topic", action="append", help="only this topic; may be given again")
    options.add_argument("--content", type=Path, help="a copy of the topology file to read in its place")
    options.add_argument("--result", type=Path, help="copy only, and leave what became of it in this file")
    return options


def main() -> int:
    arguments = parser().parse_args()
    console = Console()
    spark = SparkSession.builder.appName(f"twinlog {arguments.flow}").getOrCreate()
    try:
        bring_package(spark)
        if arguments.result is not None:
            return 0 if write_result(arguments.result, lambda: run(spark, arguments, console)) else 1
        result = run(spark, arguments, console)
    finally:
        spark.stop()
    console.out(json.dumps(result.to_json()))
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
