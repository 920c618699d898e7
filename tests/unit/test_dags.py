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

DAGS = REPOSITORY / "dags"
ONE_THAT_RAISES = DAGS / "twinlog_topology.py"
TOPOLOGY = """\
clusters:
  nyc: {bootstrap.servers: "nyc.example.com:9092", pool: beside_nyc}
  lon: {bootstrap.servers: "lon.example.com:9092", queue: beside_lon}
ledger: ./ledger
flows:
  nyc->lon: {topics: [orders], schedule: "@continuous", budget.bytes: 1000}
  lon->nyc: {topics: [orders]}
"""
VERBS = {
    "mirror",
    "control",
    "status",
    "sync",
    "heartbeat",
    "canary",
    "compact",
    "reconcile",
    "repair",
    "failback",
    "drill",
    "migrate",
    "failover",
    "switchover",
}
HEAVY = {"pyspark", "kafka", "confluent_kafka", "pyarrow", "pandas", "numpy"}

# Parses the files as Airflow does, in a process of its own: what is imported there is what parsing costs.
PARSE = """
import json, runpy, sys, time
import airflow.sdk
# Airflow's own imports are not ours to judge.
from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable, ExceptionRetryPolicy, Param, RetryRule, task
before = set(sys.modules)
answer = {"seconds": {}, "errors": {}, "dags": {}}
for path in sys.argv[1:]:
    began = time.process_time()
    try:
        found = runpy.run_path(path)
    except Exception as error:
        answer["errors"][path] = f"{type(error).__name__}: {error}"
        continue
    answer["seconds"][path] = time.process_time() - began
    for dag in (value for value in found.values() if isinstance(value, DAG)):
        answer["dags"][dag.dag_id] = {
            "display": dag.dag_display_name, "tags": sorted(dag.tags), "doc": dag.doc_md, "catchup": dag.catchup,
            "max_active_runs": dag.max_active_runs, "timeout_s": dag.dagrun_timeout.total_seconds(),
            "schedule": str(dag.schedule), "starts": str(dag.start_date),
            "params": {name: dag.params.get_param(name).schema for name in dag.params},
            "says": {name: dag.params.get_param(name).description for name in dag.params},
            "tasks": {
                task.task_id: {"owner": task.owner, "queue": task.queue, "pool": task.pool, "retries": task.retries,
                               "policy": task.retry_policy is not None, "after": sorted(task.upstream_task_ids)}
                for task in dag.tasks},
        }
answer["imported"] = sorted({name.split(".")[0] for name in set(sys.modules) - before})
print(json.dumps(answer))
"""


def parse(topology: Path | None, home: Path, *, dag_id: str | None = None) -> dict[str, Any]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "TWINLOG", "_AIR"))}
    environ |= {"AIRFLOW_HOME": str(home), "PYTHONPATH": str(INCLUDE)}
    if topology is not None:
        environ["TWINLOG_TOPOLOGY"] = str(topology)
    if dag_id is not None:
        environ["_AIRFLOW_PARSING_CONTEXT_DAG_ID"] = dag_id
    files = sorted(str(path) for path in DAGS.glob("*.py"))
    done = subprocess.run(
        [sys.executable, "-c", PARSE, *files], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dags")


@pytest.fixture(scope="module")
def topology(folder: Path) -> Path:
    path = folder / "topology.yaml"
    path.write_text(TOPOLOGY)
    return path


@pytest.fixture(scope="module")
def parsed(topology: Path, folder: Path) -> dict[str, Any]:
    return parse(topology, folder / "airflow")


def test_there_is_no_import_error(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}


def test_parsing_a_file_takes_under_a_second(parsed: dict[str, Any]) -> None:
    assert set(parsed["seconds"]) == {str(path) for path in DAGS.glob("*.py")}
    # Of the processor, which others on the machine do not slow down.
    assert max(parsed["seconds"].values()) < 1.0


def test_parsing_imports_neither_spark_nor_a_kafka_client(parsed: dict[str, Any]) -> None:
    assert HEAVY.isdisjoint(parsed["imported"])
    assert "twinlog" in parsed["imported"], "the list is of what the files imported"


def test_each_flow_has_its_dags(parsed: dict[str, Any]) -> None:
    assert set(parsed["dags"]) == {f"{verb}__{flow}" for verb in VERBS for flow in ("nyc_to_lon", "lon_to_nyc")}


def test_a_dag_says_what_it_is(parsed: dict[str, Any]) -> None:
    for dag_id, dag in parsed["dags"].items():
        verb, _, ends = dag_id.partition("__")
        source, _, target = ends.partition("_to_")
        assert dag["display"] == f"{verb} {source}->{target}"
        assert dag["tags"] == sorted([f"source:{source}", verb, f"target:{target}", "twinlog"])
        assert "nyc.example.com:9092" in dag["doc"]
        assert "--- prefixed ---" in dag["doc"]


def test_a_dag_runs_once_at_a_time_and_not_for_ever(parsed: dict[str, Any]) -> None:
    for name, dag in parsed["dags"].items():
        assert dag["max_active_runs"] == 1
        assert dag["catchup"] is False
        # What comes home, or is copied again, may be much, and what is moved is most; they wait for people, too.
        days = {"failback": 2, "repair": 2, "switchover": 1, "migrate": 90}.get(name.partition("__")[0], 1 / 12)
        assert 0 < dag["timeout_s"] <= days * 86_400


def test_a_dag_starts_in_the_past_or_a_continuous_one_would_run_once_only(parsed: dict[str, Any]) -> None:
    assert {dag["starts"] for dag in parsed["dags"].values()} == {"2020-01-01 00:00:00+00:00"}


def test_tasks_have_an_owner_a_retry_policy_and_the_queue_and_pool_of_their_clusters(parsed: dict[str, Any]) -> None:
    for dag_id, dag in parsed["dags"].items():
        for task in dag["tasks"].values():
            assert task["owner"] == "twinlog"
            assert task["policy"]
            assert task["queue"] == ("beside_lon" if dag_id.endswith("_to_lon") else "default")
            assert task["pool"] in {"beside_nyc", "default_pool"}
    tasks = parsed["dags"]["mirror__nyc_to_lon"]["tasks"]
    assert {name for name, task in tasks.items() if task["pool"] == "beside_nyc"} == {"copy", "checkpoint"}


def test_a_mirror_run_plans_copies_records_and_checkpoints(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["mirror__nyc_to_lon"]
    assert dag["schedule"] == "@continuous"
    assert {name: task["after"] for name, task in dag["tasks"].items()} == {
        "plan": [],
        "copy": ["plan"],
        "record": ["copy", "plan"],
        # Not behind `copy`: where a partition can't be copied, the groups of the others go on.
        "checkpoint": ["record"],
        "end": ["checkpoint", "copy"],
    }


def test_a_migration_goes_on_only_after_somebody_s_yes(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["migrate__nyc_to_lon"]
    order = ["settings", "backfill", "live", "prove", "plan", "approve", "cut_over", "offer", "approve_clean_up"]
    after = {name: task["after"] for name, task in dag["tasks"].items()}
    assert after == {"settings": [], **dict(zip([*order[1:], "clean_up"], [[name] for name in order], strict=True))}
    assert dag["schedule"] == "None"


def test_every_field_of_a_form_is_explained_and_bounded(parsed: dict[str, Any]) -> None:
    for dag in parsed["dags"].values():
        for name, schema in dag["params"].items():
            assert schema["title"]
            assert len(dag["says"][name]) > 20
    fields = parsed["dags"]["mirror__nyc_to_lon"]["params"]
    assert set(fields) == {"max_bytes", "max_seconds", "until", "topics"}
    assert (fields["max_bytes"]["minimum"], fields["max_bytes"]["maximum"]) == (1, 1000)


def test_a_task_parses_only_the_dag_that_it_is_of(topology: Path, tmp_path: Path) -> None:
    assert set(parse(topology, tmp_path, dag_id="mirror__lon_to_nyc")["dags"]) == {"mirror__lon_to_nyc"}


def test_a_wrong_topology_is_one_error_that_names_the_line(tmp_path: Path) -> None:
    topology = tmp_path / "topology.yaml"
    topology.write_text(TOPOLOGY.replace("topics: [orders]", "topcs: [orders]", 1))
    found = parse(topology, tmp_path / "airflow")
    assert set(found["errors"]) == {str(ONE_THAT_RAISES)}
    assert f"TopologyError: {topology}:6: " in found["errors"][str(ONE_THAT_RAISES)]
    assert "topics" in found["errors"][str(ONE_THAT_RAISES)]
    assert found["dags"] == {}


def test_while_the_topology_is_wrong_its_last_good_version_holds(tmp_path: Path) -> None:
    topology, home = tmp_path / "topology.yaml", tmp_path / "airflow"
    topology.write_text(TOPOLOGY)
    good = parse(topology, home)
    topology.write_text(TOPOLOGY.replace("topics: [orders]", "topcs: [orders]", 1))
    broken = parse(topology, home)
    topology.write_text(TOPOLOGY.replace("  lon->nyc: {topics: [orders]}\n", ""))
    mended = parse(topology, home)
    assert set(broken["errors"]) == {str(ONE_THAT_RAISES)}
    assert broken["dags"] == good["dags"]
    assert mended["errors"] == {}
    assert set(mended["dags"]) == {f"{verb}__nyc_to_lon" for verb in VERBS}


def test_no_topology_at_all_is_said_once(tmp_path: Path) -> None:
    found = parse(None, tmp_path / "airflow")
    assert set(found["errors"]) == {str(ONE_THAT_RAISES)}
    assert "ConfigurationError: No topology file is set" in found["errors"][str(ONE_THAT_RAISES)]


def test_a_disabled_flow_has_no_dag(tmp_path: Path) -> None:
    topology = tmp_path / "topology.yaml"
    topology.write_text(TOPOLOGY.replace("lon->nyc: {", "lon->nyc: {enabled: false, "))
    assert set(parse(topology, tmp_path / "airflow")["dags"]) == {f"{verb}__nyc_to_lon" for verb in VERBS}


def test_a_takeover_waits_for_a_yes_and_calls_its_hook_last(tmp_path: Path) -> None:
    topology = tmp_path / "topology.yaml"
    both = "hook.dag: move_dns, hook.timeout.seconds: 90, failover.automatic: true"
    topology.write_text(TOPOLOGY.replace("lon->nyc: {", f"lon->nyc: {{{both}, "))
    dags = parse(topology, tmp_path / "airflow")["dags"]

    assert {name for name in dags if name.startswith("watch__")} == {"watch__lon_to_nyc"}
    assert dags["watch__lon_to_nyc"]["schedule"] == "@continuous"
    for verb in ("failover", "switchover", "failback"):
        tasks = {name: task["after"] for name, task in dags[f"{verb}__lon_to_nyc"]["tasks"].items()}
        assert tasks == {"plan": [], "approve": ["plan"], verb: ["approve"], "hook": [verb]}
        without = {name: task["after"] for name, task in dags[f"{verb}__nyc_to_lon"]["tasks"].items()}
        assert without == {"plan": [], "approve": ["plan"], verb: ["approve"]}
    tasks = {name: task["after"] for name, task in dags["watch__lon_to_nyc"]["tasks"].items()}
    assert tasks == {"watch": [], "hook": ["watch"]}
    # What hangs on a source that is gone may hold every slot of its pool.
    assert {task["pool"] for task in dags["failover__nyc_to_lon"]["tasks"].values()} == {"default_pool"}
