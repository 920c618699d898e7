"""The registry, the page that is written from it, and Prometheus' text format."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.exposition import read_exposition, series
from twinlog.model.metrics import CLUSTER_REACHED, LAG_RECORDS, LAG_SECONDS, REGISTRY, exposition
from twinlog.model.metrics_page import page

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"
UNITS = ("records", "bytes", "seconds", "offsets", "ratio", "per_second", "_mean")
COUNTS = {  # of things that the name itself says
    "twinlog_cluster_reached",
    "twinlog_groups_ready",
    "twinlog_groups_not_ready",
    "twinlog_reconcile_differences",
    "twinlog_reconcile_equal",
    "twinlog_twin_equal",
    "twinlog_findings",
    "twinlog_lanes_not_done",
    "twinlog_copier_retries",
    "twinlog_errors",
    "twinlog_copier_limited_by",
    "twinlog_canary_faults",
    "twinlog_recovery_objective_missed",
}


def test_the_page_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_metric_has_a_row_of_three_cells() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) == len(REGISTRY)
    assert {row.count("|") for row in rows} == {4}


@pytest.mark.parametrize("metric", REGISTRY.values(), ids=lambda metric: metric.name)
def test_names_end_in_their_unit_and_help_is_a_sentence(metric: object) -> None:
    assert metric.name.endswith(UNITS) or metric.name in COUNTS
    assert metric.labels[0] == "flow"
    assert metric.help.endswith(".")


@given(st.text(), st.floats(allow_nan=False))
def test_any_label_and_any_value_come_back(topic: str, value: float) -> None:
    text = exposition([LAG_SECONDS(value, flow="nyc->lon", topic=topic)])
    # As a reader of lines sees it: Prometheus knows no other end of a line than \n.
    assert read_exposition(text) == {series("twinlog_lag_seconds", flow="nyc->lon", topic=topic): value}


def test_samples_of_a_metric_stand_together() -> None:
    samples = [
        LAG_RECORDS(1, flow="f", topic="a"),
        LAG_SECONDS(0.5, flow="f", topic="a"),
        LAG_RECORDS(2, flow="f", topic="b"),
        LAG_SECONDS(math.inf, flow="f", topic="b"),
    ]
    found = read_exposition(exposition(samples))
    assert found[series("twinlog_lag_records", flow="f", topic="b")] == 2
    assert found[series("twinlog_lag_seconds", flow="f", topic="b")] == math.inf
    assert len(found) == 4


def test_truth_is_a_number() -> None:
    (line,) = exposition([CLUSTER_REACHED(True, flow="f", side="source", cluster="nyc")]).splitlines()[2:]
    assert line == 'twinlog_cluster_reached{flow="f",side="source",cluster="nyc"} 1'


def test_no_samples_are_no_text() -> None:
    assert exposition([]) == ""


def test_other_labels_than_the_metrics_are_refused() -> None:
    with pytest.raises(ValueError, match="has the labels"):
        LAG_RECORDS(1, flow="f")
