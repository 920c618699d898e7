"""What a reconciliation says of the ledger, of settings and of groups, and what it leaves behind."""

from __future__ import annotations

import json
import re
import uuid
from html import escape
from pathlib import Path

import pytest
from pyarrow import parquet as pq

from local.kafka import KafkaClusters
from support.groups import checkpoint, commit
from support.mirroring import Twins, twins
from support.reconciling import FULL, Found, differences, reconcile
from support.source_logs import fill
from support.syncing import Hand
from support.tampering import dropped, tampering
from twinlog.cluster.checkpoint_store import CheckpointNote, GroupPartition
from twinlog.ledger.proof_state import ProofStore
from twinlog.model.checkpoints import Checkpoint
from twinlog.model.offsets import TopicPartition
from twinlog.model.reconciliation import Kind, Verdict
from twinlog.operations.checkpoint import checkpoint_store


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    """Three runs of ten records each, so three files of the ledger."""
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic,), groups=(r"group-.*",), emit_checkpoints_enabled=True)
    flow.create(topic)
    for number in range(3):
        fill(source, topic, range(10 * number, 10 * number + 10), linger_ms=100)
        flow.mirror()
    return flow


def files_of(flow: Twins) -> list[Path]:
    return [Path(flow.ledger.folder.file_path(file.link.name)) for file in flow.ledger.files()]


def test_an_untouched_flow_is_equal_and_says_so_everywhere(flow: Twins) -> None:
    result = reconcile(flow)
    assert (result.verdict, result.differences, result.records) == (Verdict.EQUAL, (), 30)
    assert result.to_json()["verdict"] == "equal"
    last = ProofStore(flow.ledger).last()
    assert last is not None
    assert (last.verdict, last.at_ms, last.differences) == ("equal", result.at_ms, 0)


def test_a_file_that_is_missing_amid_the_ledger_is_told_and_its_rows_come_back(flow: Twins, topic: str) -> None:
    files_of(flow)[1].unlink()
    result = reconcile(flow)
    # What follows the missing file is not reached either.
    assert differences(result, topic) == [Found(Kind.LEDGER, 0, 10, 11, 2)]
    assert "is missing" in result.differences[0].detail
    assert reconcile(flow).verdict is Verdict.EQUAL


def test_a_last_file_that_is_missing_is_told_by_whoever_has_seen_it(flow: Twins, topic: str) -> None:
    assert reconcile(flow).verdict is Verdict.EQUAL
    files_of(flow)[-1].unlink()
    assert differences(reconcile(flow), topic) == [Found(Kind.LEDGER, 0, 20, 22)]
    assert reconcile(flow).verdict is Verdict.EQUAL


def test_a_damaged_file_is_named_and_the_records_are_proven_by_the_journal(flow: Twins, topic: str) -> None:
    damaged = files_of(flow)[0]
    content = bytearray(damaged.read_bytes())
    place = content.rindex(b"PAR1") // 2  # among the pages of the later columns; the footer begins behind them
    content[place : place + 64] = bytes(64)
    damaged.write_bytes(content)
    result = reconcile(flow, FULL)
    assert differences(result, topic) == [Found(Kind.LEDGER, 0, 0, 0)]
    assert damaged.name in result.differences[0].detail
    assert result.tally[Kind.EQUAL] == 30


def test_a_row_that_says_something_else_than_the_journal_is_found(flow: Twins, topic: str) -> None:
    place = flow.ledger.files()[1]
    rows = flow.ledger.read_files([place])
    wrong = rows.set_column(rows.schema.get_field_index("digest"), rows.schema.field("digest"), [["00000000deadbeef"]])
    flow.ledger.replace([place], wrong)
    assert differences(reconcile(flow), topic) == [Found(Kind.LEDGER, 0, 10, 11), Found(Kind.LEDGER, 0, 10, 11)]


def test_a_setting_that_was_changed_on_the_target_is_found(flow: Twins, topic: str) -> None:
    Hand(flow.target_servers).set(flow.twin(topic), retention_ms="1000000")
    (found,) = reconcile(flow).differences
    assert (found.kind, found.topic) == (Kind.SETTING, topic)
    assert "retention.ms is 1000000" in found.detail


def test_partitions_that_the_target_lacks_are_found(flow: Twins, topic: str) -> None:
    Hand(flow.source_servers).grow(topic, 3)
    (found,) = reconcile(flow).differences
    assert (found.kind, found.topic) == (Kind.PARTITIONS, topic)


def test_a_checkpoint_that_would_skip_records_is_found(flow: Twins, topic: str) -> None:
    commit(flow.source_servers, "group-a", topic, {0: 13})
    assert checkpoint(flow).failures == []
    assert reconcile(flow).differences == ()
    place = GroupPartition("group-a", TopicPartition(flow.twin(topic), 0))
    with flow.ends().target.raw() as target:
        store = checkpoint_store(flow.flow, target)
        writer = target.run(store.open())
        wrong = CheckpointNote(Checkpoint(13, 17), frozenset({17}))
        target.run(store.write(writer, {place: wrong}))
    (found,) = reconcile(flow).differences
    assert (found.kind, found.source_offset, found.target_offset, found.count) == (Kind.GROUP, 13, 17, 3)
    assert "group-a would skip 3 records" in found.detail


def test_the_report_gives_the_answer_the_evidence_and_the_commands(flow: Twins, topic: str) -> None:
    fill(flow.source_servers, topic, ["dropped", "kept"], linger_ms=100)
    with tampering({flow.twin(topic): dropped(0)}):
        flow.mirror()
    result = reconcile(flow)
    assert result.report is not None
    page = Path(result.report.removeprefix("file://")).read_text()
    assert escape(result.sentence) in page
    assert re.search(rf"kafka-console-consumer.*--topic {flow.twin(topic)} --partition 0 --offset 33", page)
    assert escape(f"twinlog translate '{flow.flow.name}' {topic} 0 30") in page
    assert "<svg" in page
    assert "<script" not in page
    assert "src=" not in page
    table = pq.read_table(result.report.removeprefix("file://").replace(".html", "-differences.parquet"))
    assert table.column("kind").to_pylist() == ["missing", "misplaced"]
    assert json.loads(json.dumps(result.to_json()))["differences"][0]["source_offset"] == 30
