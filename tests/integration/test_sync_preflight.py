"""What a sync says of clusters that are not fit to hold twins, a lost broker included."""

from __future__ import annotations

import functools
import uuid
from pathlib import Path

from confluent_kafka.admin import NewTopic

from local.kafka import KafkaCluster, KafkaClusters, KafkaSpec, start
from local.kafka.properties import rack
from support.mirroring import Twins, twins
from support.syncing import Hand, sync
from support.waiting import await_condition
from twinlog.cluster.access import flow_access
from twinlog.cluster.visibility import topics_visible
from twinlog.operations.preflight import Concern, PreflightWarning
from twinlog.operations.status import status


def concerns(warnings: tuple[PreflightWarning, ...], cluster: str) -> dict[Concern, tuple[str, ...]]:
    return {warning.concern: warning.topics for warning in warnings if warning.cluster == cluster}


def told_by_status(flow: Twins) -> tuple[PreflightWarning, ...]:
    (found,) = status(flow.topology, functools.partial(flow_access, flow.topology)).flows
    return found.preflight


def test_a_single_broker_is_too_few_for_twins_and_internal_topics(kafka_pair: KafkaClusters, tmp_path: Path) -> None:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    servers = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    flow = twins(*servers, tmp_path, (topic,), emit_offset_syncs_enabled=True)
    flow.create(topic)

    before = sync(flow, dry_run=True).preflight, told_by_status(flow)
    first_run = flow.mirror().notes
    after = sync(flow, dry_run=True).preflight, told_by_status(flow)

    kept = {f"twinlog.{flow.flow.source}.{flow.flow.target}.{name}.internal" for name in ("journal", "state", "made")}
    syncs = f"mm2-offset-syncs.{flow.flow.target}.internal"
    for warnings in (*before, *after):
        here, there = (concerns(warnings, alias) for alias in (flow.flow.source, flow.flow.target))
        assert here[Concern.FEW_REPLICAS] == (syncs, topic)
        for concern in (Concern.FEW_REPLICAS, Concern.FEW_IN_SYNC):
            assert {*kept, flow.twin(topic)} <= set(there[concern])
    assert "__transaction_state" in concerns(after[0], flow.flow.target)[Concern.FEW_REPLICAS]
    few = [note.partition(":")[0] for note in first_run if "fewer than 3 replicas" in note]
    assert few == [f"cluster {alias}" for alias in (flow.flow.source, flow.flow.target)]


def move_to_rack(cluster: KafkaCluster, number: int, rack: str) -> None:
    """Start a broker again as one of another rack."""
    settings = cluster.folder / f"broker-{number}" / "server.properties"
    others = [line for line in settings.read_text().splitlines() if not line.startswith("broker.rack=")]
    cluster.stop_broker(number)
    settings.write_text("\n".join([*others, f"broker.rack={rack}", ""]))
    cluster.restart_broker(number)


def test_a_moved_broker_leaves_replicas_in_one_rack_and_a_lost_one_leaves_partitions_offline(tmp_path: Path) -> None:
    with start([KafkaSpec("trio", brokers=3)], tmp_path / "kafka") as clusters:
        cluster = clusters["trio"]
        hand = Hand(cluster.bootstrap_servers)
        wanted = [
            NewTopic("safe", 1, replica_assignment=[[0, 1, 2]], config={"min.insync.replicas": "2"}),
            NewTopic("close", 1, replica_assignment=[[0, 1]], config={"min.insync.replicas": "2"}),
            NewTopic("lonely", 1, replica_assignment=[[2]]),
        ]
        for future in hand.admin.create_topics(wanted).values():
            future.result()
        flow = twins(
            cluster.bootstrap_servers,
            cluster.bootstrap_servers,
            tmp_path,
            ("safe", "close", "lonely"),
            replication_factor="source",
            journal_topic_replication_factor=3,
        )
        with flow.ends().source.raw() as client:
            # A broker that has not heard of them yet would have the first sync find nothing to do.
            assert client.run(topics_visible(client, {"safe": 1, "close": 1, "lonely": 1}))
        sync(flow)
        before = sync(flow, dry_run=True)
        move_to_rack(cluster, 1, rack(0))
        moved = sync(flow, dry_run=True).preflight, told_by_status(flow)
        cluster.kill_broker(2)

        def lost() -> bool:
            return hand.admin.list_topics("lonely", timeout=10).topics["lonely"].partitions[0].leader == -1

        await_condition(lost, "the broker's partitions without a leader")
        after = sync(flow, dry_run=True)

    source, target = flow.flow.source, flow.flow.target
    assert before.changes == []
    assert concerns(before.preflight, source) == {
        Concern.FEW_REPLICAS: ("close", "lonely"),
        Concern.FEW_IN_SYNC: ("lonely",),
    }
    assert concerns(before.preflight, target)[Concern.FEW_REPLICAS] == (flow.twin("close"), flow.twin("lonely"))
    assert [concerns(warnings, source)[Concern.ONE_RACK] for warnings in moved] == [("close",)] * 2
    assert concerns(after.preflight, source)[Concern.OFFLINE] == ("lonely",)
    assert "safe" in concerns(after.preflight, source)[Concern.UNDER_REPLICATED]
    assert flow.twin("safe") in concerns(after.preflight, target)[Concern.UNDER_REPLICATED]
    assert after.changes == []
