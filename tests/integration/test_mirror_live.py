"""A run under way heeds what people do to its flow, and brokers that slow it down."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest

from local.kafka import KafkaClusters
from support.mirroring import Twins, twins
from support.source_logs import delete_topic, fill
from support.waiting import await_condition
from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.cluster.copy_order import CopyOrder, carry_out
from twinlog.cluster.task_shares import TaskShares
from twinlog.model.findings import FindingKind
from twinlog.model.flow_state import Holder, State
from twinlog.model.lanes import journal_topic
from twinlog.model.offsets import TopicPartition
from twinlog.model.throttle import BURST_S
from twinlog.operations.mirror_result import MirrorResult

VALUE = "x" * 1_000
RECORDS = 2_000
SLOW_MB = 0.1
"""At this rate the records take 20 seconds; a test that lasts so long has failed."""
SOON_S = 12.0
BATCH_BYTES = 10_500


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic,), throttle=SLOW_MB, transaction_seconds=1)
    flow.create(topic, partitions=2)
    for partition in range(2):
        fill(source, topic, [f"{number} {VALUE}" for number in range(RECORDS // 2)], partition, batch_num_messages=10)
    return flow


def copied(flow: Twins, topic: str) -> int:
    return sum(map(len, flow.read_target(topic).values()))


def while_it_runs(flow: Twins, topic: str, act: Callable[[], None]) -> tuple[MirrorResult, float]:
    """Do something once a run has copied its first records; its result, and the seconds it took from there."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: flow.mirror(tasks=1))
        await_condition(lambda: running.done() or (_exists(flow, topic) and copied(flow, topic) > 0), "a first commit")
        act()
        started = time.monotonic()
        return running.result(), time.monotonic() - started


def _exists(flow: Twins, topic: str) -> bool:
    with flow.ends().target.raw() as target:
        return target.run(target.metadata([flow.twin(topic)])).topics[flow.twin(topic)].error is None


@pytest.fixture
def wide(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    """As much to copy in each of two tasks."""
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic,), throttle=2 * SLOW_MB, transaction_seconds=1)
    flow.create(topic, partitions=8)
    for partition in range(8):
        fill(source, topic, [f"{number} {VALUE}" for number in range(40)], partition, batch_num_messages=4)
    return flow


def test_the_throttle_holds_over_all_tasks(wide: Twins) -> None:
    def at_once(orders: list[CopyOrder]) -> list[LaneReport]:
        with ThreadPoolExecutor(len(orders)) as pool:
            return [report for reports in pool.map(carry_out, orders) for report in reports]

    result = wide.mirror(at_once)

    assert (len(result.lanes), result.failures) == (2, [])
    seconds = max(report.figures.seconds for report in result.lanes)
    assert result.recorded.bytes < 2 * SLOW_MB * 1e6 * (seconds + BURST_S) + 2 * BATCH_BYTES


def test_a_task_that_is_done_leaves_its_share_of_the_throttle_to_the_others(wide: Twins, topic: str) -> None:
    shares: list[float] = []

    def one_by_one(orders: list[CopyOrder]) -> list[LaneReport]:
        first, second = orders
        shares.append(share_of(wide, second))
        (early,) = carry_out(first)
        shares.append(share_of(wide, second))
        (late,) = carry_out(second)
        assert late.figures.throttled_s > 0
        assert late.figures.seconds < 0.8 * early.figures.seconds
        return [early, late]

    assert wide.mirror(one_by_one).failures == []
    assert shares == [pytest.approx(0.5, abs=0.05), 1.0]
    assert wide.read_target(topic) == wide.read_source(topic)


def share_of(flow: Twins, order: CopyOrder) -> float:
    """Of the throttle, as the task of this order would find it."""
    settings = order.settings
    with flow.ends().target.raw() as target:
        shares = TaskShares(
            target,
            group=settings.group,
            journal=journal_topic(settings.source, settings.target),
            holder=Holder(settings.run, settings.owner),
            task=settings.task,
            shares=settings.throttle_shares,
        )
        return target.run(shares.current())


def test_the_throttle_is_lifted_while_it_runs(flow: Twins, topic: str) -> None:
    result, seconds = while_it_runs(
        flow, topic, lambda: flow.change_record(lambda record: replace(record, throttle_bytes_per_s=0))
    )
    assert result.failures == []
    assert seconds < SOON_S
    assert flow.read_target(topic) == flow.read_source(topic)


def test_a_flow_that_is_paused_is_drained(flow: Twins, topic: str) -> None:
    name = flow.flow.name
    result, seconds = while_it_runs(
        flow, topic, lambda: flow.change_record(lambda record: record.moved_to(State.PAUSED, name))
    )
    assert {(report.outcome, report.reason) for report in result.lanes} == {(Outcome.STOPPED, f"{name} is paused")}
    assert seconds < SOON_S
    assert result.recorded.records == copied(flow, topic) < RECORDS
    assert flow.mirror().skipped == f"{name} is paused; nothing was copied"
    flow.change_record(lambda record: record.moved_to(State.ACTIVE, name))
    assert flow.with_settings(throttle=None).mirror().failures == []
    assert flow.read_target(topic) == flow.read_source(topic)


def test_a_twin_that_is_deleted_while_it_is_filled_is_named_and_filled_anew(flow: Twins, topic: str) -> None:
    result, seconds = while_it_runs(flow, topic, lambda: delete_topic(flow.target_servers, flow.twin(topic)))

    assert {finding.kind for finding in result.findings} == {FindingKind.TARGET_MISSING}
    assert {finding.partition for finding in result.findings} == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert seconds < SOON_S
    (flow := flow.with_settings(throttle=None)).mirror()
    assert flow.mirror().findings == ()
    assert flow.read_target(topic) == flow.read_source(topic)


def test_a_brokers_quota_slows_a_run_and_does_not_fail_it(flow: Twins, topic: str) -> None:
    flow = flow.with_settings(throttle=None)
    client_id = f"limited-{topic}"
    flow = flow.with_settings(overrides={"producer.client.id": client_id, "consumer.client.id": client_id})
    for side, quota in (("source", "consumer_byte_rate"), ("target", "producer_byte_rate")):
        set_quota(flow, side, client_id, quota, 1_000_000.0)
    result = flow.mirror(tasks=1)
    assert result.failures == []
    assert {report.outcome for report in result.lanes} == {Outcome.DONE}
    assert flow.read_target(topic) == flow.read_source(topic)


def set_quota(flow: Twins, side: str, client_id: str, quota: str, rate: float) -> None:
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
                ops=[entry.OpData(key=quota, value=rate, remove=False)],
            )
        ],
        validate_only=False,
    )
    with getattr(flow.ends(), side).raw() as client:
        answer = client.send(request)
    assert [one.error_code for one in answer.entries] == [0]
