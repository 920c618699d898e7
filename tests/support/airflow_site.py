"""A real Airflow for tests, started once: all four components on the repository's DAG and plugin folders.

Its topology has one flow between the clusters of `kafka_pair` and one to a cluster that does not answer. A test that
changes the file puts it back; the others rely on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from local import airflow, places, ports
from local.airflow import LocalAirflow
from local.airflow_client import AirflowClient, await_condition
from local.kafka import KafkaClusters

# Importing Airflow makes its home folder; the one of whoever runs the tests is not touched.
os.environ["AIRFLOW_HOME"] = str(places.work_folder() / "test-airflow")

GOOD_DAG = "status__nyc_to_lon"
GONE_DAG = "status__nyc_to_gone"
PARSE_TIMEOUT_S = 90


@dataclass(frozen=True)
class Site:
    running: LocalAirflow
    topology: Path

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


@pytest.fixture(scope="session")
def airflow_site(kafka_pair: KafkaClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("airflow")
    topology = folder / "topology.yaml"
    topology.write_text(f"""\
clusters:
  nyc: {{bootstrap.servers: "{kafka_pair["nyc"].bootstrap_servers}", connection: kafka_nyc}}
  lon: {{bootstrap.servers: "{kafka_pair["lon"].bootstrap_servers}", connection: kafka_lon}}
  gone: {{bootstrap.servers: "{ports.HOST}:{ports.free_ports(1)[0]}"}}
ledger: ./ledger
flows:
  nyc->lon: {{topics: [".*"]}}
  nyc->gone: {{topics: [".*"]}}
""")
    with airflow.start(folder / "home", environ={"TWINLOG_TOPOLOGY": str(topology)}) as running:
        for name, cluster in kafka_pair.items():
            running.client.put_kafka_connection(f"kafka_{name}", cluster.client_settings())
        for dag_id in (GOOD_DAG, GONE_DAG):
            running.client.await_dag(dag_id, PARSE_TIMEOUT_S)
            running.client.unpause(dag_id)
        yield Site(running, topology)
