"""A source topic that was deleted and created again is another topic: it is copied from its beginning, behind what its
predecessor left, and what went with the predecessor before it was copied is counted."""

from __future__ import annotations

import uuid
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from local.kafka import KafkaClusters
from support.ledger_check import check_tiling
from support.mirroring import Twins, twins
from support.reading import read_with_offsets
from support.source_logs import fill, recreate
from twinlog.cluster.copier import LaneReport
from twinlog.cluster.copy_order import CopyOrder, carry_out_here
from twinlog.ledger.compact import Retention, compact
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.lanes import position_group
from twinlog.model.offsets import TopicPartition
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.recording import rebuild_ledger
from twinlog.operations.translate import translator


@pytest.fixture
def topic() -> str:
    return f"anew-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    """A flow for one topic of one partition."""
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic,))
    flow.create(topic)
    return flow


def only(result: MirrorResult) -> Finding:
    (finding,) = result.findings
    return finding


def sorted_rows(flow: Twins) -> list[dict[str, Any]]:
    """The ledger's rows as they were written to the target."""
    order = [("target_start", "ascending"), ("count", "ascending")]
    rows: list[dict[str, Any]] = flow.ledger.read().sort_by(order).to_pylist()
    return rows


@pytest.mark.parametrize("count", [3, 10, 20], ids=["shorter", "equal", "longer"])
def test_deleted_and_created_again(flow: Twins, topic: str, count: int) -> None:
    fill(flow.source_servers, topic, range(10))
    flow.mirror()
    recreate(flow.source_servers, topic)
    fill(flow.source_servers, topic, [f"new {number}" for number in range(count)])

    result, again = flow.mirror(), flow.mirror()

    assert only(result).kind is FindingKind.RECREATED
    assert "deleted and created again; the position 10 belonged to the earlier one" in only(result).message
    assert again.findings == ()
    assert result.recorded.gaps == {}
    old, new = [str(number) for number in range(10)], [f"new {number}" for number in range(count)]
    assert [record.value.decode() for record in flow.read_target(topic)[0]] == old + new


@pytest.mark.parametrize(
    ("count", "forgotten"),
    [(3, False), (10, False), (20, False), (20, True)],
    ids=["shorter", "equal", "longer", "longer, the position forgotten"],
)
def test_what_was_ready_in_a_deleted_topic_is_counted(flow: Twins, topic: str, count: int, forgotten: bool) -> None:
    fill(flow.source_servers, topic, range(10), batch_num_messages=1)
    begun = flow.with_settings(budget_records=4).mirror()
    if forgotten:
        admin = AdminClient({"bootstrap.servers": flow.target_servers})
        (gone,) = admin.delete_consumer_groups([position_group(flow.flow.name)]).values()
        gone.result()
    recreate(flow.source_servers, topic)
    fill(flow.source_servers, topic, [f"new {number}" for number in range(count)])

    result, again = flow.mirror(), flow.mirror()

    assert (begun.recorded.records, begun.left_records) == (4, 6)
    assert "of that one at least 6 offsets, from 4 on, were never copied and are lost" in only(result).message
    assert (result.recorded.records, result.recorded.gaps) == (count, {"recreated": 6})
    assert (again.findings, again.recorded.gaps) == ((), {})
    recorded = sorted_rows(flow)
    old, new = [list(rows) for _, rows in groupby(recorded, lambda row: row["source_topic_id"])]
    check_tiling(old, 0, 10)
    check_tiling(new, 0, count)
    rebuild_ledger(flow.ledger, flow.flow, flow.ends().target)
    assert sorted_rows(flow) == recorded
    compact(flow.ledger, Retention(), everything=True, least=1)
    assert sorted_rows(flow) == recorded
    translated = translator(flow.flow, flow.ends().target, flow.ledger)
    twin = read_with_offsets(flow.target_servers, flow.twin(topic))[0]
    assert [twin[translated.forward(TopicPartition(topic, 0), offset).offset].value for offset in range(count)] == [
        f"new {number}".encode() for number in range(count)
    ]


def test_deleted_and_created_again_before_anything_of_the_range_was_read(flow: Twins, topic: str) -> None:
    fill(flow.source_servers, topic, range(10))
    flow.mirror()
    fill(flow.source_servers, topic, range(10, 15))

    def too_late(orders: list[CopyOrder]) -> list[LaneReport]:
        recreate(flow.source_servers, topic)
        return carry_out_here(orders)

    late, result = flow.mirror(too_late), flow.mirror()

    assert (only(late).kind, late.recorded.records, late.recorded.gaps) == (FindingKind.RECREATED, 0, {})
    assert "of that one at least 5 offsets, from 10 on" in only(result).message
    assert result.recorded.gaps == {"recreated": 5}
    assert flow.mirror().findings == ()
