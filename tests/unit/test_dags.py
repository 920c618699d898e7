"""The DAG folder: what it generates from a topology, and that parsing it is cheap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.places import INCLUDE, REPOSITORY

DAG_FILE = REPOSITORY / "dags" / "twinlog_flows.py"
TOPOLOGY = """\
clusters:
  nyc: {bootstrap.servers: "nyc.example.com:9092"}
  lon: {bootstrap.servers: "lon.example.com:9092", queue: beside_lon}
ledger: ./ledger
flows:
  nyc->lon: {topics: [orders]}
  lon->nyc: {topics: [orders]}
"""

# Parses the file as Airflow does, in a process of its own: what is imported there is what parsing costs.
PARSE = """
import json, runpy, sys, time
import airflow.sdk
from airflow.sdk import DAG, task, ExceptionRetryPolicy, RetryRule  # Airflow's own imports are not ours to judge
before = set(sys.modules)
began = time.process_time()
found = runpy.run_path(sys.argv[1])
seconds = time.process_time() - began
dags = [value for value in found.values() if isinstance(value, DAG)]
print(json.dumps({
    "seconds": seconds,
    "imported": sorted({name.split(".")[0] for name in set(sys.modules) - before}),
    "dags": {dag.dag_id: {
        "display": dag.dag_display_name, "tags": sorted(dag.tags), "doc": dag.doc_md, "catchup": dag.catchup,
        "max_active_runs": dag.max_active_runs, "timeout_s": dag.dagrun_timeout.total_seconds(),
        "schedule": dag.schedule, "tasks": {
            task.task_id: {"owner": task.owner, "queue": task.queue, "retries": task.retries,
                           "policy": task.retry_policy is not None}
            for task in dag.tasks},
    } for dag in dags},
}))
"""


def parse(topology: Path | None, home: Path) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "TWINLOG"))}
    environ |= {"AIRFLOW_HOME": str(home), "PYTHONPATH": str(INCLUDE)}
    if topology is not None:
        environ["TWINLOG_TOPOLOGY"] = str(topology)
    return subprocess.run(
        [sys.executable, "-c", PARSE, str(DAG_FILE)], env=environ, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("dags")
    topology = folder / "topology.yaml"
    topology.write_text(TOPOLOGY)
    done = parse(topology, folder / "airflow")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_parsing_takes_under_a_second(parsed: dict[str, Any]) -> None:
    assert parsed["seconds"] < 1.0


def test_parsing_imports_neither_spark_nor_a_kafka_client(parsed: dict[str, Any]) -> None:
    heavy = {"pyspark", "kafka", "confluent_kafka", "pyarrow", "pandas", "numpy"}
    assert heavy.isdisjoint(parsed["imported"])
    assert "twinlog" in parsed["imported"], "the list is of what the file imported"


def test_each_flow_has_its_status_dag(parsed: dict[str, Any]) -> None:
    assert set(parsed["dags"]) == {"status__nyc_to_lon", "status__lon_to_nyc"}


def test_a_dag_says_what_it_is(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["status__nyc_to_lon"]
    assert dag["display"] == "status nyc->lon"
    assert dag["tags"] == ["source:nyc", "status", "target:lon", "twinlog"]
    assert "nyc.example.com:9092" in dag["doc"]
    assert "--- prefixed ---" in dag["doc"]


def test_a_dag_runs_once_at_a_time_and_not_for_ever(parsed: dict[str, Any]) -> None:
    for dag in parsed["dags"].values():
        assert dag["max_active_runs"] == 1
        assert dag["catchup"] is False
        assert 0 < dag["timeout_s"] <= 3600


def test_tasks_have_an_owner_a_retry_policy_and_the_queue_beside_the_target(parsed: dict[str, Any]) -> None:
    tasks = parsed["dags"]["status__nyc_to_lon"]["tasks"]
    assert set(tasks) == {"status"}
    assert tasks["status"]["owner"] == "twinlog"
    assert tasks["status"]["policy"]
    assert tasks["status"]["queue"] == "beside_lon"


def test_a_wrong_topology_raises_one_error_that_names_the_line(tmp_path: Path) -> None:
    topology = tmp_path / "topology.yaml"
    topology.write_text(TOPOLOGY.replace("topics: [orders]", "topcs: [orders]", 1))
    done = parse(topology, tmp_path / "airflow")
    assert done.returncode == 1
    assert f"{topology}:6: " in done.stderr
    assert "topics" in done.stderr


def test_no_topology_at_all_is_said(tmp_path: Path) -> None:
    done = parse(None, tmp_path / "airflow")
    assert done.returncode == 1
    assert "ConfigurationError: No topology file is set" in done.stderr


def test_a_disabled_flow_has_no_dag(tmp_path: Path) -> None:
    topology = tmp_path / "topology.yaml"
    topology.write_text(TOPOLOGY.replace("lon->nyc: {", "lon->nyc: {enabled: false, "))
    done = parse(topology, tmp_path / "airflow")
    assert set(json.loads(done.stdout.splitlines()[-1])["dags"]) == {"status__nyc_to_lon"}
