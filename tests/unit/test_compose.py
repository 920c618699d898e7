"""docker-compose.yaml is right, as far as that can be said without an engine."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import jsonschema
import pytest
import yaml

from local.places import REPOSITORY
from twinlog.intake.topology_file import load

ONE_SHOT = {"airflow-init"}


@pytest.fixture(scope="module")
def text() -> str:
    return (REPOSITORY / "docker-compose.yaml").read_text()


@pytest.fixture(scope="module")
def compose(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    return compose["services"]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The compose specification's, as the package check-jsonschema carries it."""
    file = resources.files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json")
    loaded: dict[str, Any] = json.loads(file.read_text())
    return loaded


def test_it_keeps_to_the_compose_specification(compose: dict[str, Any], schema: dict[str, Any]) -> None:
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(compose)] == []


def test_a_misspelt_key_would_be_found(compose: dict[str, Any], schema: dict[str, Any]) -> None:
    broken = {**compose, "services": {"postgres": {"image": "postgres", "healthchek": {}}}}
    with pytest.raises(jsonschema.ValidationError, match="healthchek"):
        jsonschema.validate(broken, schema)


def test_it_has_two_kafka_clusters_airflow_with_postgresql_and_spark(services: dict[str, Any]) -> None:
    assert set(services) == {
        "kafka-nyc",
        "kafka-lon",
        "postgres",
        "airflow-init",
        "airflow-apiserver",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
        "spark-master",
        "spark-worker",
        "spark-connect",
    }
    ids = {services[name]["environment"]["CLUSTER_ID"] for name in ("kafka-nyc", "kafka-lon")}
    assert len(ids) == 2


def test_kafka_is_the_version_of_the_embedded_default(services: dict[str, Any]) -> None:
    pom = (REPOSITORY / "include/local/pom.xml").read_text()
    version = re.search(r"<kafka.version>(.+)</kafka.version>", pom)
    assert version is not None
    assert {services[name]["image"] for name in ("kafka-nyc", "kafka-lon")} == {f"apache/kafka:{version[1]}"}


def test_every_service_that_stays_up_has_a_health_check(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if "healthcheck" not in service} == ONE_SHOT


def test_services_wait_for_the_state_of_those_they_need(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            expected = "service_completed_successfully" if needed in ONE_SHOT else "service_healthy"
            assert how == {"condition": expected}, f"{name} -> {needed}"
            assert needed in services


def test_every_secret_must_come_from_the_environment(text: str) -> None:
    # Every name that sounds like a secret takes its value from a variable that has no default.
    for line in text.splitlines():
        name, _, value = line.strip().partition(": ")
        if re.search(r"PASSWORD$|SECRET|_KEY$|SQL_ALCHEMY_CONN$", name):
            assert re.search(r"\$\{(\w+):\?set \1 in \.env\}", value), line
    assert not re.search(r"\$\{\w+(:?-)", text), "a variable has a default"


def test_the_example_environment_names_every_variable_and_gives_no_value(text: str) -> None:
    lines = (REPOSITORY / ".env.example").read_text().splitlines()
    offered = [line for line in lines if line and not line.startswith("#")]
    assert all(line.endswith("=") for line in offered)
    assert {line[:-1] for line in offered} == set(re.findall(r"\$\{(\w+):\?", text))


def test_every_mounted_or_copied_path_exists(compose: dict[str, Any], services: dict[str, Any]) -> None:
    for name, service in services.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            known = (REPOSITORY / source).exists() if source.startswith(".") else source in compose["volumes"]
            assert known, f"{name} mounts {source}"
    dockerfile = (REPOSITORY / "docker/Dockerfile").read_text()
    copied = [path for line in re.findall(r"^COPY (.+)$", dockerfile, re.MULTILINE) for path in line.split()[:-1]]
    assert copied
    assert [path for path in copied if not (REPOSITORY / path).exists()] == []


def test_nothing_is_published_beyond_this_machine(services: dict[str, Any]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_its_connections_are_those_of_its_topology(services: dict[str, Any]) -> None:
    topology = load(REPOSITORY / "docker/estate/topology.yaml")
    environment = services["airflow-scheduler"]["environment"]
    assert set(topology.flows) == {"nyc->lon"}
    for cluster in topology.clusters.values():
        assert cluster.connection is not None
        connection = json.loads(environment[f"AIRFLOW_CONN_{cluster.connection.upper()}"])
        assert connection["conn_type"] == "kafka"
        assert connection["extra"]["bootstrap.servers"] == cluster.bootstrap_servers
        assert cluster.bootstrap_servers.split(":")[0] in services
