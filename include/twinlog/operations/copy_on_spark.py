"""Copying on Spark: an order a task (see `spark_tasks`).

A task that Spark tries again begins where the committed positions are; one that a later run has overtaken answers so
instead of failing, and Spark leaves it alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlog.cluster.copier import LaneReport
from twinlog.cluster.copy_order import CopyOrder
from twinlog.operations.spark_tasks import carried_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def copy_on_spark(spark: SparkSession, orders: list[CopyOrder]) -> list[LaneReport]:
    """Have each order carried out by a task of its own."""
    done = carried_out(spark, "twinlog.cluster.copy_order:carry_out", orders, f"copying {orders[0].settings.flow}")
    return [report for reports in done for report in reports]
