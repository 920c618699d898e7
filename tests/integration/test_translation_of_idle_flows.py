"""Brokers forget the positions of a flow that stands still; its offsets are translated all the same."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPartition
from kafka.errors import NoError

from local.kafka import KafkaClusters
from support.ledger_check import flow_positions
from support.mirroring import Twins, twins
from support.source_logs import fill, interleave, recreate
from twinlog.ledger.answers import Answer, How, NoAnswer
from twinlog.model.lanes import position_group
from twinlog.model.offsets import TopicPartition
from twinlog.operations.translate import translator

OFFSETS = 30


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path) -> Twins:
    """Two topics, copied."""
    name = f"idle-{uuid.uuid4().hex[:8]}"
    source, target = (kafka_pair[alias].bootstrap_servers for alias in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (name, f"{name}.busy"))
    for topic in flow.flow.topics:
        flow.create(topic)
        fill(source, topic, range(10))
    interleave(source, name, rounds=1)
    flow.mirror()
    return flow


def answers(flow: Twins, topic: str) -> list[Answer]:
    now = translator(flow.flow, flow.ends().target, flow.ledger)
    here, there = TopicPartition(topic, 0), TopicPartition(flow.twin(topic), 0)
    return [answer for offset in range(OFFSETS) for answer in (now.forward(here, offset), now.reverse(there, offset))]


def forget(flow: Twins, *topics: str) -> None:
    """Delete the flow's positions in these topics, as a broker does after offsets.retention.minutes."""
    admin = KafkaAdminClient(bootstrap_servers=flow.target_servers)
    try:
        partitions = [KafkaPartition(flow.twin(topic), 0) for topic in topics]
        outcomes = admin.delete_group_offsets(position_group(flow.flow.name), partitions)
    finally:
        admin.close()
    assert set(outcomes.values()) == {NoError}


@pytest.mark.parametrize("forgotten", [1, 2])
def test_every_answer_is_what_it_was(flow: Twins, forgotten: int) -> None:
    before = {topic: answers(flow, topic) for topic in flow.flow.topics}
    forget(flow, *flow.flow.topics[:forgotten])
    assert len(flow_positions(flow)) == 2 - forgotten

    assert {topic: answers(flow, topic) for topic in flow.flow.topics} == before
    assert {How.COPIED, How.NEXT, How.END} <= {answer.how for answer in before[flow.flow.topics[0]]}


def test_a_twin_that_was_made_anew_has_none_of_the_old_answers(flow: Twins) -> None:
    topic, _ = flow.flow.topics
    forget(flow, topic)
    recreate(flow.target_servers, flow.twin(topic))

    assert {answer.reason for answer in answers(flow, topic)} == {NoAnswer.NOT_MIRRORED}
