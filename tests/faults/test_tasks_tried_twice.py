"""Spark tries a task again, or runs it twice at once: the order is carried out once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.ledger_check import check_twins
from support.mirroring import Twins
from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.cluster.copy_order import CopyOrder, carry_out, carry_out_here
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.model.lanes import transactional_id


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


def test_a_lane_that_a_stranger_opens_has_failed(flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = TransactionalWriter.commit_positions
    lane_0 = transactional_id(flow.flow.name, 0)

    async def overtaken(writer: TransactionalWriter, group: str, positions: Mapping[Any, Any]) -> None:
        if writer.transactional_id == lane_0:
            await TransactionalWriter(writer._client, lane_0, timeout_ms=10_000, retries=5).open()
        await original(writer, group, positions)

    with monkeypatch.context() as patched:
        patched.setattr(TransactionalWriter, "commit_positions", overtaken)
        result = flow.mirror()

    assert {report.lane: report.outcome for report in result.lanes} == {0: Outcome.FAILED, 1: Outcome.DONE}
    (failure,) = result.failures
    assert f"{lane_0}: InitProducerIdRequest" in failure
    assert "the run held the flow's lease to its end" in failure
    assert not flow.mirror().failures
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
