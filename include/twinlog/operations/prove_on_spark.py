"""Proving on Spark: an order a task (see `spark_tasks`). Only answers come back; batches stay where they were read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlog.cluster.proof_order import ProofOrder, ProofReport
from twinlog.operations.spark_tasks import carried_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def prove_on_spark(spark: SparkSession, orders: list[ProofOrder]) -> list[ProofReport]:
    """The reports, in the orders' order."""
    if not orders:
        return []
    return carried_out(spark, "twinlog.cluster.prover:prove", orders, f"comparing {orders[0].settings.flow}")
