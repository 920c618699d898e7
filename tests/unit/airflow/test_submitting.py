from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowException

from twinlog.airflow import submitting
from twinlog.airflow.submitting import SubmittedCopy
from twinlog.errors import ConfigurationError, SparkFailedError
from twinlog.model.flow import Flow
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.job_result import write_result
from twinlog.operations.mirror_result import CopyResult
from twinlog.operations.run_scope import Limits

REPOSITORY = Path(__file__).resolve().parents[3]
FLOW = Flow("nyc", "lon")
TOPOLOGY = Topology(
    clusters={"nyc": Cluster("nyc", "nyc:9092", connection="kafka_nyc"), "lon": Cluster("lon", "lon:9092")},
    flows={FLOW.name: FLOW},
    site="home",
)
RESULT = CopyResult("nyc->lon", "r", partitions=2)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Connection]:
    found = {
        "master": Connection(conn_id="master", conn_type="spark", host="spark://nowhere:7077"),
        "kafka_nyc": Connection(conn_id="kafka_nyc", conn_type="kafka", extra='{"sasl.password": "geheim"}'),
    }
    monkeypatch.setattr(BaseHook, "get_connection", found.__getitem__)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TWINLOG_TOPOLOGY", str(tmp_path / "topology.yaml"))
    return found


def submitted(monkeypatch: pytest.MonkeyPatch, end: Callable[[Path], None]) -> dict[str, Any]:
    """What spark-submit is called with; in its place `end` is, with the file that the result belongs in."""
    seen: dict[str, Any] = {}

    def submit(hook: SparkSubmitHook, application: str, env: dict[str, str]) -> None:
        command = hook._build_spark_submit_command(application)
        seen.update(command=command, env=env)
        (result,) = (Path(word.removeprefix("--result=")) for word in command if word.startswith("--result="))
        seen["mode"] = stat.S_IMODE(result.parent.stat().st_mode)
        end(result)

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    return seen


def run(limits: Limits = Limits()) -> CopyResult:  # noqa: B008 - it is frozen
    job = SubmittedCopy(TOPOLOGY, FLOW, "master", dag_file=str(REPOSITORY / "dags" / "twinlog_mirror.py"))
    return job.run("r", limits, started=lambda _: None)


def test_the_job_gets_what_the_form_says_and_brings_its_result_back(
    connections: dict[str, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = submitted(monkeypatch, lambda file: write_result(file, lambda: RESULT) and None)
    assert run(Limits(10, 5, frozenset({"orders"}), 7)) == RESULT
    command = seen["command"]
    assert command[:3] == ["spark-submit", "--master", "spark://nowhere:7077"]
    assert str(REPOSITORY / "spark_jobs" / "copy_ranges.py") in command
    for word in ("--flow=nyc->lon", "--run=r", "--max-bytes=10", "--max-seconds=5", "--until-ms=7", "--topic=orders"):
        assert word in command
    assert command[command.index("--py-files") + 1].endswith(".zip")


def test_secrets_are_in_the_environment_of_the_driver_and_on_no_command_line(
    connections: dict[str, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    seen = submitted(monkeypatch, lambda file: write_result(file, lambda: RESULT) and None)
    run()
    assert not any("geheim" in word for word in seen["command"])
    assert json.loads(seen["env"]["AIRFLOW_CONN_KAFKA_NYC"])["extra"] == {"sasl.password": "geheim"}
    assert "AIRFLOW_CONN_KAFKA_NYC" not in os.environ
    assert seen["env"]["TWINLOG_SITE"] == "home"
    assert "SPARK_CONNECT_MODE_ENABLED" not in seen["env"]
    assert seen["mode"] == 0o700


def test_a_job_that_ends_without_a_result_may_go_better_the_next_time(
    connections: dict[str, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(_: Path) -> None:
        raise AirflowException("Cannot execute: spark-submit. Error code is: 1.\nmore")

    submitted(monkeypatch, end)
    with pytest.raises(SparkFailedError, match=r"'master' ended without a result: .*Error code is: 1\.; what") as lost:
        run()
    assert lost.value.retriable


def test_a_driver_elsewhere_and_a_job_that_is_not_there_are_refused(
    connections: dict[str, Connection], tmp_path: Path
) -> None:
    connections["master"].extra = '{"deploy-mode": "cluster"}'
    with pytest.raises(ConfigurationError, match="take client"):
        run()
    with pytest.raises(ConfigurationError, match="TWINLOG_SPARK_JOBS"):
        submitting.SubmittedCopy(TOPOLOGY, FLOW, "master", dag_file=str(tmp_path / "dags" / "a.py"))
