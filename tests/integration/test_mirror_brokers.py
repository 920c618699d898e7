"""Brokers that hang, or come back without what they had; those that are killed in a run are among the faults."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from local.kafka import KafkaCluster, KafkaClusters
from support.brokers import left_whole, replicas_of
from support.mirroring import Twins, create_topic, twins
from support.source_logs import fill
from support.waiting import await_condition
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.secrets import resolve
from twinlog.cluster.signal import Signal
from twinlog.cluster.source_partition import FetchSettings, Patience, SourcePartitionState
from twinlog.cluster.source_reader import SourceReader
from twinlog.model.figures import Figures
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.lanes import position_group
from twinlog.model.offsets import PartitionPair, TopicPartition
from twinlog.operations.mirror_result import MirrorResult

VALUE = "x" * 1_000
RECORDS = 4_000
SLOW_MB = 0.5
"""Some eight seconds for the records: long enough to do something in between."""
PARTITIONS = 6


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


def filled(source: str, target: str, folder: Path, topic: str, replicas: int, **settings: object) -> Twins:
    flow = twins(source, target, folder, (topic,), throttle=SLOW_MB, transaction_seconds=1, **settings)
    create_topic(source, topic, PARTITIONS, {}, replicas)
    for partition in range(PARTITIONS):
        values = [f"{number} {VALUE}" for number in range(RECORDS // PARTITIONS)]
        fill(source, topic, values, partition, batch_num_messages=10)
    return flow


def while_it_runs(flow: Twins, topic: str, act: Callable[[], None]) -> MirrorResult:
    """Do something once a run has copied its first records."""
    admin = AdminClient({"bootstrap.servers": flow.target_servers})
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: flow.mirror(tasks=1))
        await_condition(lambda: running.done() or flow.twin(topic) in admin.list_topics(timeout=10).topics, "a twin")
        await_condition(lambda: running.done() or any(flow.read_target(topic).values()), "a first commit")
        assert not running.done()
        act()
        return running.result()


def assert_complete(flow: Twins, topic: str, result: MirrorResult) -> None:
    """All of it by now, or with the next run; never a record lost, doubled or out of order."""
    assert result.findings == ()
    flow = flow.with_settings(throttle=None)
    assert flow.mirror().failures == []
    assert flow.read_target(topic) == flow.read_source(topic)


def test_a_target_broker_hangs_for_longer_than_a_request_may_take(
    three: KafkaCluster, kafka_pair: KafkaClusters, tmp_path: Path, topic: str
) -> None:
    settings = {"replication_factor": 3, "journal_topic_replication_factor": 3}
    source = kafka_pair["nyc"].bootstrap_servers
    flow = filled(source, three.bootstrap_servers, tmp_path, topic, 1, **settings)
    flow = flow.with_settings(overrides={"producer.request.timeout.ms": "1500"})

    def hang() -> None:
        three.pause_broker(0)
        try:
            # Its followers take over once its session has ended, and copying goes on without it.
            before = sum(map(len, flow.read_target(topic).values()))
            await_condition(
                lambda: sum(map(len, flow.read_target(topic).values())) > before, "copying goes on", timeout_s=60
            )
        finally:
            three.resume_broker(0)

    result = while_it_runs(flow, topic, hang)
    assert_complete(flow, topic, result)


def test_the_source_lost_copied_records_in_an_unclean_election(
    three: KafkaCluster, kafka_pair: KafkaClusters, tmp_path: Path, topic: str
) -> None:
    flow = twins(three.bootstrap_servers, kafka_pair["lon"].bootstrap_servers, tmp_path, (topic,))
    with left_whole(three):
        result, refused = lose_records(three, flow, topic)

    (finding,) = result.findings
    assert (finding.kind, finding.partition) == (FindingKind.TRUNCATED, TopicPartition(topic, 0))
    assert "before the position 20" in finding.message
    assert result.recorded.records == 0
    assert [record.value for record in flow.read_target(topic)[0]] == [str(number).encode() for number in range(20)]
    # A reader that was under way when it happened is told by the broker itself.
    (told,) = refused
    assert (told.kind, told.offset) == (FindingKind.TRUNCATED, 20)
    assert "the log was cut at 10, before offset 20" in told.message


def test_a_partition_that_nobody_leads_is_named_and_the_others_are_read(three: KafkaCluster, topic: str) -> None:
    create_topic(three.bootstrap_servers, topic, 3, {})
    for partition in range(3):
        fill(three.bootstrap_servers, topic, range(10), partition)
    admin = AdminClient({"bootstrap.servers": three.bootstrap_servers})
    leaders = {number: one.leader for number, one in admin.list_topics(topic).topics[topic].partitions.items()}
    access = ClusterAccess("three", resolve({"bootstrap.servers": three.bootstrap_servers}, environ={}))
    with left_whole(three), access.raw() as source:
        topic_id = source.run(source.metadata([topic])).topics[topic].topic_id
        assert topic_id is not None
        three.kill_broker(leaders[0])
        states = [
            SourcePartitionState(PartitionPair(topic, topic_id, topic, topic_id, number), 0, 10, 1 << 20, -1)
            for number in leaders
        ]
        settings = FetchSettings(patience=Patience(retries=3, backoff_s=0.05, backoff_max_s=0.1))
        reader = SourceReader(source, states, settings, Signal(), Figures())
        source.run(reader.run())

    assert reader.failure is None
    (refused,) = reader.refused
    assert (refused.kind, refused.partition, refused.offset) == (FindingKind.REFUSED, TopicPartition(topic, 0), 0)
    assert "gave no answer 4 times in a row" in refused.message
    assert "consumer.retries" in refused.message
    assert [state.at for state in states] == [0, 10, 10]


def lose_records(three: KafkaCluster, flow: Twins, topic: str) -> tuple[MirrorResult, list[Finding]]:
    """Copy 20 records of which an election leaves 10; what the next run says, and a reader that goes on."""
    unclean = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    create_topic(three.bootstrap_servers, topic, 1, unclean, replicas=2)
    fill(three.bootstrap_servers, topic, range(10))
    leader, follower = replicas_of(three, topic)
    three.stop_broker(follower)
    fill(three.bootstrap_servers, topic, range(10, 20))
    assert flow.mirror().recorded.records == 20
    # Two of three controllers are needed to elect anyone: the follower is back before anybody is asked.
    three.kill_broker(leader)
    three.restart_broker(follower)
    await_condition(lambda: replicas_of(three, topic)[0] == follower, "the follower leads", timeout_s=60)
    # Longer than what was copied, so that the log's length alone does not tell.
    fill(three.bootstrap_servers, topic, [f"new {number}" for number in range(30)])

    return flow.mirror(), read_on(flow, topic)


def read_on(flow: Twins, topic: str) -> list[Finding]:
    """Read the source from the committed position on, past every check that planning makes."""
    with flow.ends().target.raw() as target, flow.ends().reading.raw(beside=target) as source:
        twin = TopicPartition(flow.twin(topic), 0)
        position = target.run(fetch_positions(target, position_group(flow.flow.name)))[twin]
        pair = PartitionPair(topic, position.source_topic_id, twin.topic, position.target_topic_id, 0)
        state = SourcePartitionState(pair, position.offset, position.offset + 10, 1 << 20, position.leader_epoch)
        reader = SourceReader(source, [state], FetchSettings(), Signal(), Figures())
        source.run(reader.run())
        return reader.refused
