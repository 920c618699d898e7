"""The task that copies, on the Spark that the flow's connection leads to.

A try that follows another takes the run's lease at once and begins at the committed positions, so a lost Spark or a
killed worker costs what was not committed. Whoever ends the task ends its work on Spark too.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink

from twinlog.airflow.lineage import openlineage
from twinlog.airflow.metrics import errors_told, send
from twinlog.airflow.params import is_backfill, run_limits
from twinlog.airflow.progress import ProgressReport
from twinlog.airflow.settings import own_folder
from twinlog.airflow.spark_place import spark_place
from twinlog.airflow.tasks.mirror import LISTED_AT_MOST, PLAN_TASK, listed
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.airflow.topology import topology_in_use
from twinlog.errors import CopyIncompleteError, FlowStateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
    from airflow.sdk.types import TaskInstanceKey

    from twinlog.airflow.spark_place import SparkPlace
    from twinlog.operations.mirror_result import CopyResult
    from twinlog.operations.run_scope import Limits

SPARK_PAGE_KEY = "spark_page"


class SparkPageLink(BaseOperatorLink):
    """Leads from the task to Spark's own page of its session."""

    name = "Spark"

    @property
    def xcom_key(self) -> str:
        return SPARK_PAGE_KEY

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002 - as Airflow calls it
        return str(operator.spark_page or "")


class CopyOperator(BaseOperator):
    """Copies what is new in a flow, under its lease."""

    ui_color = "#d8e8f6"
    operator_extra_links = (SparkPageLink(),)

    def __init__(self, *, flow_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.flow_name = flow_name
        self.spark_page: str | None = None
        self._end: Callable[[], object] = lambda: None
        self._copied: CopyResult | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """One try; its result is on the task whatever became of it."""
        with errors_told(self.flow_name, self.task_id):
            return self._try(context)

    def _try(self, context: Context) -> dict[str, Any]:
        from airflow.sdk.exceptions import AirflowSkipException  # noqa: PLC0415 - no matter of parsing a DAG

        reach = TaskReach(self.flow_name)
        ti = context["ti"]
        run, limits = ti.xcom_pull(task_ids=PLAN_TASK)["run"], run_limits(context)
        place = spark_place(reach.topology, reach.flow)
        copied = self._submit(reach, place, run, limits) if place.connection else self._copy(reach, place, context, run)
        self._copied = copied
        send(_samples(copied))
        result = listed(copied.to_json(), "findings", "notes")
        ti.xcom_push(key=RESULT_KEY, value=result)
        if copied.skipped is not None and is_backfill(context):
            raise FlowStateError(f"the interval was not copied: {copied.skipped}")
        if copied.skipped is not None:
            self.log.info("%s", copied.skipped)
            raise AirflowSkipException(copied.skipped)
        for warning in copied.warnings[:LISTED_AT_MOST]:
            self.log.warning("%s", warning)
        if copied.failures:
            raise CopyIncompleteError("; ".join(copied.failures[:LISTED_AT_MOST]))
        return result

    def on_kill(self) -> None:
        self._end()

    def get_openlineage_facets_on_complete(self, ti: RuntimeTaskInstance) -> Any:  # noqa: ARG002 - as Airflow calls it
        """What was read and written, where OpenLineage is installed; called in the process that has copied."""
        if self._copied is None or self._copied.skipped is not None:
            return None
        topology = topology_in_use()
        copied = self._copied
        return openlineage(topology, topology.flow(self.flow_name), copied.topics, copied.to_json())

    def _copy(self, reach: TaskReach, place: SparkPlace, context: Context, run: str) -> CopyResult:
        """In a session of this process, on a Connect server or another Spark."""
        from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - brings the Kafka clients
        from twinlog.operations.mirror import Mirror  # noqa: PLC0415 - as above
        from twinlog.operations.spark_session import (  # noqa: PLC0415 - as above
            ended_by,
            most_tasks,
            page_of,
            spark_session,
        )

        flow, ti = reach.flow, context["ti"]
        # The clients first: what is wrong with them is known before Spark is asked for anything.
        mirror = Mirror(reach.topology, flow, reach.ends(), reach.ledger(), show=ProgressReport(ti))
        with spark_session(place.address, warm=flow.name, cache=own_folder()) as spark:
            self._end = ended_by(spark, run)
            self.spark_page = page_of(spark, place.page)
            if self.spark_page is not None:
                # Now, not only when the task has ended.
                ti.xcom_push(key=SPARK_PAGE_KEY, value=self.spark_page)
            tasks = most_tasks(spark, flow.lanes)
            limits = run_limits(context)
            return mirror.copy(functools.partial(copy_on_spark, spark), tasks=tasks, limits=limits, run=run)

    def _submit(self, reach: TaskReach, place: SparkPlace, run: str, limits: Limits) -> CopyResult:
        """By a job with a driver of its own."""
        from twinlog.airflow.submitting import SubmittedCopy  # noqa: PLC0415 - brings the Kafka clients

        self.spark_page = place.page
        job = SubmittedCopy(reach.topology, reach.flow, place.connection, dag_file=self.dag.fileloc)
        return job.run(run, limits, started=self._ends_with)

    def _ends_with(self, end: Callable[[], object]) -> None:
        self._end = end


def _samples(copied: CopyResult) -> Any:
    from twinlog.operations.metrics import copy_samples  # noqa: PLC0415 - brings the Kafka clients

    return copy_samples(copied)
