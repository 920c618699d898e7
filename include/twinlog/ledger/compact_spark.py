"""Compaction on Spark, for ledgers that are too large for one process.

Spark only carries: rows go, whole pairs together, to tasks that apply `compact_rows`, and the result is
written as one file beside the ledger, which then takes its place under the ledger's name for it. DataFrame
API only, so it runs on Connect, on a cluster and in a local session alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from twinlog.errors import LedgerError
from twinlog.ledger.compact import NOTHING_TO_GAIN, Compacted, Retention, choose, compact_rows
from twinlog.ledger.folder import Folder
from twinlog.ledger.schema import IN_FILES, ORDER, PAIR_COLUMNS, to_files
from twinlog.ledger.store import Ledger, merged_link

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPARK_TYPES = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint"}
SPARK_SCHEMA = ", ".join(f"`{field.name}` {_SPARK_TYPES[field.type]}" for field in IN_FILES)


def compact_frame(rows: DataFrame, retention: Retention, tasks: int) -> DataFrame:
    """Ledger rows in, compacted ledger rows out."""
    return rows.select(*IN_FILES.names).repartition(tasks, *PAIR_COLUMNS).mapInArrow(_on_task(retention), SPARK_SCHEMA)


def compact_on_spark(
    spark: SparkSession,
    ledger: Ledger,
    retention: Retention,
    *,
    everything: bool = False,
    least: int = 2,
    tasks: int = 8,
) -> Compacted:
    """As `compact.compact`; the files are read and written by Spark."""
    files = choose(ledger.files(), everything=everything, least=least)
    if not files:
        return NOTHING_TO_GAIN
    rows_before = ledger.row_count([file.link.name for file in files])
    rows = spark.read.schema(SPARK_SCHEMA).parquet(*ledger.folder.file_uris([file.link.name for file in files]))
    merged = compact_frame(rows, retention, tasks).coalesce(1).sortWithinPartitions(*ORDER)
    link = merged_link(files)
    work = Folder(f"{ledger.work_uri}/{uuid4().hex}", ledger.filesystem)
    try:
        merged.write.option("compression", "zstd").parquet(work.uri)
        parts = [file.name for file in work.files() if file.name.endswith(".parquet")]
        if len(parts) != 1:
            raise LedgerError(f"{work.uri}: Spark wrote {len(parts)} files where one was expected; nothing was merged")
        ledger.folder.adopt(work.file_path(parts[0]), link.name)
    finally:
        work.destroy()
    return Compacted(len(files), rows_before, ledger.row_count([link.name]), link.name)


def _on_task(retention: Retention) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # All of a task's rows at once: rows that run on may lie in different batches.
        received = list(batches)
        table = pa.Table.from_batches(received) if received else IN_FILES.empty_table()
        yield from to_files(compact_rows(table, retention)).to_batches()

    return work
