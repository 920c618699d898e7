"""What MirrorMaker 2's own client library, in Java, makes of a cluster that Twinlog mirrors to."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from local import preconditions
from local.kafka import KafkaClusters
from local.kafka_jars import class_path
from support.groups import checkpoint, commit
from support.mirroring import Twins, producer, twins
from support.signs import SIGNS, heartbeats_to_be_removed
from twinlog.intake.extensions import naming_of
from twinlog.ledger.store import Ledger
from twinlog.model.naming import HEARTBEATS, checkpoints_topic, offset_syncs_topic
from twinlog.model.topology import Cluster
from twinlog.operations.heartbeat import emit_heartbeat

CHECK = Path(__file__).parents[1] / "java" / "MirrorClientCheck.java"
GROUP = "billing"
POLICIES = {"prefixed": "DefaultReplicationPolicy", "identity": "IdentityReplicationPolicy"}


@dataclass(frozen=True)
class Library:
    """The compiled check."""

    java: Path
    classes: Path

    def ask(self, flow: Twins, *upstream: str) -> dict[str, Any]:
        """What it finds on the flow's target, with the hops from its source and from clusters behind that."""
        asked = {
            "client": {
                "bootstrap.servers": flow.target_servers,
                "replication.policy.class": f"org.apache.kafka.connect.mirror.{POLICIES[flow.flow.naming]}",
                "replication.policy.separator": flow.flow.replication_policy_separator,
                "source.cluster.alias": flow.flow.source,
            },
            "source": flow.source_servers,
            "alias": flow.flow.source,
            "hopsFrom": [flow.flow.source, *upstream],
            "group": GROUP,
            "heartbeats": naming_of(flow.flow).target_name(HEARTBEATS),
            "offsetSyncs": offset_syncs_topic(flow.flow),
        }
        done = subprocess.run(
            [
                str(self.java),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                f"{self.classes}:{class_path()}",
                CHECK.stem,
                json.dumps(asked),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    java = preconditions.java().resolve()
    classes = tmp_path_factory.mktemp("classes")
    done = subprocess.run(
        [str(java.with_name("javac")), "-Xlint:all", "-Werror", "-cp", class_path(), "-d", str(classes), str(CHECK)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Library(java, classes)


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture(params=[("prefixed", "."), ("prefixed", "_"), ("identity", ".")], ids="-".join)
def flow(request: pytest.FixtureRequest, kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Iterator[Twins]:
    naming, separator = request.param
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    settings = {
        **SIGNS,
        "emit_checkpoints_enabled": False,
        "naming": naming,
        "replication_policy_separator": separator,
    }
    with heartbeats_to_be_removed(nyc):
        yield twins(nyc, lon, tmp_path, (topic,), **settings)


def test_it_finds_the_source_its_topics_and_where_a_group_goes_on(flow: Twins, topic: str, library: Library) -> None:
    flow.create(topic, partitions=2)
    writer = producer(flow.source_servers)
    for number in range(10):
        writer.produce(topic, f"value {number}", partition=0)
    writer.flush()
    emitted = emit_heartbeat(flow.flow, flow.ends().source, flow.ends().target)
    assert flow.mirror().failures == []
    twin = naming_of(flow.flow).target_name(topic)
    # A rewind's record names more than one offset as ours, in bytes behind those that Java's reader looks at.
    for offset in (9, 7):
        commit(flow.source_servers, GROUP, topic, {0: offset}, metadata="as committed")
        assert checkpoint(flow, groups=(GROUP,), emit_checkpoints_enabled=True).records == 1

    found = library.ask(flow)

    source, target = flow.flow.source, flow.flow.target
    assert source in found["upstream"]
    assert found["hops"] == {source: 1}
    assert f"{source}{flow.flow.replication_policy_separator}heartbeats" in found["heartbeatTopics"]
    assert checkpoints_topic(flow.flow) in found["checkpointTopics"]
    assert twin in found["remoteTopics"]
    assert found["translated"] == {f"{twin}-0": 7}
    assert [source, target, emitted.timestamp_ms] in found["heartbeats"]
    assert [f"{topic}-0", 9, 9] in found["offsetSyncs"]
    assert {place for place, _, _ in found["offsetSyncs"]} == {f"{topic}-0", "heartbeats-0"}


def test_it_counts_the_hops_of_a_chain(kafka_pair: KafkaClusters, tmp_path: Path, topic: str, library: Library) -> None:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    first = twins(nyc, lon, tmp_path, (topic,), **SIGNS)
    start, middle, end = first.flow.source, first.flow.target, f"end-{topic}"
    onward = replace(first.flow, source=middle, target=end, topics=(first.twin(topic),))
    topology = replace(
        first.topology,
        clusters={**first.topology.clusters, end: Cluster(end, nyc)},
        flows={one.name: one for one in (first.flow, onward)},
    )
    ledger = Ledger(topology.ledger, middle, end)
    second = Twins(topology, onward, ledger, source_servers=lon, target_servers=nyc)
    first.create(topic)
    with heartbeats_to_be_removed(nyc), heartbeats_to_be_removed(lon):
        for flow in (replace(first, topology=topology), second):
            emit_heartbeat(flow.flow, flow.ends().source, flow.ends().target)
            assert flow.mirror().failures == []
        checkpoint(second, emit_checkpoints_enabled=True)

        found = library.ask(second, start)

    assert found["hops"] == {middle: 1, start: 2}
    assert {start, middle} <= set(found["upstream"])
    assert {f"{middle}.heartbeats", f"{middle}.{start}.heartbeats"} <= set(found["heartbeatTopics"])
    assert f"{middle}.{start}.{topic}" in found["remoteTopics"]
