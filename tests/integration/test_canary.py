"""Canaries on real clusters: clean ones, ones that somebody tampered with, and a flow that somebody else runs."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from local.kafka import KafkaCluster, KafkaClusters
from support.mirroring import Twins, producer, twins
from support.reading import read_committed
from support.source_logs import delete_records
from twinlog.cluster.copier import LaneReport
from twinlog.cluster.copy_order import CopyOrder, Executor, carry_out_here
from twinlog.errors import ConfigurationError
from twinlog.model.canary import canary_topic
from twinlog.operations.canary import Canary, CanaryResult
from twinlog.operations.lease import held
from twinlog.operations.mirror import Mirror


@pytest.fixture
def pair(kafka_pair: KafkaClusters, tmp_path: Path) -> Twins:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    settings = {"canary_topic_partitions": 3, "canary_records": 20}
    return twins(nyc, lon, tmp_path, (f"none-{uuid.uuid4().hex}",), **settings)


def fly(pair: Twins, execute: Executor = carry_out_here, timeout_s: float = 60.0) -> CanaryResult:
    ends = pair.ends()
    mirror = Mirror(pair.topology, pair.flow, ends, pair.ledger)
    return Canary(pair.flow, mirror, ends.source, ends.target).fly(execute, tasks=2, timeout_s=timeout_s)


def test_a_clean_round_and_another_on_the_same_topic(pair: Twins) -> None:
    first = fly(pair)
    second = fly(pair)

    for result in (first, second):
        assert result.verdict.clean, result
        assert (result.verdict.sent, result.verdict.arrived, result.partitions) == (60, 60, 3)
        assert result.verdict.latency_p50_s is not None
        assert 0 < result.verdict.latency_p50_s <= (result.verdict.latency_p99_s or 0) < result.seconds
        assert result.run is not None
        assert result.exit_code == 0
    topic = canary_topic(pair.flow.source)
    assert pair.read_target(topic) == pair.read_source(topic)


def test_the_topic_is_bounded_on_both_sides(pair: Twins) -> None:
    topic = canary_topic(pair.flow.source)
    fly(pair)

    for servers, name in ((pair.source_servers, topic), (pair.target_servers, pair.twin(topic))):
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        admin = AdminClient({"bootstrap.servers": servers})
        found = admin.describe_configs([resource])[resource].result()
        assert (found["retention.ms"].value, found["cleanup.policy"].value) == ("3600000", "delete")
        assert found["retention.bytes"].value == str(16 * 1024 * 1024)


def test_what_somebody_writes_into_the_twin_is_found(pair: Twins) -> None:
    topic = canary_topic(pair.flow.source)
    twin = pair.twin(topic)

    def tampering(orders: Sequence[CopyOrder]) -> list[LaneReport]:
        """The round is copied, then one record is written again as it is, and another with an altered value."""
        reports = carry_out_here(orders)
        writer = producer(pair.target_servers)
        same, other = read_committed(pair.source_servers, topic)[1][-2:]
        for record, value in ((same, same.value), (other, b"forged")):
            writer.produce(
                twin, value, record.key, partition=1, headers=list(record.headers), timestamp=record.timestamp[1]
            )
        assert writer.flush(30) == 0
        return reports

    verdict = fly(pair, tampering).verdict

    assert {fault: count for fault, count in verdict.faults.items() if count} == {"doubled": 2, "altered": 1}
    assert verdict.arrived == 60


def test_what_expired_before_it_was_copied_is_lost(pair: Twins) -> None:
    topic = canary_topic(pair.flow.source)

    def overtaken(orders: Sequence[CopyOrder]) -> list[LaneReport]:
        delete_records(pair.source_servers, topic, 5)
        return carry_out_here(orders)

    verdict = fly(pair, overtaken).verdict

    assert {fault: count for fault, count in verdict.faults.items() if count} == {"lost": 5}
    assert verdict.arrived == 55


def test_what_reaches_the_twin_in_another_order_is_told(pair: Twins) -> None:
    topic = canary_topic(pair.flow.source)

    def reversing(orders: Sequence[CopyOrder]) -> list[LaneReport]:
        """One partition's round is there backwards before the copy comes, which then is all doubles."""
        writer = producer(pair.target_servers)
        for record in reversed(read_committed(pair.source_servers, topic)[2]):
            writer.produce(
                pair.twin(topic), record.value, record.key, 2, headers=list(record.headers),
                timestamp=record.timestamp[1],
            )  # fmt: skip
        assert writer.flush(30) == 0
        return carry_out_here(orders)

    verdict = fly(pair, reversing).verdict

    assert {fault: count for fault, count in verdict.faults.items() if count} == {"doubled": 20, "out_of_order": 19}


def test_a_round_that_is_not_copied_is_late_and_not_lost(pair: Twins) -> None:
    result = fly(pair, lambda _: [], timeout_s=2.0)

    assert (result.verdict.late, result.verdict.lost, result.verdict.arrived) == (60, 0, 0)
    assert result.verdict.latency_p50_s is None
    assert result.exit_code == 1


def test_somebody_elses_run_brings_it(pair: Twins) -> None:
    """Another holds the flow's lease; when it ends, the round comes over all the same."""
    pair.mirror()  # makes the state topic that a lease is in
    ends = pair.ends()
    taken, give_back = threading.Event(), threading.Event()

    def another() -> None:
        with ends.target.raw() as target, held(pair.flow, ends.target, target, "another") as lease:
            assert lease.refused is None
            taken.set()
            give_back.wait(60)

    holder = threading.Thread(target=another)
    holder.start()
    assert taken.wait(30)
    try:
        while_held = fly(pair, timeout_s=2.0)
        threading.Timer(2.0, give_back.set).start()
        after = fly(pair)
    finally:
        give_back.set()
        holder.join()

    assert while_held.verdict.late == 60
    assert while_held.run is None
    assert "holds" in while_held.notes[0]
    assert after.verdict.clean


def test_a_partition_a_broker_under_one_name(three: KafkaCluster, kafka_pair: KafkaClusters, tmp_path: Path) -> None:
    servers = kafka_pair["lon"].bootstrap_servers
    pair = twins(three.bootstrap_servers, servers, tmp_path, ("none",), naming="identity", canary_records=5)

    result = fly(pair)

    assert result.verdict.clean, result
    assert result.partitions == 3
    assert result.twin == result.topic == canary_topic(pair.flow.source)


def test_a_flow_without_canaries_refuses(pair: Twins) -> None:
    with pytest.raises(ConfigurationError, match=r"canary\.enabled is false"):
        fly(pair.with_settings(canary_enabled=False))
