"""Orders carried out by Spark: one partition an order, one action, nothing but the DataFrame API.

The same on Spark Connect, under spark-submit and in a local session. A task that Spark tries again begins where the
committed positions are; one that a later run has overtaken answers so instead of failing, and Spark leaves it alone.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.cluster.copier import LaneReport
from twinlog.cluster.copy_order import CopyOrder, carry_out

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

RESULT = "report binary"


def copy_on_spark(spark: SparkSession, orders: list[CopyOrder]) -> list[LaneReport]:
    """Have each order carried out by a task of its own."""
    # `range` gives row i to partition i, so each task knows its order by number: a hash would put two in one task.
    numbered = spark.range(0, len(orders), 1, len(orders))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            reports = [pickle.dumps(report) for number in numbers for report in carry_out(orders[number])]
            yield pyarrow.RecordBatch.from_pydict({"report": pyarrow.array(reports, pyarrow.binary())})

    rows: list[Any] = numbered.mapInArrow(task, RESULT).collect()
    return [pickle.loads(bytes(row["report"])) for row in rows]  # noqa: S301 - written by our own task above
