"""`twinlog mirror` and `twinlog translate` as people run them: their own process, on a Spark Connect server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.kafka import KafkaClusters
from support.mirroring import create_topic, producer, read_committed

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topology(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Path:
    mark = uuid.uuid4().hex[:6]
    path = tmp_path / "topology.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": {
                    f"nyc{mark}": {"bootstrap.servers": kafka_pair["nyc"].bootstrap_servers},
                    f"lon{mark}": {"bootstrap.servers": kafka_pair["lon"].bootstrap_servers},
                },
                "defaults": {"replication.factor": 1, "journal.topic.replication.factor": 1, "lanes": 2},
                "flows": {f"nyc{mark}->lon{mark}": {"topics": [topic]}},
            }
        )
    )
    return path


def flow_of(topology: Path) -> str:
    (name,) = yaml.safe_load(topology.read_text())["flows"]
    return str(name)


def twinlog(topology: Path, *arguments: str, spark: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "twinlog.cli", "--topology", str(topology), "--json", *arguments],
        env={**os.environ, "TWINLOG_SPARK": spark},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_run_on_spark_connect_and_a_translation(
    kafka_pair: KafkaClusters, topology: Path, topic: str, spark_connect: str
) -> None:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    create_topic(nyc, topic, 4, {})
    writer = producer(nyc, compression_type="lz4")
    for number in range(4_000):
        writer.produce(topic, f"value {number}", f"key {number}", partition=number % 4)
    writer.flush()
    flow = flow_of(topology)

    result = twinlog(topology, "mirror", flow, spark=spark_connect)
    answer = twinlog(topology, "translate", flow, topic, "1", "500", spark=spark_connect)
    ahead = twinlog(topology, "translate", flow, topic, "1", "1003", spark=spark_connect)

    assert (result["records"], result["partitions"], result["gaps"]) == (4_000, 4, {})
    twin = f"{flow.partition('->')[0]}.{topic}"
    assert read_committed(lon, twin) == read_committed(nyc, topic)
    assert answer["target"] == {"topic": twin, "partition": 1, "offset": 500}
    assert (ahead["target"], ahead["reason"], ahead["behind"]) == (None, "mirror behind", 3)

    rebuilt = twinlog(topology, "ledger", "rebuild", flow, spark=spark_connect)
    assert rebuilt["rows"] == rebuilt["rows_before"] > 0
    assert twinlog(topology, "translate", flow, topic, "1", "500", spark=spark_connect) == answer

    changed = twinlog(topology, "throttle", flow, "12.5", spark=spark_connect)
    lifted = twinlog(topology, "throttle", flow, "off", spark=spark_connect)
    assert (changed["throttle"], changed["before"]) == (12.5, None)
    assert (lifted["throttle"], lifted["before"]) == (None, 12.5)


@pytest.mark.long
def test_the_same_job_under_spark_submit(kafka_pair: KafkaClusters, topology: Path, topic: str) -> None:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    create_topic(nyc, topic, 2, {})
    writer = producer(nyc)
    for number in range(100):
        writer.produce(topic, f"value {number}", partition=number % 2)
    writer.flush()
    flow = flow_of(topology)
    # A Connect session of an earlier test leaves its mark in the environment, and a driver would take it for its own.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}

    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("spark-submit")),
            "--master=local[2]",
            "--conf=spark.ui.enabled=false",
            str(REPOSITORY / "spark_jobs" / "copy_ranges.py"),
            f"--topology={topology}",
            f"--flow={flow}",
        ],
        env={**environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY / "include")},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["records"] == 100
    twin = f"{flow.partition('->')[0]}.{topic}"
    assert read_committed(lon, twin) == read_committed(nyc, topic)


def test_status_says_how_far_a_flow_is_behind(
    kafka_pair: KafkaClusters, topology: Path, topic: str, spark_connect: str
) -> None:
    nyc = kafka_pair["nyc"].bootstrap_servers
    create_topic(nyc, topic, 2, {})
    writer = producer(nyc)
    writer.produce(topic, "copied", partition=0)
    writer.flush()
    flow = flow_of(topology)

    never = twinlog(topology, "status", spark=spark_connect)["flows"][0]
    run = twinlog(topology, "mirror", flow, spark=spark_connect)["run"]
    even = twinlog(topology, "status", spark=spark_connect)["flows"][0]
    an_hour_ago_ms = int((time.time() - 3600) * 1000)
    for _ in range(3):
        writer.produce(topic, "waiting", partition=1, timestamp=an_hour_ago_ms)
    writer.flush()
    behind = twinlog(topology, "status", spark=spark_connect)["flows"][0]

    assert (never["lag_records"], never["last_run"]) == (None, None)
    assert (even["lag_records"], even["lag_seconds"], even["last_run"], even["state"]) == (0, 0.0, run, "active")
    assert behind["lag_records"] == 3
    assert 3600 <= behind["lag_seconds"] < 3900
    assert behind["lag"] == [{"topic": topic, "records": 3, "seconds": pytest.approx(3600, abs=300)}]
