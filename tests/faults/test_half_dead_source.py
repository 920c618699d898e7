"""A source of which one broker is gone for good answers what it can, and a failover takes it at its word in that."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from local.kafka import KafkaCluster, KafkaClusters
from support.groups import checkpoint, commit, committed
from support.mirroring import twins
from support.source_logs import fill
from support.takeovers import failing_over
from support.waiting import NOT_HUNG_S
from twinlog.model.takeover import Request

DEAD = 1


def test_a_failover_from_a_source_without_one_of_its_brokers(
    three: KafkaCluster, kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    mark = uuid.uuid4().hex[:8]
    topic, group = f"half-{mark}", f"readers-{mark}"
    flow = twins(
        three.bootstrap_servers,
        kafka_pair["lon"].bootstrap_servers,
        tmp_path,
        (topic,),
        groups=(group,),
        checkpoints_topic_replication_factor=1,
    )
    # One partition a broker, each without a second replica.
    placed = NewTopic(topic, 3, replica_assignment=[[0], [1], [2]])
    admin = AdminClient({"bootstrap.servers": flow.source_servers})
    admin.create_topics([placed])[topic].result()
    for partition in range(3):
        fill(flow.source_servers, topic, range(10), partition)
    commit(flow.source_servers, group, topic, dict.fromkeys(range(3), 4))
    assert flow.mirror().failures == []
    checkpoint(flow, sync_group_offsets_enabled=False)
    fill(flow.source_servers, topic, ["never crossed"], 0)
    fill(flow.source_servers, topic, ["never crossed, and nobody knows"], DEAD)

    three.kill_broker(DEAD)
    try:
        started = time.monotonic()
        failover = failing_over(flow, flow.source_servers, source_within_s=5)
        plan = failover.plan(Request())
        took = time.monotonic() - started
        result = failover.apply(plan)
    finally:
        three.restart_broker(DEAD)

    assert took < NOT_HUNG_S
    # What it says is believed; of the partition that nobody answers for, it is not known what is lost.
    assert [(loss.topic, loss.records) for loss in plan.losses] in ([(topic, None)], []), plan
    assert plan.lost_records is None or not plan.source_answered, plan.lost_note
    assert {(row.partition, row.offset, row.unread) for row in plan.rows} == {(0, 4, 6), (1, 4, 6), (2, 4, 6)}
    assert (result.failures, result.moved.left_out) == ((), ())
    assert committed(flow.target_servers, group, flow.twin(topic)) == dict.fromkeys(range(3), 4)
