"""`make demo`: two Kafka clusters, a warm Spark and an Airflow that mirrors one to the other.

    python -m local.demo [--once | --stop]

Each step prints a line. It stays up, and the source is written to, until Ctrl-C; with --once it ends after its last
step. Everything it writes lies in one folder that the next demo starts anew, and nothing it starts outlives it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from local import airflow, demo_source, lock, places, ports, processes, spark
from local.airflow import LocalAirflow
from local.airflow_client import AirflowCallError, await_condition
from local.demo_source import GROUPS, PER_SECOND, RECORDS, TOPICS
from local.errors import LocalError, PreconditionError
from local.kafka import KafkaClusters, KafkaSpec, start
from twinlog.airflow.ids import dag_ids

FLOW = "nyc->lon"
SPARK_CONNECTION = "twinlog_spark"

_AIRFLOW_PORT = 8080
_DAG_TIMEOUT_S = 120
_RUN_TIMEOUT_S = 240
_STOP_TIMEOUT_S = 120
_COMMAND_TIMEOUT_S = 180
_SAY_EVERY_S = 10
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
        # Permissions need an authorizer; without a password one is allowed everything here.
        specs = [KafkaSpec("nyc", authorizer=True), KafkaSpec("lon", authorizer=True)]
        clusters = running.enter_context(start(specs, folder / "kafka", _say))
        demo_source.fill(clusters["nyc"])
        _say(f"kafka nyc: {RECORDS} records in each of {', '.join(TOPICS)}; groups {', '.join(GROUPS)} have read some")
        page = ports.free_ports(1)[0]
        spark_url = running.enter_context(spark.connect_server(folder / "spark", conf=_page(page), report=_say))
        _query(spark_url)
        topology = _write_topology(folder / "topology.yaml", clusters)
        site = running.enter_context(
            airflow.start(
                folder / "airflow", environ={"TWINLOG_TOPOLOGY": str(topology)}, port=_airflow_port(), report=_say
            )
        )
        _connect(site, clusters, spark_url)
        _mirror(site)
        _show_what_came(topology, clusters)
        _show_status(site)
        _say(f"airflow: page of the flows at {site.url}/plugin/mirroring")
        _say(f"airflow: log in as {airflow.USER!r} with the password in {site.password_file}")
        _say(f"spark: page of its sessions at http://{ports.HOST}:{page}/connect/")
        if once:
            _say("demo: done")
        else:
            _say(
                f"demo: everything is up, and {PER_SECOND} records a second are written to each topic; Ctrl-C stops it"
            )
            _go_on(site, clusters)
    _say("demo: everything is stopped")


def _page(port: int) -> dict[str, str]:
    return {"spark.ui.enabled": "true", "spark.ui.port": str(port)}


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


def _write_topology(file: Path, clusters: KafkaClusters) -> Path:
    text = f"""\
# Written by the demo.
clusters:
  nyc: {{bootstrap.servers: "{clusters["nyc"].bootstrap_servers}", connection: kafka_nyc}}
  lon: {{bootstrap.servers: "{clusters["lon"].bootstrap_servers}", connection: kafka_lon}}
ledger: ./ledger
spark: {SPARK_CONNECTION}
defaults: {{replication.factor: 1}}
flows:
  {FLOW}:
    topics: [{", ".join(TOPICS)}]
    groups: [".*"]
    schedule: "@continuous"
    emit.checkpoints.interval.seconds: 10
    sync.group.offsets.enabled: true
    sync.group.offsets.interval.seconds: 10
"""
    file.write_text(text)
    _say(f"topology: {file}")
    return file


def _mirror(site: LocalAirflow) -> None:
    """The flow is unpaused, and what was there is mirrored."""
    dag_id = dag_ids("mirror", [FLOW])[FLOW]
    site.client.await_dag(dag_id, _DAG_TIMEOUT_S)
    site.client.unpause(dag_id)
    _say(f"airflow: {dag_id} is unpaused and runs again and again, see {site.url}/dags/{dag_id}")
    (first,) = await_condition(lambda: site.client.runs(dag_id)[-1:], _RUN_TIMEOUT_S, f"a run of {dag_id}")
    run = site.client.await_run(first, _RUN_TIMEOUT_S)
    if run.state != "success":
        raise LocalError(f"The run of {dag_id} failed; its log is at {site.client.run_link(run)}.")
    recorded = site.client.result(run, "record")
    _say(
        f"airflow: {dag_id} mirrored {recorded['records']:,} records, {recorded['bytes']:,} bytes in "
        f"{recorded['seconds']:.1f} s, see {site.client.run_link(run)}"
    )
    for uri in sorted(site.client.asset_events(run)):
        _say(f"airflow:   updated {uri}")


def _show_what_came(topology: Path, clusters: KafkaClusters) -> None:
    """The same from the command line: one offset, one group, and what is allowed on the other side."""
    connections = {
        f"AIRFLOW_CONN_KAFKA_{name.upper()}": json.dumps({"conn_type": "kafka", "extra": cluster.client_settings()})
        for name, cluster in clusters.items()
    }
    for asked in (("translate", FLOW, "orders", "0", "100"), ("translate", FLOW, "--group", "billing")):
        done = subprocess.run(
            [sys.executable, "-m", "twinlog.cli", "--topology", str(topology), *asked],
            env={**os.environ, **connections},
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_TIMEOUT_S,
        )
        if done.returncode:
            raise LocalError(f"`twinlog {' '.join(asked)}` ended with {done.returncode}: {done.stderr.strip()}")
        for line in done.stdout.splitlines():
            _say(f"twinlog {asked[0]}: {line}")
    for permission in demo_source.permissions(clusters["lon"]):
        _say(f"kafka lon: {permission}")


def _airflow_port() -> int | None:
    """The port people know, or any free one."""
    try:
        ports.require_free([_AIRFLOW_PORT])
    except PreconditionError:
        return None
    return _AIRFLOW_PORT


def _connect(site: LocalAirflow, clusters: KafkaClusters, spark_url: str) -> None:
    """The connections that the topology names."""
    for name, cluster in clusters.items():
        site.client.put_kafka_connection(f"kafka_{name}", cluster.client_settings())
    host, _, port = spark_url.removeprefix("sc://").partition(":")
    site.client.put_connection(SPARK_CONNECTION, "spark_connect", host=host, port=int(port))
    _say(f"airflow: connections kafka_nyc, kafka_lon and {SPARK_CONNECTION} made")


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


def _go_on(site: LocalAirflow, clusters: KafkaClusters) -> None:
    """Write to the source until somebody stops it, and say now and then how far the target is."""
    twins = [f"nyc.{topic}" for topic in TOPICS]
    dag_id = dag_ids("mirror", [FLOW])[FLOW]
    try:
        with demo_source.producing(clusters["nyc"]):
            while True:
                time.sleep(_SAY_EVERY_S)
                there, here = (
                    demo_source.count(clusters["nyc"], list(TOPICS)),
                    demo_source.count(clusters["lon"], twins),
                )
                _say(f"demo: log ends are {there:,} on nyc, {here:,} on lon; {_newest(site, dag_id)}")
    except KeyboardInterrupt:
        _say("demo: stopping")


def _newest(site: LocalAirflow, dag_id: str) -> str:
    """How the newest run is; a laptop that slept is no reason to end the demo."""
    try:
        return f"the newest run is {site.client.runs(dag_id)[0].state}"
    except AirflowCallError as error:
        return f"of the runs nothing is known: {error}"


def _stop(folder: Path, lock_file: Path) -> None:
    pid = lock.stop_holder(lock_file, _STOP_TIMEOUT_S)
    _say("demo: none was running" if pid is None else f"demo: stopped, it was process {pid}")
    shutil.rmtree(folder, ignore_errors=True)


def _say(line: str) -> None:
    # Into a pipe too, each line when it happens.
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
