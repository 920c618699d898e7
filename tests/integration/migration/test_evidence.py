"""What a migration can show for itself, and that nothing is cleaned up too early."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyarrow import parquet as pq

from support.migrating import migrate, migrating, migration
from support.mirroring import Twins
from support.source_logs import fill
from twinlog.errors import FlowStateError
from twinlog.operations.migrate import Asked


def test_the_report_says_what_was_moved_and_what_was_left_out_and_why(flow: Twins, topic: str) -> None:
    flow = flow.with_settings(topics=(topic,))
    flow.create(topic, 2, retention_ms="7200000")
    flow.create(f"{topic}.other")
    fill(flow.source_servers, topic, range(40), 1)

    done = migrate(flow)

    assert done.report is not None
    place = Path(done.report.removeprefix("file://"))
    page, stem = place.read_text(), str(place).removesuffix(".html")
    rows = {row["topic"]: row for row in pq.read_table(f"{stem}-topics.parquet").to_pylist()}
    assert (rows[topic]["twin"], rows[topic]["partitions"], rows[topic]["records"]) == (flow.twin(topic), 2, 40)
    assert rows[topic]["bytes"] > 0
    assert json.loads(rows[topic]["settings"])["retention.ms"] == "-1"
    assert rows[f"{topic}.other"]["left_out"] == "the flow's filter does not take it"
    assert pq.read_table(f"{stem}-groups.parquet").num_rows == 0
    assert "the two clusters are equal" in page
    assert "<script" not in page
    assert "http" not in page
    for words in ("Sign-off", flow.twin(topic), "the flow&#x27;s filter does not take it", "40 records"):
        assert words in page


def test_nothing_is_removed_before_the_cut_over(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(5))
    with pytest.raises(FlowStateError, match="is not being migrated"):
        migrating(flow).clean_up()
    migrating(flow).begin(Asked())

    with pytest.raises(FlowStateError, match="is at its settings: nothing is cleaned up before the cut-over is done"):
        migrating(flow).clean_up()

    assert migration(flow).phase == "settings"
