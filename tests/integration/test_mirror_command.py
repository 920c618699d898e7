"""A whole run as people start it: `twinlog mirror` on each kind of Spark, the same job under spark-submit, and what
the other commands say of it afterwards.

A run is a process of its own, because a process holds one kind of Spark session only; the others run in this one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.kafka import KafkaClusters
from support.mirroring import NO_HEARTBEATS, create_topic, producer
from support.reading import read_committed
from support.source_logs import fill
from twinlog import cli

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRESS = re.compile(r"^[\d,]+ of 1,000 records, \d+\.\d MB, \d+\.\d MB/s, \d+ s left$", re.MULTILINE)

Ask = Callable[..., dict[str, Any]]


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
                "defaults": {
                    "replication.factor": 1,
                    "journal.topic.replication.factor": 1,
                    "lanes": 2,
                    **NO_HEARTBEATS,
                },
                "flows": {f"nyc{mark}->lon{mark}": {"topics": [topic]}},
            }
        )
    )
    return path


@pytest.fixture
def ask(topology: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command in this process; its answer."""

    def answer(*arguments: str) -> dict[str, Any]:
        code = cli.main(["--topology", str(topology), "--json", *arguments])
        said = capsys.readouterr()
        assert code == 0, said.err
        answered: dict[str, Any] = json.loads(said.out)
        return answered

    return answer


def flow_of(topology: Path) -> str:
    (name,) = yaml.safe_load(topology.read_text())["flows"]
    return str(name)


def twin_of(topology: Path, topic: str) -> str:
    return f"{flow_of(topology).partition('->')[0]}.{topic}"


def in_a_process(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """With no Spark named but by the command and `environ`, wherever that of whoever runs the tests may be."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "TWINLOG_SPARK"))}
    return subprocess.run(
        command,
        env={**ours, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY / "include"), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def mirrored(topology: Path, **environ: str) -> dict[str, Any]:
    arguments = ["--topology", str(topology), "--json", "mirror", flow_of(topology)]
    done = in_a_process(sys.executable, "-m", "twinlog.cli", *arguments, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_run_on_spark_connect_and_what_follows(
    kafka_pair: KafkaClusters, topology: Path, topic: str, spark_connect: str, ask: Ask
) -> None:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    create_topic(nyc, topic, 4, {})
    writer = producer(nyc, compression_type="lz4")
    for number in range(4_000):
        writer.produce(topic, f"value {number}", f"key {number}", partition=number % 4)
    writer.flush()
    flow, twin = flow_of(topology), twin_of(topology, topic)

    result = mirrored(topology, TWINLOG_SPARK=spark_connect)

    assert (result["records"], result["partitions"], result["gaps"]) == (4_000, 4, {})
    assert read_committed(lon, twin) == read_committed(nyc, topic)

    answer = ask("translate", flow, topic, "1", "500")
    ahead = ask("translate", flow, topic, "1", "1003")
    assert answer["target"] == {"topic": twin, "partition": 1, "offset": 500}
    assert (ahead["target"], ahead["reason"], ahead["behind"]) == (None, "mirror behind", 3)

    rebuilt = ask("ledger", "rebuild", flow)
    assert rebuilt["rows"] == rebuilt["rows_before"] > 0
    assert ask("translate", flow, topic, "1", "500") == answer

    changed = ask("throttle", flow, "12.5")
    lifted = ask("throttle", flow, "off")
    assert (changed["throttle"], changed["before"]) == (12.5, None)
    assert (lifted["throttle"], lifted["before"]) == (None, 12.5)


def test_a_run_in_a_local_session_where_no_spark_is_named_and_status_before_and_after(
    kafka_pair: KafkaClusters, topology: Path, topic: str, ask: Ask
) -> None:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    create_topic(nyc, topic, 2, {})
    for partition in range(2):
        fill(nyc, topic, range(50), partition)

    never = ask("status")["flows"][0]
    result = mirrored(topology)
    even = ask("status")["flows"][0]
    copied = read_committed(nyc, topic)
    writer = producer(nyc)
    for _ in range(3):
        writer.produce(topic, "waiting", partition=1, timestamp=int((time.time() - 3600) * 1000))
    writer.flush()
    behind = ask("status")["flows"][0]

    assert (never["lag_records"], never["last_run"]) == (None, None)
    assert (result["records"], result["partitions"]) == (100, 2)
    assert read_committed(lon, twin_of(topology, topic)) == copied
    run = result["run"]
    assert (even["lag_records"], even["lag_seconds"], even["last_run"], even["state"]) == (0, 0.0, run, "active")
    assert behind["lag_records"] == 3
    assert 3600 <= behind["lag_seconds"] < 3900
    assert behind["lag"] == [{"topic": topic, "records": 3, "seconds": pytest.approx(3600, abs=300)}]


def test_the_same_job_under_spark_submit_says_how_far_it_has_come(
    kafka_pair: KafkaClusters, topology: Path, topic: str
) -> None:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    create_topic(nyc, topic, 2, {})
    for partition in range(2):
        fill(nyc, topic, [f"{number} ".ljust(1_000, ".") for number in range(500)], partition, batch_num_messages=10)
    # A megabyte at this rate takes longer than a log goes without its first line.
    settings = yaml.safe_load(topology.read_text())
    settings["defaults"] |= {"throttle": 0.25, "transaction.seconds": 1}
    topology.write_text(yaml.safe_dump(settings))

    done = in_a_process(
        str(Path(sys.executable).with_name("spark-submit")),
        "--master=local[2]",
        "--conf=spark.ui.enabled=false",
        str(REPOSITORY / "spark_jobs" / "copy_ranges.py"),
        f"--topology={topology}",
        f"--flow={flow_of(topology)}",
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["records"] == 1_000
    # spark-submit brings both streams of its driver on standard output; standard error is for its own log.
    assert PROGRESS.search(done.stdout), done.stdout + done.stderr
    assert read_committed(lon, twin_of(topology, topic)) == read_committed(nyc, topic)


ON_CONNECT = "connect"
SPARKS = [ON_CONNECT, *(pytest.param(how, marks=pytest.mark.long) for how in ("local[2,3]", "spark-submit"))]


@pytest.mark.parametrize("spark", SPARKS)
def test_tasks_that_spark_tries_again_copy_nothing_twice(  # noqa: PLR0917 - fixtures
    kafka_pair: KafkaClusters, spark_connect: str, topology: Path, topic: str, tmp_path: Path, spark: str
) -> None:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    create_topic(source, topic, 8, {})
    for partition in range(8):
        fill(source, topic, range(50), partition)
    folder = tmp_path / "failed"
    folder.mkdir()
    flow = flow_of(topology)

    where = {ON_CONNECT: spark_connect, "spark-submit": "local[2,3]"}.get(spark, spark)
    started_by = [sys.executable]
    if spark == "spark-submit":
        submit = Path(sys.executable).with_name("spark-submit")
        started_by = [str(submit), f"--master={where}", "--conf=spark.ui.enabled=false"]
    done = in_a_process(
        *started_by,
        str(REPOSITORY / "tests" / "support" / "fail_once.py"),
        *map(str, (topology, folder, flow, where)),
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["failed"], found["failures"], found["records"]) == (2, [], 400)
    assert read_committed(target, f"{flow.partition('->')[0]}.{topic}") == read_committed(source, topic)
