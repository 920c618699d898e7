"""The task that copies, on the Spark that the flow's connection leads to.

A try that follows another takes the run's lease at once and begins at the committed positions, so a lost Spark or a
killed worker costs what was not committed. Whoever ends the task ends its work on Spark too.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from twinlog.airflow.metrics import send
from twinlog.airflow.params import run_limits
from twinlog.airflow.progress import ProgressReport
from twinlog.airflow.settings import own_folder
from twinlog.airflow.spark_place import spark_place
from twinlog.airflow.tasks.mirror import LISTED_AT_MOST, PLAN_TASK, listed
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.errors import CopyIncompleteError

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context

    from twinlog.operations.mirror_result import CopyResult


class CopyOperator(BaseOperator):
    """Copies what is new in a flow, under its lease."""

    ui_color = "#d8e8f6"

    def __init__(self, *, flow_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.flow_name = flow_name
        self._end: Callable[[], object] = lambda: None

    def execute(self, context: Context) -> dict[str, Any]:
        """One try; its result is on the task whatever became of it."""
        from airflow.sdk.exceptions import AirflowSkipException  # noqa: PLC0415 - no matter of parsing a DAG

        reach = TaskReach(self.flow_name)
        ti = context["ti"]
        copied = self._copy_in_session(reach, context, ti.xcom_pull(task_ids=PLAN_TASK)["run"])
        result = listed(copied.to_json(), "findings", "notes")
        ti.xcom_push(key=RESULT_KEY, value=result)
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

    def _copy_in_session(self, reach: TaskReach, context: Context, run: str) -> CopyResult:
        from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - brings the Kafka clients
        from twinlog.operations.metrics import copy_samples  # noqa: PLC0415 - as above
        from twinlog.operations.mirror import Mirror  # noqa: PLC0415 - as above
        from twinlog.operations.spark_session import most_tasks, spark_session  # noqa: PLC0415 - as above

        flow, limits = reach.flow, run_limits(context["params"])
        place = spark_place(reach.topology, flow)
        # The clients first: what is wrong with them is known before Spark is asked for anything.
        mirror = Mirror(reach.topology, flow, reach.ends(), reach.ledger(), show=ProgressReport(context["ti"]))
        with spark_session(place.address, warm=flow.name, cache=own_folder()) as spark:
            self._end = getattr(spark, "interruptAll", self._end)
            tasks = most_tasks(spark, flow.lanes)
            copied = mirror.copy(functools.partial(copy_on_spark, spark), tasks=tasks, limits=limits, run=run)
        send(copy_samples(copied))
        return copied
