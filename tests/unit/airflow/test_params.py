"""The form of a mirror run."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import ParamsDict
from airflow.sdk.exceptions import ParamValidationError
from airflow.utils.types import DagRunType

from twinlog.airflow.params import run_limits, run_params
from twinlog.errors import ConfigurationError
from twinlog.model.flow import Flow
from twinlog.operations.run_scope import Limits

FLOW = Flow("nyc", "lon", budget_bytes=1_000, budget_seconds=60)


BY_HAND = SimpleNamespace(run_type="manual", data_interval_start=None, data_interval_end=None)


def filled(run: Any = BY_HAND, **values: object) -> Limits:
    """What a run is limited to whose form was filled in so."""
    fields = ParamsDict(run_params(FLOW))
    fields.update(values)
    context: Any = {"params": fields.validate(), "dag_run": run}
    return run_limits(context)


def test_a_form_that_is_left_as_it_is_limits_nothing() -> None:
    assert filled() == Limits()
    assert filled(topics=[]) == Limits()


def test_what_is_filled_in_limits_the_run() -> None:
    limits = filled(max_bytes=10, max_seconds=5, topics=["orders"], until="2026-01-31T12:00:00+01:00")
    assert limits == Limits(10, 5, frozenset({"orders"}), 1_769_857_200_000)
    assert filled(until="2026-01-31T11:00:00Z").until_ms == limits.until_ms


def test_a_run_of_airflow_s_own_backfill_copies_its_interval_and_any_other_all_there_is() -> None:
    begins, ends = datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    day = {"data_interval_start": begins, "data_interval_end": ends}
    backfill = SimpleNamespace(run_type=DagRunType.BACKFILL_JOB, **day)

    assert filled(backfill) == Limits(from_ms=1_769_817_600_000, until_ms=1_769_904_000_000)
    assert filled(backfill, until="2026-01-31T11:00:00Z").until_ms == 1_769_857_200_000
    assert filled(backfill, until="2027-01-31T11:00:00Z").until_ms == 1_769_904_000_000
    assert filled(SimpleNamespace(run_type=DagRunType.SCHEDULED, **day)) == Limits()


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_bytes": 0},
        {"max_bytes": 1_001},
        {"max_bytes": "many"},
        {"max_seconds": 61},
        {"until": "yesterday"},
        {"topics": "orders"},
        {"topics": [""]},
        {"topics": ["orders", "orders"]},
    ],
)
def test_what_is_filled_in_wrongly_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParamValidationError):
        filled(**wrong)


def test_a_time_that_does_not_exist_is_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="until: expected a time such as"):
        filled(until="2026-02-31T12:00:00Z")
