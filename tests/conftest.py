"""What many tests share: real Kafka clusters and a warm Spark, each started once, when first asked for.

Tests create topics under names of their own. One that kills, stops or pauses a broker takes a cluster of three and
leaves it whole; one that needs other settings starts a cluster of its own with `local.kafka.start`.

Run with `-n 2 --dist loadgroup`, each of the two processes has clusters of its own. Tests that share something dear run
in one of them, and those that take longest begin.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

from local import ports, spark
from local.kafka import KafkaCluster, KafkaClusters, KafkaSpec, start
from support.bare_python import bare_python

pytest_plugins = ["support.airflow_site", "support.guarded"]

# No deadlines: machines are shared, and how long an example takes says nothing about the code.
hypothesis.settings.register_profile("quick", max_examples=50, deadline=None)
hypothesis.settings.register_profile("long", max_examples=1_000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


_DEAR = (("airflow_site", "airflow"), ("three", "brokers"), ("trio", "brokers"), ("spark_connect", "spark"))
"""Fixtures that should be started once, dearest first, and the group that their tests are in."""


# First, since xdist reads the groups in a hook of the same name.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, (_, name) in enumerate(_DEAR)}
    groups = {item.nodeid: _group(item) for item in items if "/unit/" not in item.nodeid}
    for item in items:
        if item.nodeid in groups:
            item.add_marker(pytest.mark.xdist_group(groups[item.nodeid]))
    items.sort(key=lambda item: order.get(groups.get(item.nodeid, ""), len(order)))


def _group(item: pytest.Item) -> str:
    used = getattr(item, "fixturenames", ())
    return next((group for fixture, group in _DEAR if fixture in used), item.nodeid.partition("::")[0])


@pytest.fixture(scope="session")
def kafka_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClusters]:
    """Clusters `nyc` and `lon`, of one broker each, in plain text; offsets whose time has come are forgotten soon, and
    transactions that outlive theirs are ended soon: by default both are looked for far less often."""
    soon = {
        "offsets.retention.check.interval.ms": "1000",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    }
    specs = [KafkaSpec(name, properties=soon) for name in ("nyc", "lon")]
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
    """The address, `sc://...`, of a Spark Connect server whose workers have no twinlog but what is brought along; it
    tries a task that failed again, up to twice, and has a page of its own."""
    folder = tmp_path_factory.mktemp("spark")
    page = {"spark.ui.enabled": "true", "spark.ui.port": str(ports.free_ports(1)[0])}
    with spark.connect_server(folder, master="local[2,3]", conf=page, python=bare_python(folder / "python")) as url:
        yield url
