"""Two clusters with the StandardAuthorizer, started once, and a mirror that is allowed only what ACLs give it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from local.kafka import KafkaClusters, KafkaSpec, start
from local.kafka.spec import SASL_SSL
from support.mirroring import Twins
from support.syncing import Hand
from twinlog.model.topology import Cluster

MIRROR = "mirror"
SHORT_RETENTION = {
    "log.retention.ms": "60000",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
}


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClusters]:
    """`nyc`, and `lon`, which by default would delete what nyc keeps; on PLAINTEXT everything is allowed."""
    users = {MIRROR: "its word", "alice": "hers"}
    specs = [
        KafkaSpec("nyc", authorizer=True, scram=users),
        KafkaSpec("lon", authorizer=True, scram={MIRROR: "its word"}, properties=SHORT_RETENTION),
    ]
    with start(specs, tmp_path_factory.mktemp("guarded")) as clusters:
        yield clusters


def as_mirror(flow: Twins, guarded: KafkaClusters) -> Twins:
    """The same flow, from nyc to lon or back, as a user who has only what ACLs give."""
    at_home = flow.source_servers == guarded["nyc"].bootstrap_servers
    names = ("nyc", "lon") if at_home else ("lon", "nyc")
    clusters = {}
    for alias, name in zip((flow.flow.source, flow.flow.target), names, strict=True):
        settings = guarded[name].client_settings(SASL_SSL, MIRROR)
        clusters[alias] = Cluster(alias, settings.pop("bootstrap.servers"), settings=settings)
    return replace(flow, topology=replace(flow.topology, clusters=clusters))


def allow_copying(flow: Twins, topic: str, source: Hand, target: Hand) -> None:
    """What a mirror needs to copy one topic, and nothing that lets it look at ACLs, quotas or users."""
    for operation in ("READ", "DESCRIBE", "DESCRIBE_CONFIGS"):
        source.allow(MIRROR, operation, topic)
    twins = topic if flow.flow.naming == "identity" else f"{flow.flow.source}."
    for operation in ("READ", "WRITE", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS"):
        target.allow(MIRROR, operation, internal_topics(flow), pattern="PREFIXED")
        target.allow(MIRROR, operation, twins, pattern="PREFIXED")
    for operation in ("WRITE", "DESCRIBE"):
        target.allow(MIRROR, operation, "twinlog.", kind="TRANSACTIONAL_ID", pattern="PREFIXED")
    target.allow(MIRROR, "READ", "twinlog.", kind="GROUP", pattern="PREFIXED")


def internal_topics(flow: Twins) -> str:
    """How the names of the topics begin that a flow keeps for itself on its target."""
    return f"twinlog.{flow.flow.source}.{flow.flow.target}."
