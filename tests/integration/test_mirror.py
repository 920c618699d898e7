from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, producer, twins


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    return twins(kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers, tmp_path, (topic,))


def test_runs_copy_what_is_new_once(flow: Twins, topic: str) -> None:
    flow.create(topic, partitions=3)
    writer = producer(flow.source_servers)
    for number in range(300):
        writer.produce(topic, f"value {number}", f"key {number}", partition=number % 3)
    writer.flush()

    first = flow.mirror()
    again = flow.mirror()
    for number in range(10):
        writer.produce(topic, f"late {number}", partition=0)
    writer.flush()
    late = flow.mirror()

    assert [result.failures for result in (first, again, late)] == [[], [], []]
    assert [result.recorded.records for result in (first, again, late)] == [300, 0, 10]
    assert flow.read_target(topic) == flow.read_source(topic)
