"""Whoever is told of things hears of a difference when it begins, and when it is over."""

from __future__ import annotations

from typing import Any

import pytest

from twinlog.airflow.notices import Notice, NoticeKind
from twinlog.airflow.tasks import reconcile as tasks
from twinlog.errors import ConfigurationError
from twinlog.model.reconciliation import Difference, Kind
from twinlog.operations.reconcile_result import Reconciliation

MISSING = Difference(Kind.MISSING, "orders", 0, 7, 7, count=3)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Notice]:
    heard: list[Notice] = []
    monkeypatch.setattr("twinlog.airflow.notices.tell", lambda _context, notice: heard.append(notice))
    return heard


def found(*differences: Difference, bounded: bool = False) -> Reconciliation:
    report = "s3://ledger/report.html"
    return Reconciliation("nyc->lon", "run", 0, "everything", differences, report=report, bounded=bounded)


def test_a_difference_is_told_once_with_where_to_look(told: list[Notice]) -> None:
    # Also where somebody at the command line has found it first.
    holds = tasks._tell({}, found(MISSING), [], "different")
    assert holds == ["different"]
    assert tasks._tell({}, found(MISSING), holds, "different") == holds
    (notice,) = told
    assert (notice.kind, notice.over) == (NoticeKind.DIFFERENT, False)
    assert "3 missing" in notice.title
    assert "orders" in notice.text
    assert notice.details == {"kinds": {"missing": 3}, "report": "s3://ledger/report.html"}


def test_its_end_is_told_by_a_run_that_left_nothing_out(told: list[Notice]) -> None:
    assert tasks._tell({}, found(bounded=True), ["different"], "different") == ["different"]
    assert told == []
    assert tasks._tell({}, found(), ["different"], "equal") == []
    assert [(notice.kind, notice.over) for notice in told] == [(NoticeKind.DIFFERENT, True)]
    tasks._tell({}, found(), [], "equal")
    assert len(told) == 1
    tasks._tell({}, found(), [], "different")
    assert len(told) == 2, "the run in between had failed, and kept nothing"


def test_the_form_says_what_is_looked_at() -> None:
    filled: dict[str, Any] = {name: param.value for name, param in tasks.reconcile_params().items()}
    assert tasks.asked_scope(filled) == tasks.asked_scope({})
    scope = tasks.asked_scope({**filled, "since": "2026-01-31T12:00:00Z", "topics": "or.*", "deep": True, "rate": 5})
    assert (scope.since_ms, scope.topics, scope.full, scope.deep, scope.rate) == (
        1769860800000,
        "or.*",
        False,
        True,
        5,
    )
    with pytest.raises(ConfigurationError, match="no pattern"):
        tasks.asked_scope({**filled, "topics": "("})
