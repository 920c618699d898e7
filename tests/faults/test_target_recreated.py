"""The target topic is deleted between runs: what comes in its place is filled from the beginning."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from local.kafka import KafkaClusters
from support.feeding import Feeder
from support.ledger_check import await_settled, check_twins
from support.mirroring import Twins, create_topic, twins
from support.waiting import await_condition

PARTITIONS = 2


@pytest.fixture
def topic() -> str:
    return f"recreated-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    servers = [kafka_pair[name].bootstrap_servers for name in ("nyc", "lon")]
    flow = twins(*servers, tmp_path, (topic,), transaction_bytes=4_000)
    flow.create(topic, PARTITIONS)
    return flow


@pytest.mark.parametrize("made_by", ["the run", "somebody else"])
def test_the_new_topic_is_filled_from_the_beginning(flow: Twins, topic: str, made_by: str) -> None:
    feeder = Feeder(flow.source_servers, topic, PARTITIONS)
    feeder.feed(7, 300)
    await_settled(flow.source_servers, topic)
    flow.mirror()
    earlier = check_twins(flow, topic)

    _delete(flow.target_servers, flow.twin(topic))
    if made_by == "somebody else":
        create_topic(flow.target_servers, flow.twin(topic), PARTITIONS, {})
    feeder.feed(8, 100)
    await_settled(flow.source_servers, topic)
    result = flow.mirror()

    assert check_twins(flow, topic) == result.recorded.records > earlier


def _delete(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result()
    await_condition(lambda: topic not in admin.list_topics(timeout=10).topics, f"{topic} to be gone")
