"""A real Airflow for tests, started once: all four components on the repository's DAG and plugin folders, with a warm
Spark, somebody who is told of what goes wrong, and a place where its metrics go.

Its topology has several flows between the clusters of `kafka_pair`, each under target aliases of its own, so that tests
share Airflow and nothing else, and one to a cluster that does not answer. A test that changes the file puts it back, as
the others rely on it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import airflow, places, ports
from local.airflow import LocalAirflow
from local.airflow_client import AirflowClient, DagRun, await_condition
from local.kafka import KafkaClusters
from support.mirroring import NO_HEARTBEATS
from support.reading import Seen, read_committed
from support.statsd import Measured, statsd
from support.webhook import Webhook, webhook
from twinlog.airflow.ids import dag_ids

# Importing Airflow makes its home folder; the one of whoever runs the tests is not touched.
os.environ["AIRFLOW_HOME"] = str(places.work_folder() / "test-airflow")

GOOD_DAG = "status__nyc_to_lon"
GONE_DAG = "status__nyc_to_gone"
PARSE_TIMEOUT_S = 90
RUN_TIMEOUT_S = 240
YEARLY = "0 0 1 1 *"
"""Runs once when it is unpaused, and then by hand."""

_OVER = ("success", "failed", "skipped")
_ROUNDS = 3

_QUIET = {**NO_HEARTBEATS, "canary.enabled": False, "sync.topic.acls.enabled": False, "lanes": 2}
_FLOWS: Mapping[str, Mapping[str, Any]] = {
    "lon": {"topics": ["to-lon-.*"], "schedule": "@continuous", **_QUIET},
    "asked": {"topics": ["to-asked-.*"], "recovery.point.seconds": 1, **_QUIET},
    "returned": {"topics": ["to-returned-.*"], "groups": ["to-returned-.*"], **_QUIET},
    "slow": {
        "topics": ["to-slow-.*"],
        "throttle": 0.1,
        "transaction.seconds": 1,
        "emit.checkpoints.interval.seconds": 1,
        **_QUIET,
    },
    "submitted": {"topics": ["to-submitted-.*"], "spark": "spark_master", **_QUIET},
    "moved": {
        "topics": ["to-moved-.*"],
        "groups": ["to-moved-.*"],
        "checkpoints.topic.replication.factor": 1,
        **_QUIET,
    },
    "period": {"topics": ["to-period-.*"], **_QUIET},
    "shared": {
        "topics": ["to-shared-.*"],
        "throttle": 0.1,
        "transaction.seconds": 1,
        "schedule": "@continuous",
        **_QUIET,
    },
    "taken": {
        "topics": ["to-taken-.*"],
        "groups": ["to-taken-.*"],
        "hook.dag": "move_dns",
        "recovery.point.seconds": 3600,
        "recovery.time.seconds": 600,
        **_QUIET,
    },
    "switched": {"topics": ["to-switched-.*"], "groups": ["to-switched-.*"], **_QUIET},
}
"""Flows from nyc, by the alias of their target, which is lon for all of them."""


@dataclass(frozen=True)
class Site:
    running: LocalAirflow
    topology: Path
    clusters: KafkaClusters
    spark: str
    told: Webhook
    measured: Measured

    @property
    def url(self) -> str:
        return self.running.url

    @property
    def client(self) -> AirflowClient:
        return self.running.client

    @property
    def password_file(self) -> Path:
        return self.running.password_file

    @contextmanager
    def changed_topology(self, text: str) -> Iterator[None]:
        """Another text in the file while inside; the good one, and parsed, afterwards."""
        before = self.topology.read_text()
        self.topology.write_text(text)
        try:
            yield
        finally:
            self.topology.write_text(before)
            await_condition(lambda: not self.client.import_errors(), PARSE_TIMEOUT_S, "the good topology to be parsed")

    @contextmanager
    def unpaused(self, dag_id: str) -> Iterator[None]:
        """Airflow starts the DAG's runs while inside; no task of it is under way before or afterwards."""
        self.client.unpause(dag_id)
        try:
            yield
        finally:
            self.client.pause(dag_id)
            self.client.await_rest(dag_id, RUN_TIMEOUT_S)

    def first_run(self, dag_id: str) -> DagRun:
        """The run that Airflow starts by itself when a DAG with a schedule is unpaused, once it has ended."""
        runs = await_condition(lambda: self.client.runs(dag_id), RUN_TIMEOUT_S, f"a run of {dag_id}")
        return self.client.await_run(runs[-1], RUN_TIMEOUT_S)

    def ended(self, run: DagRun) -> DagRun:
        """The run once it has ended, which is to be well."""
        done = self.client.await_run(run, RUN_TIMEOUT_S)
        assert done.state == "success", "\n".join(self._told_by(run, task) for task in self.client.task_ids(run))
        return done

    def by_hand_ended(self, dag_id: str, form: Mapping[str, Any] | None = None) -> DagRun:
        """A run that somebody has started, with what the form was filled in with, once it has ended well."""
        return self.ended(self.client.trigger(dag_id, form))

    def say(self, run: DagRun, task: str, option: str) -> None:
        """A person's answer, not as fast as a program could: one that comes before the scheduler knows that the asking
        process has ended is taken by Airflow for a process that was lost, and the task asks again, or fails."""

        def answered() -> bool:
            state = self.client.task(run, task)["state"]
            assert state in _OVER or not self.client.run(run).finished, f"{run.run_id} ended before {task} asked"
            if state == "awaiting_input":
                self._let_the_scheduler_go_round()
                self.client.answer(run, task, option)
            return state in _OVER

        await_condition(answered, RUN_TIMEOUT_S, f"{task} of {run.run_id} to be answered")

    def _let_the_scheduler_go_round(self) -> None:
        """It hears once a round of the processes that have ended, and its sign of life says when it has made one."""
        signs: set[str] = set()

        def rounds() -> bool:
            signs.add(self.client.call("GET", "/api/v2/monitor/health")["scheduler"]["latest_scheduler_heartbeat"])
            return len(signs) > _ROUNDS

        await_condition(rounds, RUN_TIMEOUT_S, "the scheduler to go round")

    def runs_beside(self, dag_id: str, known: set[str], count: int) -> list[DagRun]:
        """So many runs of the DAG that are not known yet, in the order in which they were due."""

        def found() -> list[DagRun]:
            new = [run for run in reversed(self.client.runs(dag_id)) if run.run_id not in known]
            return sorted(new, key=lambda run: run.run_id) if len(new) >= count else []

        return await_condition(found, RUN_TIMEOUT_S, f"{count} runs of {dag_id}")

    @contextmanager
    def by_hand(self, target: str) -> Iterator[str]:
        """The mirror DAG of a flow that runs once a year, unpaused and past its first run while inside."""
        dag_id = dag_of("mirror", target)
        with self.unpaused(dag_id):
            self.ended(self.first_run(dag_id))
            yield dag_id

    def both(self, topic: str) -> tuple[dict[int, list[Seen]], dict[int, list[Seen]]]:
        """What a reader sees of a topic on the source, and of its twin."""
        nyc, lon = (self.clusters[name].bootstrap_servers for name in ("nyc", "lon"))
        return read_committed(nyc, topic), read_committed(lon, f"nyc.{topic}")

    def _told_by(self, run: DagRun, task: str) -> str:
        tried = self.client.task(run, task)
        log = self.client.task_log(run, task, tried["try_number"]) if tried["try_number"] else ""
        return f"{task}: {tried['state']}\n{log}"


def dag_of(verb: str, target: str) -> str:
    """The id of a DAG of the flow from nyc to that target."""
    flow = f"nyc->{target}"
    return dag_ids(verb, [flow])[flow]


def connect(client: AirflowClient, clusters: KafkaClusters, spark: str, told: Webhook) -> None:
    """The connections that the topology names, and the others that a site has."""
    for name, cluster in clusters.items():
        client.put_kafka_connection(f"kafka_{name}", cluster.client_settings())
    host, _, port = spark.removeprefix("sc://").partition(":")
    client.put_connection("spark_connect", "spark_connect", host=host, port=int(port))
    client.put_connection("spark_master", "spark", host="local[2]")
    client.put_connection("oncall", "http", host=told.url)
    client.put_pool("one_at_a_time", 1)


def describe(clusters: KafkaClusters, ledger: Path) -> str:
    """The topology's text."""
    nyc, lon = (clusters[name].bootstrap_servers for name in ("nyc", "lon"))
    targets = {alias: {"bootstrap.servers": lon, "connection": "kafka_lon"} for alias in _FLOWS}
    targets["submitted"]["pool"] = "one_at_a_time"
    gone = f"{ports.HOST}:{ports.free_ports(1)[0]}"
    described = {
        "clusters": {
            "nyc": {"bootstrap.servers": nyc, "connection": "kafka_nyc"},
            **targets,
            "gone": {"bootstrap.servers": gone},
        },
        "ledger": str(ledger),
        "spark": "spark_connect",
        "defaults": {
            "replication.factor": 1,
            "journal.topic.replication.factor": 1,
            "checkpoints.topic.replication.factor": 1,
            "schedule": YEARLY,
        },
        "flows": {
            **{f"nyc->{alias}": dict(settings) for alias, settings in _FLOWS.items()},
            "nyc->gone": {"topics": [".*"]},
        },
    }
    return yaml.safe_dump(described, sort_keys=False)


def environ_of(name: str, topology: Path) -> dict[str, str]:
    """What an Airflow is told: that it is the site of this name, and where its topology is."""
    bundles = {"ours": places.REPOSITORY / "dags", "tests": places.REPOSITORY / "tests" / "dags"}
    return {
        "TWINLOG_TOPOLOGY": str(topology),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(
            [
                {
                    "name": bundle,
                    "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
                    "kwargs": {"path": str(path)},
                }
                for bundle, path in bundles.items()
            ]
        ),
        "TWINLOG_SITE": name,
        "AIRFLOW__TWINLOG__NOTIFIERS": json.dumps(
            [{"class": "twinlog.airflow.webhook.WebhookNotifier", "connection_id": "oncall"}]
        ),
        # A worker that is lost is missed by its heartbeats only; by default after five minutes.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    }


@pytest.fixture(scope="session")
def airflow_site(
    kafka_pair: KafkaClusters, spark_connect: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("airflow")
    topology = folder / "topology.yaml"
    topology.write_text(describe(kafka_pair, folder / "ledger"))
    with webhook() as told, statsd() as measured:
        environ = {**environ_of("home", topology), **measured.environ}
        with airflow.start(folder / "home", environ=environ) as running:
            connect(running.client, kafka_pair, spark_connect, told)
            for dag_id in (GOOD_DAG, GONE_DAG):
                running.client.await_dag(dag_id, PARSE_TIMEOUT_S)
                running.client.unpause(dag_id)
            yield Site(running, topology, kafka_pair, spark_connect, told, measured)


@contextmanager
def another_airflow(site: Site, folder: Path) -> Iterator[Site]:
    """The Airflow of another site, called `away`, with a copy of the topology."""
    topology = folder / "topology.yaml"
    topology.write_text(site.topology.read_text())
    with airflow.start(folder / "home", environ=environ_of("away", topology)) as running:
        connect(running.client, site.clusters, site.spark, site.told)
        yield replace(site, running=running, topology=topology)
