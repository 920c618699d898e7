"""Who copies and who proves within a task that does more than one run of a flow: a warm Spark, or the task itself."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlog.airflow.settings import own_folder
from twinlog.airflow.spark_place import spark_place

if TYPE_CHECKING:
    from twinlog.cluster.copy_order import Executor
    from twinlog.model.topology import Flow, Topology
    from twinlog.operations.reconcile_evidence import Executor as Prover


@dataclass(frozen=True)
class Executors:
    """Both, and into how many tasks their work is divided."""

    copy: Executor
    prove: Prover
    tasks: int


@contextmanager
def executors(topology: Topology, flow: Flow) -> Iterator[Executors]:
    """For as long as the context lasts.

    Where Spark is one that jobs are submitted to, the task does it itself: what is left to copy, run after run, is
    small beside what a job takes to start.
    """
    from twinlog.cluster.copy_order import carry_out_here  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.prove_on_spark import prove_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.reconcile import prove_here  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import most_tasks, spark_session  # noqa: PLC0415 - as above

    place = spark_place(topology, flow)
    if not place.address:
        yield Executors(carry_out_here, prove_here, 1)
        return
    with spark_session(place.address, warm=flow.name, cache=own_folder()) as spark:
        copy, prove = functools.partial(copy_on_spark, spark), functools.partial(prove_on_spark, spark)
        yield Executors(copy, prove, most_tasks(spark, flow.lanes))
