"""A transaction outlives transaction.timeout.ms, or an answer is lost: the broker raises the epoch; nobody has taken
over."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest

from local.kafka import KafkaClusters
from support.feeding import Feeder
from support.ledger_check import await_settled, check_twins
from support.mirroring import Twins, twins
from twinlog.cluster.copier import Outcome
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import ClusterUnreachableError, TransactionAbortedError
from twinlog.model.lanes import transactional_id
from twinlog.operations.mirror import Limits

PARTITIONS = 5
TIMEOUT_S = 1.0


@pytest.fixture
def topic() -> str:
    return f"timeouts-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    overrides = {"producer.transaction.timeout.ms": f"{TIMEOUT_S * 1000:.0f}", "producer.retries": "1"}
    flow = twins(source, target, tmp_path, (topic,), overrides=overrides)
    flow.create(topic, PARTITIONS)
    Feeder(source, topic, PARTITIONS).feed(7, 200)
    await_settled(source, topic)
    return flow


def dawdle(patched: pytest.MonkeyPatch, lane: str, times: int) -> None:
    """Have the lane wait before it ends its transaction for longer than the broker does, so many times."""
    original = TransactionalWriter.commit_positions
    left = times

    async def slow(writer: TransactionalWriter, group: str, positions: Mapping[Any, Any]) -> None:
        nonlocal left
        if writer.transactional_id == lane and left:
            left -= 1
            await writer._client.pause(3 * TIMEOUT_S)
        await original(writer, group, positions)

    patched.setattr(TransactionalWriter, "commit_positions", slow)


def test_the_lane_goes_on_where_it_committed_last(flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dawdle(monkeypatch, transactional_id(flow.flow.name, 0), times=1)

    result = flow.mirror()

    assert {report.outcome for report in result.lanes} == {Outcome.DONE}
    assert result.failures == []
    assert check_twins(flow, topic) == result.recorded.records


def test_a_lane_that_never_is_in_time_has_failed(flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        dawdle(patched, transactional_id(flow.flow.name, 0), times=2)
        result = flow.mirror()

    assert {report.lane: report.outcome for report in result.lanes} == {0: Outcome.FAILED, 1: Outcome.DONE}
    (failure,) = result.failures
    assert "outlived transaction.timeout.ms: raise it among the producer's settings" in failure
    assert flow.mirror().failures == []
    check_twins(flow, topic)


def test_a_lost_answer_to_an_opening_of_our_own_is_no_fence(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = transactional_id(flow.flow.name, 0)
    request = RawClient.request
    lost: list[str] = []

    async def lose_answers(client: RawClient, asked: Any, *where: Any, **more: Any) -> Any:
        answer = await request(client, asked, *where, **more)
        if getattr(asked, "transactional_id", None) != lane or asked.name in lost:
            return answer
        if isinstance(asked, EndTxnRequest) and not lost:
            # What the lane does for it is to roll back and to open its id again.
            lost.append(asked.name)
            raise TransactionAbortedError("the commit was not heard of")
        if isinstance(asked, InitProducerIdRequest) and lost:
            lost.append(asked.name)
            await TransactionalWriter(client, lane, timeout_ms=10_000, retries=5).open()
            raise ClusterUnreachableError("the opening was carried out and not heard of, and its epoch is not the last")
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(RawClient, "request", lose_answers)
        result = flow.with_settings(transaction_bytes=10_000, overrides={}).mirror()

    assert lost == [EndTxnRequest.name, InitProducerIdRequest.name]
    assert {report.outcome for report in result.lanes} == {Outcome.DONE}
    assert result.failures == []
    assert check_twins(flow, topic) == result.recorded.records


def test_a_target_that_gives_no_answer_holds_a_run_no_longer_than_its_time(
    flow: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = {"producer.retries": "100000", "producer.retry.backoff.max.ms": "50"}
    flow = flow.with_settings(overrides={**flow.flow.overrides, **patient})

    async def unheard(*_: object) -> None:
        raise ClusterUnreachableError("nobody answers")

    with monkeypatch.context() as patched:
        patched.setattr(TransactionalWriter, "commit_positions", unheard)
        result = flow.mirror(limits=Limits(max_seconds=2))

    assert {report.outcome for report in result.lanes} == {Outcome.FAILED}
    assert flow.mirror().failures == []
