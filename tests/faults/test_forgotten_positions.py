"""Brokers forget committed offsets. A partition that was idle for that long is not copied again.

An offset may be committed with a time of its own after which it is forgotten; with that the week that brokers remember
for passes in seconds. The long test leaves it to a cluster that remembers for a minute, the least that can be set.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from kafka.protocol.consumer import OffsetCommitRequest
from kafka.protocol.metadata import CoordinatorType

from local.kafka import KafkaCluster, KafkaClusters, KafkaSpec, start
from support.feeding import Feeder
from support.groups import checkpoint, commit, commits
from support.ledger_check import await_settled, check_twins, flow_positions
from support.mirroring import Twins, twins
from support.waiting import await_condition
from twinlog.cluster.group_offsets import fetch_offsets
from twinlog.cluster.raw import RawClient
from twinlog.model.lanes import position_group
from twinlog.model.offsets import TopicPartition

PARTITIONS = 3
RETENTION_S = 60.0
RUN_EVERY_S = 10.0
SOON_S = 5.0

FORGETFUL = {
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
}

WITH_A_TIME_OF_ITS_OWN = 4
"""The last version of OffsetCommit that says how long to remember."""


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with start([KafkaSpec("forgetful", properties=FORGETFUL)], tmp_path_factory.mktemp("forgetful")) as clusters:
        yield clusters["forgetful"]


def test_positions_that_are_renewed_stay_and_those_that_are_gone_are_recovered(
    kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    kept, idle = (_copied(kafka_pair, kafka_pair["lon"], tmp_path / name) for name in ("kept", "idle"))
    before = flow_positions(idle.flow)
    # The renewed ones are due first, so that they would be gone when the others are.
    _forget_in(kept.flow, SOON_S)
    _forget_in(idle.flow, SOON_S + 3)
    # As when the last renewal was long ago.
    kept.flow.change_record(lambda record: replace(record, renewed_at_ms=0))
    assert kept.flow.mirror().recorded.records == 0

    await_condition(lambda: not flow_positions(idle.flow), "the positions to be forgotten")

    assert len(flow_positions(kept.flow)) == PARTITIONS
    check_twins(kept.flow, kept.topic)
    # All that they said, how far the source was seen included.
    assert idle.flow.mirror().recorded.records == 0
    assert flow_positions(idle.flow) == before
    _go_on(idle)


def test_groups_positions_that_a_pass_renews_stay_and_others_are_forgotten(
    kafka_pair: KafkaClusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = _copied(kafka_pair, kafka_pair["lon"], tmp_path / "groups")
    flow, topic = copied.flow, copied.topic
    kept, idle = f"kept-{topic}", f"idle-{topic}"
    for group in (kept, idle):
        commit(flow.source_servers, group, topic, {0: 3})
    assert checkpoint(flow, groups=(kept, idle)).commits == 2
    with flow.ends().target.raw() as target:
        for group, seconds in ((kept, SOON_S), (idle, SOON_S + 1)):
            offsets = target.run(fetch_offsets(target, [group])).groups[group]
            target.run(_commit_offsets(target, group, {at: (one.offset, "") for at, one in offsets.items()}, seconds))
    # As when the last renewal was long ago.
    monkeypatch.setattr("twinlog.operations.checkpoint.MOST_AGE_S", 0.0)
    assert checkpoint(flow, groups=(kept,)).commits == 1

    await_condition(lambda: not commits(flow.target_servers, idle), "the other group to be forgotten")

    assert len(commits(flow.target_servers, kept)) == 1
    assert checkpoint(flow, groups=(idle,)).commits == 1
    assert len(commits(flow.target_servers, idle)) == 1


@pytest.mark.long
def test_runs_with_nothing_to_copy_renew_positions_within_the_brokers_own_time(
    kafka_pair: KafkaClusters, forgetful: KafkaCluster, tmp_path: Path
) -> None:
    kept, idle = (_copied(kafka_pair, forgetful, tmp_path / name) for name in ("kept", "idle"))
    for copied in (kept, idle):
        # A group is named after its topic here.
        commit(copied.flow.source_servers, copied.topic, copied.topic, {0: 3})
        assert checkpoint(copied.flow, groups=(copied.topic,)).commits == 1
    began = time.monotonic()
    due = began

    def idle_is_forgotten() -> bool:
        # Runs of the one flow go on, with nothing to copy; of the other there are none.
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + RUN_EVERY_S
            assert kept.flow.mirror().recorded.records == 0
            checkpoint(kept.flow, groups=(kept.topic,))
        return not flow_positions(idle.flow) and not commits(idle.flow.target_servers, idle.topic)

    await_condition(idle_is_forgotten, "the positions to be forgotten", 2 * RETENTION_S)
    assert time.monotonic() - began > RETENTION_S / 2
    assert len(flow_positions(kept.flow)) == PARTITIONS
    assert len(commits(kept.flow.target_servers, kept.topic)) == 1
    check_twins(kept.flow, kept.topic)
    _go_on(idle)
    checkpoint(idle.flow, groups=(idle.topic,))
    assert len(commits(idle.flow.target_servers, idle.topic)) == 1


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


def _go_on(idle: _Copied) -> None:
    """A flow whose positions are forgotten copies what is new, and nothing again."""
    idle.feeder.feed(6, 100)
    await_settled(idle.flow.source_servers, idle.topic)
    before = idle.copied
    result = idle.flow.mirror()

    assert not result.failures
    assert len(flow_positions(idle.flow)) == PARTITIONS
    assert check_twins(idle.flow, idle.topic) == before + result.recorded.records


def _forget_in(flow: Twins, seconds: float) -> None:
    """Commit the flow's positions again as they are, to be forgotten after so long."""
    positions = {at: (one.offset, one.metadata()) for at, one in flow_positions(flow).items()}
    with flow.ends().target.raw() as target:
        target.run(_commit_offsets(target, position_group(flow.flow.name), positions, seconds))


async def _commit_offsets(
    target: RawClient, group: str, offsets: Mapping[TopicPartition, tuple[int, str]], seconds: float
) -> None:
    """Offsets with their metadata, to be forgotten after so long."""
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=int(seconds * 1000),
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.OffsetCommitRequestPartition(
                        partition_index=partition.partition,
                        committed_offset=offsets[partition][0],
                        committed_metadata=offsets[partition][1],
                    )
                    for partition in members
                ],
            )
            for name, members in groupby(sorted(offsets), key=lambda each: each.topic)
        ],
        version=WITH_A_TIME_OF_ITS_OWN,
    )
    answer = await target.request(request, await target.coordinator(CoordinatorType.GROUP, group))
    assert [one.error_code for each in answer.topics for one in each.partitions] == [0] * len(offsets)
