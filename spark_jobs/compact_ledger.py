"""Compacts one flow's ledger on Spark: merges small files, joins rows that run on, drops rows of records
long gone.

    twinlog --json ledger floors 'nyc->lon' > floors.json
    spark-submit spark_jobs/compact_ledger.py --ledger s3a://bucket/ledger --source nyc --target lon \\
        --floors floors.json

Where the logs start is handed over in that file, since a Spark job asks no cluster; without it no row is dropped.
Prints what was done as one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from uuid import UUID

from pyspark.sql import SparkSession

from twinlog.ledger.compact import Compacted, Floor, Retention
from twinlog.ledger.compact_spark import compact_on_spark
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import PartitionPair
from twinlog.operations.spark_session import bring_package

_DAY_MS = 24 * 3600 * 1000


def run(spark: SparkSession, arguments: argparse.Namespace) -> Compacted:
    """Compact as the arguments say, then remove the files that were replaced before the grace began."""
    ledger = Ledger(arguments.ledger, arguments.source, arguments.target)
    now_ms = time.time_ns() // 1_000_000
    retention = Retention(_floors(arguments.floors), now_ms - int(arguments.keep_days * _DAY_MS))
    compacted = compact_on_spark(
        spark, ledger, retention, everything=arguments.all, least=arguments.least, tasks=arguments.tasks
    )
    ledger.sweep(time.time_ns() // 1_000_000, int(arguments.grace_seconds * 1000))
    return compacted


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    options.add_argument("--ledger", required=True, help="the topology's `ledger`")
    options.add_argument("--source", required=True, help="alias of the flow's source cluster")
    options.add_argument("--target", required=True, help="alias of the flow's target cluster")
    options.add_argument("--floors", type=Path, help="what `twinlog --json ledger floors` says")
    options.add_argument("--keep-days", type=float, default=30.0, help="keep rows at least so long (default 30)")
    options.add_argument("--all", action="store_true", help="rewrite large files too")
    options.add_argument("--least", type=int, default=2, help="merge only so many files or more (default 2)")
    options.add_argument("--tasks", type=int, default=8, help="Spark tasks (default 8)")
    options.add_argument(
        "--grace-seconds",
        type=float,
        default=0.0,
        help="keep replaced files so long, for foreign readers that are amid a query; until they are removed, "
        "who lists the folder without twinlog sees their rows twice (default 0)",
    )
    return options


def _floors(path: Path | None) -> list[Floor]:
    if path is None:
        return []
    return [
        Floor(
            PartitionPair(
                row["source_topic"],
                UUID(row["source_topic_id"]),
                row["target_topic"],
                UUID(row["target_topic_id"]),
                row["partition"],
            ),
            row["source_start"],
            row["target_start"],
        )
        for row in json.loads(path.read_text())["floors"]
    ]


def main() -> None:
    arguments = parser().parse_args()
    spark = SparkSession.builder.appName(f"twinlog compact {arguments.source}->{arguments.target}").getOrCreate()
    try:
        bring_package(spark)
        done = run(spark, arguments)
    finally:
        spark.stop()
    json.dump(asdict(done), sys.stdout)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
