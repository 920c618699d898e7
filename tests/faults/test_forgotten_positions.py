"""Brokers forget committed offsets. A partition that was idle for that long is not copied again.

One cluster of its own remembers offsets for a minute, the least that Kafka lets one set.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.kafka import KafkaCluster, KafkaClusters, KafkaSpec, start
from support.feeding import Feeder
from support.ledger_check import await_settled, check_twins, flow_positions
from support.mirroring import Twins, twins
from support.waiting import await_condition

PARTITIONS = 3
RETENTION_S = 60.0
RUN_EVERY_S = 10.0

FORGETFUL = {
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
}


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with start([KafkaSpec("forgetful", properties=FORGETFUL)], tmp_path_factory.mktemp("forgetful")) as clusters:
        yield clusters["forgetful"]


def test_positions_are_renewed_in_time_and_recovered_when_they_are_gone(
    kafka_pair: KafkaClusters, forgetful: KafkaCluster, tmp_path: Path
) -> None:
    kept, idle = (_copied(kafka_pair, forgetful, tmp_path / name) for name in ("kept", "idle"))
    began = time.monotonic()
    due = began

    def idle_is_forgotten() -> bool:
        # Runs of the one flow go on, with nothing to copy; of the other there are none.
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + RUN_EVERY_S
            assert kept.flow.mirror().recorded.records == 0
        return not flow_positions(idle.flow)

    await_condition(idle_is_forgotten, "the positions to be forgotten", 2 * RETENTION_S)
    assert time.monotonic() - began > RETENTION_S / 2
    assert len(flow_positions(kept.flow)) == PARTITIONS
    check_twins(kept.flow, kept.topic)

    idle.feeder.feed(6, 100)
    await_settled(idle.flow.source_servers, idle.topic)
    before = idle.copied
    result = idle.flow.mirror()

    assert not result.failures
    assert len(flow_positions(idle.flow)) == PARTITIONS
    assert check_twins(idle.flow, idle.topic) == before + result.recorded.records


class _Copied:
    def __init__(self, flow: Twins, topic: str) -> None:
        flow.create(topic, PARTITIONS)
        self.flow = flow
        self.topic = topic
        self.feeder = Feeder(flow.source_servers, topic, PARTITIONS)
        self.feeder.feed(5, 300)
        await_settled(flow.source_servers, topic)
        assert not flow.mirror().failures
        self.copied = check_twins(flow, topic)


def _copied(source: KafkaClusters, target: KafkaCluster, folder: Path) -> _Copied:
    topic = f"{folder.name}-{uuid.uuid4().hex[:8]}"
    return _Copied(twins(source["nyc"].bootstrap_servers, target.bootstrap_servers, folder, (topic,)), topic)
