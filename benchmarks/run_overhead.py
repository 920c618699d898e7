"""Measures what Airflow adds: an idle run of a flow of 100 partitions from its schedule to done, with its parts, and
how long a record takes to be readable on the target while the flow runs again and again.

    python -m benchmarks.run_overhead [--quick]

Two clusters of one broker, a warm Spark Connect server and an Airflow (scheduler, API server, DAG processor, triggerer,
SQLite) share the machine. Runs of the flow are `@continuous`. Aims: under 8 s for an idle run; 10 s in the median from
a record's being produced to its being readable by a consumer that reads what is committed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

from benchmarks.support import loads, table
from confluent_kafka import Consumer, Producer

from local import airflow, kafka, spark
from local.airflow import LocalAirflow
from local.airflow_client import await_condition
from local.kafka import KafkaClusters, KafkaSpec
from local.processes import termination_as_exit
from twinlog.airflow.ids import dag_ids

FLOW = "source->target"
TOPIC = "load"
PARTITIONS = 100
DAG_ID = dag_ids("mirror", [FLOW])[FLOW]
IDLE_RUNS, IDLE_RUNS_QUICK = 20, 6
PRODUCE_S, PRODUCE_S_QUICK = 120.0, 40.0
PER_SECOND = 5
TIMEOUT_S = 300.0

PARTS = (
    ("the scheduler takes the run up", "run_after", "start_date"),
    ("the first task is queued", "start_date", "task queued"),
    ("its process starts", "task queued", "task start"),
    ("it looks at both clusters", "task start", "task end"),
    ("the run is called done", "task end", "end_date"),
    ("from schedule to done", "run_after", "end_date"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    options.add_argument("--quick", action="store_true", help="fewer runs, for less time")
    quick = options.parse_args(arguments).quick
    with (
        termination_as_exit(),
        tempfile.TemporaryDirectory(prefix="twinlog-bench.") as folder,
        site(Path(folder)) as (running, clusters),
    ):
        measure(running, clusters, quick=quick)
    return 0


@contextmanager
def site(folder: Path) -> Iterator[tuple[LocalAirflow, KafkaClusters]]:
    with ExitStack() as running:
        specs = [KafkaSpec("source"), KafkaSpec("target")]
        clusters = running.enter_context(kafka.start(specs, folder / "kafka", _quietly))
        loads.create_topic(clusters["source"].bootstrap_servers, TOPIC, PARTITIONS)
        spark_url = running.enter_context(spark.connect_server(folder / "spark", report=_quietly))
        topology = folder / "topology.yaml"
        topology.write_text(
            f"""\
clusters:
  source: {{bootstrap.servers: "{clusters["source"].bootstrap_servers}", connection: kafka_source}}
  target: {{bootstrap.servers: "{clusters["target"].bootstrap_servers}", connection: kafka_target}}
ledger: ./ledger
spark: {spark_url}
defaults: {{replication.factor: 1}}
flows:
  {FLOW}: {{topics: [{TOPIC}], schedule: "@continuous"}}
"""
        )
        environ = {"TWINLOG_TOPOLOGY": str(topology)}
        started = running.enter_context(airflow.start(folder / "airflow", environ=environ, report=_quietly))
        for name, cluster in clusters.items():
            started.client.put_kafka_connection(f"kafka_{name}", cluster.client_settings())
        started.client.await_dag(DAG_ID, TIMEOUT_S)
        yield started, clusters


def measure(running: LocalAirflow, clusters: KafkaClusters, *, quick: bool) -> None:
    client = running.client
    _say(f"load at the beginning: {os.getloadavg()[0]:.1f}")
    client.unpause(DAG_ID)
    (first,) = await_condition(lambda: client.runs(DAG_ID)[-1:], TIMEOUT_S, "the first run")
    if client.await_run(first, TIMEOUT_S).state != "success":
        raise SystemExit(f"the first run failed: {client.task_log(first, 'plan')}")

    wanted = IDLE_RUNS_QUICK if quick else IDLE_RUNS
    began = time.time()
    _say(f"idle: {wanted} runs over {PARTITIONS} partitions")
    idle = await_condition(
        lambda: _idle_runs(running, began)[wanted - 1 :] and _idle_runs(running, began), 1800, "runs"
    )
    rows = [(name, *_figures([_between(run, start, end) for run in idle])) for name, start, end in PARTS]
    starts = sorted(_moment(run["start_date"]) for run in idle)
    rows.append(("from one run's start to the next", *_figures([after - before for before, after in pairwise(starts)])))
    _print(("part", "median s", "worst s"), rows)

    seconds = PRODUCE_S_QUICK if quick else PRODUCE_S
    _say(f"busy: {PER_SECOND} records a second for {seconds:.0f} s")
    latencies = _latencies(clusters, seconds)
    _print(
        ("from produced to readable", "records", "median s", "p90 s", "worst s"),
        [
            (
                f"{PER_SECOND} records a second",
                str(len(latencies)),
                f"{statistics.median(latencies):.1f}",
                f"{statistics.quantiles(latencies, n=10)[-1]:.1f}",
                f"{max(latencies):.1f}",
            )
        ],
    )
    _say(f"load at the end: {os.getloadavg()[0]:.1f}")


def _idle_runs(running: LocalAirflow, since: float) -> list[dict[str, Any]]:
    """The runs since then that found nothing to do, with when their one task was queued, began and ended."""
    path = f"/api/v2/dags/{DAG_ID}/dagRuns"
    found = []
    for run in running.client.call("GET", f"{path}?order_by=-run_after&limit=60")["dag_runs"]:
        if run["state"] != "success" or _moment(run["run_after"]) < since:
            continue
        tasks = running.client.call("GET", f"{path}/{run['dag_run_id']}/taskInstances")["task_instances"]
        (plan,) = (task for task in tasks if task["task_id"] == "plan")
        if all(task["state"] == "skipped" for task in tasks if task is not plan):
            times = {"task queued": plan["queued_when"], "task start": plan["start_date"], "task end": plan["end_date"]}
            found.append({**run, **times})
    return found


def _latencies(clusters: KafkaClusters, seconds: float) -> list[float]:
    """Of records written to every partition in turn, as a consumer of the target finds them."""
    enough, sent, arrived = Event(), 0, list[float]()
    target = Consumer(
        {
            **clusters["target"].client_settings(),
            "group.id": "run-overhead",
            "isolation.level": "read_committed",
            "auto.offset.reset": "latest",
        }
    )
    target.subscribe([f"source.{TOPIC}"])
    await_condition(lambda: (target.poll(0.1), len(target.assignment()) == PARTITIONS)[1], TIMEOUT_S, "the assignment")

    def read() -> None:
        while not enough.is_set():
            message = target.poll(0.2)
            if message is not None and message.error() is None:
                arrived.append(time.time() - float(message.value()))
        target.close()

    reading = Thread(target=read)
    reading.start()
    writer = Producer({**clusters["source"].client_settings(), "linger.ms": 0})
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        writer.produce(TOPIC, value=f"{time.time()}", partition=sent % PARTITIONS)
        writer.poll(0)
        sent += 1
        time.sleep(1 / PER_SECOND)
    writer.flush()
    try:
        await_condition(lambda: len(arrived) >= sent, TIMEOUT_S, f"{sent} records on the target")
    finally:
        enough.set()
        reading.join()
    return arrived


def _between(run: dict[str, Any], start: str, end: str) -> float:
    return _moment(run[end]) - _moment(run[start])


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _figures(seconds: list[float]) -> tuple[str, str]:
    return f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"


def _print(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for line in table.lines(header, rows):
        _say(line)


def _quietly(_: str) -> None:
    """Whoever runs it wants the figures."""


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
