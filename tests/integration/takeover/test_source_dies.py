"""A source that dies, or hangs, amid a run: what had come over is whole, groups go on in it, and nobody waits."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from local.kafka import KafkaCluster, KafkaClusters, KafkaSpec, start
from support.groups import checkpoint, commit, read
from support.ledger_check import flow_positions
from support.mirroring import Twins, twins
from support.source_logs import fill
from support.takeovers import failing_over
from support.waiting import NOT_HUNG_S, await_condition
from twinlog.cluster.copier import Outcome
from twinlog.model.flow_state import State
from twinlog.model.takeover import Request

PARTITIONS = 2
FIRST = 50
"""Records of each partition that are mirrored in peace; the group has read 10 of them."""
RECORDS = 1_000


@pytest.fixture(scope="module")
def doomed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with start([KafkaSpec("doomed")], tmp_path_factory.mktemp("doomed")) as clusters:
        yield clusters["doomed"]


@pytest.fixture
def dying(doomed: KafkaCluster, kafka_pair: KafkaClusters, tmp_path: Path, mark: str) -> Twins:
    """With a slow run before it."""
    topic, group = f"orders-{mark}", f"readers-{mark}"
    flow = twins(
        doomed.bootstrap_servers,
        kafka_pair["lon"].bootstrap_servers,
        tmp_path,
        (f".*-{mark}",),
        groups=(f".*-{mark}",),
        checkpoints_topic_replication_factor=1,
        transaction_bytes=20_000,
        throttle=0.05,
    )
    flow.create(topic, PARTITIONS)
    for number in range(PARTITIONS):
        fill(flow.source_servers, topic, [f"first {value}" for value in range(FIRST)], number)
    commit(flow.source_servers, group, topic, dict.fromkeys(range(PARTITIONS), 10))
    assert flow.mirror().failures == []
    checkpoint(flow, sync_group_offsets_enabled=False)
    for number in range(PARTITIONS):
        values = [f"then {value} ".ljust(1_000, ".") for value in range(RECORDS)]
        fill(flow.source_servers, topic, values, number, batch_num_messages=5)
    return flow


@pytest.mark.parametrize("blow", ["hangs", "is killed"])
def test_amid_a_run(doomed: KafkaCluster, dying: Twins, topic: str, group: str, blow: str) -> None:
    flow = dying
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(flow.mirror)
        await_condition(lambda: _copied(flow, topic) > PARTITIONS * FIRST, "the run to commit something", 60)
        (doomed.pause_broker if blow == "hangs" else doomed.kill_broker)(0)
        try:
            assert not running.done(), "the run was over before the source was gone"
            started = time.monotonic()
            failover = failing_over(flow, flow.source_servers)
            result = failover.apply(failover.plan(Request()))
            took = time.monotonic() - started
            copied = _copied(flow, topic)
            unread = read(flow.target_servers, group, flow.twin(topic))
        finally:
            doomed.resume_broker(0) if blow == "hangs" else doomed.restart_broker(0)
        run = running.result(timeout=120)

    assert took < NOT_HUNG_S
    assert (result.failures, result.moved.left_out, result.plan.source_answered) == ((), (), False)
    assert flow.record().state is State.FAILED_OVER
    assert {report.outcome for report in run.lanes} <= {Outcome.FENCED, Outcome.STOPPED, Outcome.FAILED}, run.lanes
    # What is there is there once, from the first record on, and the group reads exactly the rest of it.
    source = flow.read_source(topic)
    target = flow.read_target(topic)
    kept = {number: [record.value for record in records] for number, records in target.items()}
    assert kept == {number: [one.value for one in source[number]][: len(values)] for number, values in kept.items()}
    assert sum(map(len, kept.values())) == copied
    assert unread == Counter((number, value) for number, values in kept.items() for value in values[10:])
    assert result.plan.lost_records == PARTITIONS * (FIRST + RECORDS) - copied
    assert [loss.topic for loss in result.plan.losses] == [topic]
    assert result.plan.lost_seconds is not None


def _copied(flow: Twins, topic: str) -> int:
    """Source offsets, which in a topic without transactions are records."""
    twin = flow.twin(topic)
    return sum(position.offset for place, position in flow_positions(flow).items() if place.topic == twin)
