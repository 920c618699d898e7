"""What many tests share: real Kafka clusters and a warm Spark, each started once, when first asked for.

Tests create topics under names of their own. One that kills, stops or pauses a broker takes a cluster of three and
leaves it whole; one that needs other settings starts a cluster of its own with `local.kafka.start`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

from local import spark
from local.kafka import KafkaCluster, KafkaClusters, KafkaSpec, start

pytest_plugins = ["support.airflow_site", "support.guarded"]

# No deadlines: machines are shared, and how long an example takes says nothing about the code.
hypothesis.settings.register_profile("quick", max_examples=50, deadline=None)
hypothesis.settings.register_profile("long", max_examples=1_000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def kafka_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClusters]:
    """Clusters `nyc` and `lon`, of one broker each, in plain text; offsets whose time has come are forgotten soon."""
    forgetting = {"offsets.retention.check.interval.ms": "1000"}
    specs = [KafkaSpec(name, properties=forgetting) for name in ("nyc", "lon")]
    with start(specs, tmp_path_factory.mktemp("pair")) as clusters:
        yield clusters


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A cluster of three brokers whose SASL_SSL listener wants TLS and SCRAM, or PLAIN, together."""
    spec = KafkaSpec("trio", brokers=3, tls=True, scram={"alice": 'a "word"'}, plain={"bob": "bob's word"})
    with start([spec], tmp_path_factory.mktemp("trio")) as clusters:
        yield clusters["trio"]


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A cluster of three brokers in plain text, each in its rack; consumers may read from the nearest."""
    nearest = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with start([KafkaSpec("three", brokers=3, properties=nearest)], tmp_path_factory.mktemp("three")) as clusters:
        yield clusters["three"]


@pytest.fixture(scope="session")
def spark_connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address, `sc://...`, of a Spark Connect server."""
    with spark.connect_server(tmp_path_factory.mktemp("spark")) as url:
        yield url
