"""One run of a flow as a Spark job: plans on the driver, copies on the executors, records on the driver.

    spark-submit spark_jobs/copy_ranges.py --topology topology.yaml --flow 'nyc->lon' --tasks 8

Secrets come from where the topology says (the driver's environment or files), never from the arguments. Prints the
result as one JSON object; ends with 1 where something could not be copied.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from twinlog.cluster.access import flow_access
from twinlog.intake.topology_file import load
from twinlog.ledger.store import Ledger
from twinlog.operations.copy_on_spark import copy_on_spark
from twinlog.operations.mirror import Ends, Limits, Mirror
from twinlog.operations.mirror_result import MirrorResult


def run(spark: SparkSession, arguments: argparse.Namespace) -> MirrorResult:
    """One run, as the arguments say."""
    topology = load(arguments.topology)
    flow = topology.flow(arguments.flow)
    access = functools.partial(flow_access, topology, flow)
    ends = Ends(access("source"), access("target"), access("source", "consumer"), access("target", "producer"))
    ledger = Ledger(topology.ledger_for(flow), flow.source, flow.target)
    return Mirror(topology, flow, ends, ledger).run(
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
    spark = SparkSession.builder.appName(f"twinlog {arguments.flow}").getOrCreate()
    try:
        result = run(spark, arguments)
    finally:
        spark.stop()
    json.dump(result.to_json(), sys.stdout)
    sys.stdout.write("\n")
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
