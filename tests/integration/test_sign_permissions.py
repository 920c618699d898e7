"""Heartbeats and offset syncs where the source lets Twinlog read and not write."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from local.kafka import KafkaClusters, KafkaSpec, start
from local.kafka.spec import SASL_SSL
from support.mirroring import Twins, producer, twins
from support.signs import SIGNS
from support.syncing import Hand
from twinlog.errors import NotAuthorizedError
from twinlog.model.naming import HEARTBEATS, offset_syncs_topic
from twinlog.model.topology import Cluster
from twinlog.operations.heartbeat import emit_heartbeat

READER = "reader"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClusters]:
    spec = KafkaSpec("guarded", authorizer=True, scram={READER: "its word"})
    with start([spec], tmp_path_factory.mktemp("guarded")) as clusters:
        yield clusters


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(guarded: KafkaClusters, kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    """One whose user may do with the source what copying needs, and no more."""
    source = guarded["guarded"]
    made = twins(source.bootstrap_servers, kafka_pair["lon"].bootstrap_servers, tmp_path, (topic,), **SIGNS)
    made.create(topic)
    hand = Hand(source.bootstrap_servers)
    for operation in ("READ", "DESCRIBE_CONFIGS"):
        hand.allow(READER, operation, topic)
    settings = source.client_settings(SASL_SSL, READER)
    alias = made.flow.source
    guarded_source = Cluster(alias, settings.pop("bootstrap.servers"), settings=settings)
    return replace(made, topology=replace(made.topology, clusters={**made.topology.clusters, alias: guarded_source}))


def not_allowed(flow: Twins, operation: str, topic: str) -> str:
    return f"cluster {flow.flow.source}: User:{READER} is not allowed {operation} on topic {topic}, so "


def test_a_run_copies_and_names_each_missing_permission(flow: Twins, topic: str) -> None:
    writer = producer(flow.source_servers)
    writer.produce(topic, "value")
    writer.flush()

    result = flow.mirror()

    assert (result.failures, result.recorded.records) == ([], 1)
    said = "\n".join(result.notes)
    assert not_allowed(flow, "READ", HEARTBEATS) in said
    assert "set emit.heartbeats.enabled: false" in said
    assert not_allowed(flow, "CREATE", offset_syncs_topic(flow.flow)) in said
    assert "set emit.offset-syncs.enabled: false" in said


def test_the_command_says_which_permission_it_lacks(flow: Twins) -> None:
    hand = Hand(flow.source_servers)

    with pytest.raises(NotAuthorizedError) as creating:
        emit_heartbeat(flow.flow, flow.ends().source, flow.ends().target)
    hand.create(HEARTBEATS)
    hand.allow(READER, "DESCRIBE", HEARTBEATS)
    with pytest.raises(NotAuthorizedError) as writing:
        emit_heartbeat(flow.flow, flow.ends().source, flow.ends().target)
    hand.allow(READER, "WRITE", HEARTBEATS)
    written = emit_heartbeat(flow.flow, flow.ends().source, flow.ends().target)

    assert str(creating.value).startswith(not_allowed(flow, "CREATE", HEARTBEATS))
    assert str(writing.value).startswith(not_allowed(flow, "WRITE", HEARTBEATS))
    assert written.timestamp_ms is not None
    assert flow.mirror().notes[0].startswith(not_allowed(flow, "READ", HEARTBEATS))
