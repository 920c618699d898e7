"""Copying by a job that is submitted: the same job file on a standalone master, YARN or Kubernetes.

spark-submit runs in client mode, so the driver is here: what it prints is in the task's log, and its result comes back
in a file that only its owner can read. Secrets travel in the driver's environment, never in arguments, nor in the
provider's `env_vars`, which YARN and Kubernetes would have on a command line.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from twinlog.airflow.connections import CONNECTION_TYPE, kafka_properties
from twinlog.airflow.settings import own_folder, spark_jobs, topology_path
from twinlog.airflow.topology import kept_version
from twinlog.errors import ConfigurationError, SparkFailedError
from twinlog.intake.topology_file import SITE_VARIABLE
from twinlog.operations.job_result import read_result
from twinlog.operations.spark_package import archive

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    from twinlog.model.topology import Flow, Topology
    from twinlog.operations.mirror_result import CopyResult
    from twinlog.operations.run_scope import Limits

JOB = "copy_ranges.py"

_FOREIGN = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE")
"""A submitted job has a session of its own, whatever this process has."""


class SubmittedCopy:
    """One run's copying as a job."""

    def __init__(self, topology: Topology, flow: Flow, connection_id: str, *, dag_file: str) -> None:
        self._topology = topology
        self._flow = flow
        self._connection_id = connection_id
        self._job = spark_jobs(dag_file) / JOB
        if not self._job.is_file():
            raise ConfigurationError(
                f"{self._job} is not there: name the folder of the repository's jobs for spark-submit in the "
                "environment variable TWINLOG_SPARK_JOBS or as `spark_jobs` in the section [twinlog] of airflow.cfg"
            )

    def run(self, run: str, limits: Limits, *, started: Callable[[Callable[[], object]], None]) -> CopyResult:
        """Submit, wait, and bring the result back; `started` is told how to end it."""
        folder = own_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=folder, prefix="job-") as private:
            result = Path(private) / "result"
            hook = self._hook(_arguments(self._flow, run, limits, result), folder)
            started(hook.on_kill)
            failure = _submit(hook, self._job, self._environment())
            copied = read_result(result)
        if copied is None:
            raise SparkFailedError(
                f"copying {self._flow.name}: the job that was submitted to {self._connection_id!r} ended without a "
                f"result: {failure or 'its log says more'}; what is committed stays, and the next try goes on there"
            )
        return copied

    def _hook(self, arguments: list[str], folder: Path) -> SparkSubmitHook:
        from airflow.providers.apache.spark.hooks.spark_submit import (  # noqa: PLC0415 - dear, and only some need it
            SparkSubmitHook,
        )

        hook = SparkSubmitHook(
            conn_id=self._connection_id,
            name=f"twinlog {self._flow.name}",
            py_files=str(archive(folder)),
            application_args=arguments,
        )
        if hook._connection["deploy_mode"] == "cluster":
            raise ConfigurationError(
                f"the Airflow connection {self._connection_id!r} has deploy-mode cluster: Twinlog's driver holds the "
                "flow's lease and needs its secrets, so it runs where the task does; take client"
            )
        return hook

    def _environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        ours.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        ours[SITE_VARIABLE] = self._topology.site
        for alias in (self._flow.source, self._flow.target):
            named = self._topology.clusters[alias].connection
            if named is not None:
                extra = dict(kafka_properties(named))
                ours[f"AIRFLOW_CONN_{named.upper()}"] = json.dumps({"conn_type": CONNECTION_TYPE, "extra": extra})
        return ours


def _submit(hook: SparkSubmitHook, job: Path, environ: dict[str, str]) -> str | None:
    """What went wrong, as spark-submit ended; the job itself may have said more."""
    from airflow.sdk.exceptions import AirflowException  # noqa: PLC0415 - no matter of parsing a DAG

    try:
        hook.submit(str(job), env=environ)
    except AirflowException as failure:
        return str(failure).splitlines()[0]
    return None


def _arguments(flow: Flow, run: str, limits: Limits, result: Path) -> list[str]:
    path = topology_path()
    kept = kept_version(path)
    arguments = [f"--topology={path.absolute()}", f"--flow={flow.name}", f"--run={run}", f"--result={result}"]
    # What this task has read, also where somebody has broken the file since.
    arguments += [f"--content={kept}"] if kept.exists() else []
    if limits.max_bytes is not None:
        arguments.append(f"--max-bytes={limits.max_bytes}")
    if limits.max_seconds is not None:
        arguments.append(f"--max-seconds={limits.max_seconds}")
    if limits.from_ms is not None:
        arguments.append(f"--from-ms={limits.from_ms}")
    if limits.until_ms is not None:
        arguments.append(f"--until-ms={limits.until_ms}")
    return [*arguments, *(f"--topic={name}" for name in sorted(limits.topics or ()))]
