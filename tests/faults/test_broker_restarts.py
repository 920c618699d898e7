"""A broker of each side dies in the middle of a run and comes back: the run ends as if nothing had happened."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from local.kafka import KafkaCluster
from support.ledger_check import check_twins, flow_positions
from support.mirroring import create_topic, producer, twins
from support.waiting import await_condition
from twinlog.cluster.copier import Outcome

PARTITIONS = 6
RECORDS = 12_000
RECORD_BYTES = 1_000
SLOW_MB_S = 0.1
"""So slow that the run outlasts the restarts; it is let go once the brokers are back."""


def test_a_broker_of_each_side_is_killed_and_restarted(three: KafkaCluster, trio: KafkaCluster, tmp_path: Path) -> None:
    topic = f"restarts-{uuid.uuid4().hex[:8]}"
    flow = twins(
        three.bootstrap_servers,
        trio.bootstrap_servers,
        tmp_path,
        (topic,),
        replication_factor=3,
        journal_topic_replication_factor=3,
        transaction_bytes=200_000,
        throttle=SLOW_MB_S,
    )
    create_topic(flow.source_servers, topic, PARTITIONS, {"min_insync_replicas": "2"}, replicas=3)
    writer = producer(flow.source_servers, batch_num_messages=50)
    for number in range(RECORDS):
        writer.produce(topic, f"value {number} ".encode().ljust(RECORD_BYTES, b"."), partition=number % PARTITIONS)
        writer.poll(0)
    assert writer.flush(60) == 0

    with ThreadPoolExecutor(3) as pool:
        running = pool.submit(flow.mirror)
        await_condition(lambda: bool(flow_positions(flow)), "the run to commit something", 60)
        for cluster in (three, trio):
            cluster.kill_broker(1)
        for restarted in [pool.submit(cluster.restart_broker, 1) for cluster in (three, trio)]:
            restarted.result()
        assert not running.done(), "the run was over before the brokers were back"
        flow.change_record(lambda found: replace(found, throttle_bytes_per_s=0))
        result = running.result(timeout=240)

    assert {report.outcome for report in result.lanes} == {Outcome.DONE}
    assert not result.failures
    assert check_twins(flow, topic) == result.recorded.records == RECORDS
