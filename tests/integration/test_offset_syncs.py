"""Offset syncs that runs leave for tools made for MirrorMaker 2."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, producer, twins
from support.reading import read_committed
from support.syncing import Hand
from twinlog.model.naming import offset_syncs_topic
from twinlog.model.offsets import TopicPartition
from twinlog.wire.mirror_maker import OffsetSync


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    made = twins(nyc, lon, tmp_path, (topic,), emit_offset_syncs_enabled=True)
    made.create(topic, partitions=3)
    return made


def write(flow: Twins, topic: str, records: dict[int, int]) -> None:
    writer = producer(flow.source_servers)
    for partition, count in records.items():
        for number in range(count):
            writer.produce(topic, f"value {number}", partition=partition)
    assert writer.flush(30) == 0


def syncs(servers: str, flow: Twins) -> list[OffsetSync]:
    records = read_committed(servers, offset_syncs_topic(flow.flow))[0]
    return [
        OffsetSync.decode(seen.key, seen.value, "here")
        for seen in records
        if seen.key is not None and seen.value is not None
    ]


def test_a_run_tells_of_the_partitions_that_moved_and_of_no_others(flow: Twins, topic: str) -> None:
    write(flow, topic, {0: 5, 1: 2})
    first = flow.mirror()
    after_first = syncs(flow.source_servers, flow)
    idle = flow.mirror()
    write(flow, topic, {1: 1})
    flow.mirror()

    assert (first.failures, idle.failures) == ([], [])
    moved = [OffsetSync(TopicPartition(topic, 0), 4, 4), OffsetSync(TopicPartition(topic, 1), 1, 1)]
    assert sorted(after_first, key=lambda one: one.source) == moved
    # The first run's commit marker lies between the two records on the target.
    assert syncs(flow.source_servers, flow)[2:] == [OffsetSync(TopicPartition(topic, 1), 2, 3)]
    assert Hand(flow.source_servers).overrides(offset_syncs_topic(flow.flow))["cleanup.policy"] == "compact"


def test_they_may_be_kept_on_the_target(flow: Twins, topic: str) -> None:
    there = flow.with_settings(offset_syncs_topic_location="target")
    write(flow, topic, {2: 1})

    there.mirror()

    assert syncs(flow.target_servers, there) == [OffsetSync(TopicPartition(topic, 2), 0, 0)]
    assert offset_syncs_topic(there.flow) == f"mm2-offset-syncs.{flow.flow.source}.internal"
    assert offset_syncs_topic(flow.flow) not in Hand(flow.source_servers).topics()


def test_none_are_written_where_the_flow_says_so(flow: Twins, topic: str) -> None:
    write(flow, topic, {0: 1})

    assert flow.with_settings(emit_offset_syncs_enabled=False).mirror().recorded.records == 1

    assert offset_syncs_topic(flow.flow) not in Hand(flow.source_servers).topics()
