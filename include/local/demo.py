"""`make demo`: two Kafka clusters, a warm Spark and an Airflow, with one flow between the clusters, mirrored once.

    python -m local.demo [--once | --stop]

Each step prints a line. It stays up until Ctrl-C; with --once it ends after its last step. Everything it writes lies
in one folder that the next demo starts anew, and nothing it starts outlives it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from local import airflow, lock, places, ports, processes, spark
from local.airflow import LocalAirflow
from local.errors import LocalError, PreconditionError
from local.kafka import KafkaCluster, KafkaClusters, KafkaSpec, start
from twinlog.airflow.ids import dag_ids

FLOW = "nyc->lon"
TOPICS = {"orders": 3, "payments": 2}  # name: partitions
RECORDS = 1000

_AIRFLOW_PORT = 8080
_DAG_TIMEOUT_S = 120
_RUN_TIMEOUT_S = 120
_STOP_TIMEOUT_S = 120
_PRODUCE_TIMEOUT_S = 30
_MIRROR_TIMEOUT_S = 180
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m local.demo", description="Twinlog's demo.")
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--once", action="store_true", help="end after the last step")
    either.add_argument("--stop", action="store_true", help="stop a demo that is running and remove its files")
    asked = parser.parse_args(arguments)
    folder = places.work_folder() / "demo"
    lock_file = places.work_folder() / "demo.lock"
    try:
        if asked.stop:
            _stop(folder, lock_file)
            return 0
        with (
            processes.termination_as_exit(),
            lock.held(lock_file, "The demo", "`make demo-stop`"),
        ):
            _run(folder, once=asked.once)
    except LocalError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        # Whatever was up by then has been stopped on the way here.
        print("demo: interrupted while starting; everything is stopped", file=sys.stderr)
        return _INTERRUPTED
    return 0


def _run(folder: Path, *, once: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with ExitStack() as running:
        clusters = running.enter_context(start([KafkaSpec("nyc"), KafkaSpec("lon")], folder / "kafka", _say))
        _fill(clusters["nyc"])
        spark_url = running.enter_context(spark.connect_server(folder / "spark", report=_say))
        _query(spark_url)
        topology = _write_topology(folder / "topology.yaml", clusters, spark_url)
        _mirror(topology, clusters)
        site = running.enter_context(
            airflow.start(
                folder / "airflow", environ={"TWINLOG_TOPOLOGY": str(topology)}, port=_airflow_port(), report=_say
            )
        )
        _connect(site, clusters, spark_url)
        _show_status(site)
        _say(f"airflow: page of the flows at {site.url}/plugin/mirroring")
        _say(f"airflow: log in as {airflow.USER!r} with the password in {site.password_file}")
        if once:
            _say("demo: done")
        else:
            _say("demo: everything is up; Ctrl-C stops it")
            _await_interrupt()
    _say("demo: everything is stopped")


def _fill(cluster: KafkaCluster) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({**cluster.client_settings()})
    created = admin.create_topics([NewTopic(name, partitions, 1) for name, partitions in TOPICS.items()])
    for done in created.values():
        done.result()
    producer = Producer(cluster.client_settings())
    for topic in TOPICS:
        for number in range(RECORDS):
            producer.produce(topic, key=f"{topic}-{number % 100}", value=f'{{"number": {number}}}')
    left = producer.flush(_PRODUCE_TIMEOUT_S)
    if left:
        raise LocalError(f"{left} records could not be written to {cluster.name} in {_PRODUCE_TIMEOUT_S} s.")
    _say(f"kafka {cluster.name}: {RECORDS} records in each of {', '.join(TOPICS)}")


def _query(url: str) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(url).getOrCreate()
    try:
        rows = 1_000_000
        began = time.monotonic()
        total = session.range(rows).selectExpr("sum(id)").collect()[0][0]
        _say(f"spark: warm, summed {rows:,} rows to {total:,} in {time.monotonic() - began:.1f} s")
    finally:
        session.stop()


def _write_topology(file: Path, clusters: KafkaClusters, spark_url: str) -> Path:
    text = f"""\
# Written by the demo.
clusters:
  nyc: {{bootstrap.servers: "{clusters["nyc"].bootstrap_servers}", connection: kafka_nyc}}
  lon: {{bootstrap.servers: "{clusters["lon"].bootstrap_servers}", connection: kafka_lon}}
ledger: ./ledger
spark: {spark_url}
defaults: {{replication.factor: 1}}
flows:
  {FLOW}:
    topics: [{", ".join(TOPICS)}]
    groups: [".*"]
"""
    file.write_text(text)
    _say(f"topology: {file}")
    return file


def _mirror(topology: Path, clusters: KafkaClusters) -> None:
    """One run from the command line, and one offset translated by what it recorded."""
    connections = {
        f"AIRFLOW_CONN_KAFKA_{name.upper()}": json.dumps({"conn_type": "kafka", "extra": cluster.client_settings()})
        for name, cluster in clusters.items()
    }
    for words in (("mirror", FLOW), ("translate", FLOW, "orders", "0", "100")):
        done = subprocess.run(
            [sys.executable, "-m", "twinlog.cli", "--topology", str(topology), *words],
            env={**os.environ, **connections},
            capture_output=True,
            text=True,
            check=False,
            timeout=_MIRROR_TIMEOUT_S,
        )
        if done.returncode:
            raise LocalError(f"`twinlog {' '.join(words)}` ended with {done.returncode}: {done.stderr.strip()}")
        for line in done.stdout.splitlines():
            _say(f"twinlog {words[0]}: {line}")


def _airflow_port() -> int | None:
    """The port people know, or any free one."""
    try:
        ports.require_free([_AIRFLOW_PORT])
    except PreconditionError:
        return None
    return _AIRFLOW_PORT


def _connect(site: LocalAirflow, clusters: KafkaClusters, spark_url: str) -> None:
    for name, cluster in clusters.items():
        site.client.put_kafka_connection(f"kafka_{name}", cluster.client_settings())
    host, _, port = spark_url.removeprefix("sc://").partition(":")
    site.client.put_connection("twinlog_spark", "spark_connect", host=host, port=int(port))
    _say("airflow: connections kafka_nyc, kafka_lon and twinlog_spark made")


def _show_status(site: LocalAirflow) -> None:
    dag_id = dag_ids("status", [FLOW])[FLOW]
    site.client.await_dag(dag_id, _DAG_TIMEOUT_S)
    site.client.unpause(dag_id)
    run = site.client.await_run(site.client.trigger(dag_id), _RUN_TIMEOUT_S)
    _say(f"airflow: {dag_id} ended as {run.state}, see {site.client.run_link(run)}")
    if run.state != "success":
        raise LocalError(f"The run of {dag_id} failed; its log is at {site.client.run_link(run)}.")
    result = site.client.result(run, "status")
    for side in ("source", "target"):
        found = result[side]
        _say(f"airflow:   {side} {found['cluster']}: {found['topics']} topics, {found['partitions']} partitions")


def _await_interrupt() -> None:
    try:
        signal.pause()
    except KeyboardInterrupt:
        _say("demo: stopping")


def _stop(folder: Path, lock_file: Path) -> None:
    pid = lock.stop_holder(lock_file, _STOP_TIMEOUT_S)
    _say("demo: none was running" if pid is None else f"demo: stopped, it was process {pid}")
    shutil.rmtree(folder, ignore_errors=True)


def _say(line: str) -> None:
    # Into a pipe too, each line when it happens.
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
