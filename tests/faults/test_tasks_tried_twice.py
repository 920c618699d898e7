"""Spark tries a task again, or runs it twice at once: the order is carried out once."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.feeding import Feeder
from support.ledger_check import await_settled, check_twins
from support.mirroring import Twins, twins
from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.cluster.copy_order import CopyOrder, carry_out, carry_out_here

PARTITIONS = 4


@pytest.fixture
def topic() -> str:
    return f"tasks-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    flow = twins(
        kafka_pair["nyc"].bootstrap_servers,
        kafka_pair["lon"].bootstrap_servers,
        tmp_path,
        (topic,),
        transaction_bytes=4_000,
    )
    flow.create(topic, PARTITIONS)
    Feeder(flow.source_servers, topic, PARTITIONS).feed(2, 800)
    await_settled(flow.source_servers, topic)
    return flow


def test_one_after_the_other(flow: Twins, topic: str) -> None:
    again: list[LaneReport] = []

    def twice(orders: list[CopyOrder]) -> list[LaneReport]:
        first = carry_out_here(orders)
        again.extend(carry_out_here(orders))
        return first

    result = flow.mirror(twice)

    assert {report.outcome for report in (*result.lanes, *again)} == {Outcome.DONE}
    assert sum(report.figures.records for report in again) == 0
    assert check_twins(flow, topic) == result.recorded.records


def test_both_at_once(flow: Twins, topic: str) -> None:
    def at_once(orders: list[CopyOrder]) -> list[LaneReport]:
        with ThreadPoolExecutor(2 * len(orders)) as pool:
            return [report for reports in pool.map(carry_out, [*orders, *orders]) for report in reports]

    result = flow.mirror(at_once)
    flow.mirror()

    assert not result.failures
    assert {report.outcome for report in result.lanes} <= {Outcome.DONE, Outcome.FENCED}
    assert Outcome.DONE in {report.outcome for report in result.lanes}
    check_twins(flow, topic)


def test_after_its_run_has_ended(flow: Twins, topic: str) -> None:
    kept: list[CopyOrder] = []

    def keep(orders: list[CopyOrder]) -> list[LaneReport]:
        kept.extend(orders)
        return []

    flow.mirror(keep)

    late = carry_out_here(kept)
    assert {report.outcome for report in late} == {Outcome.STOPPED}
    assert sum(report.figures.records for report in late) == 0
    flow.mirror()
    assert check_twins(flow, topic) > 0
