"""The form of a mirror run."""

from __future__ import annotations

import pytest
from airflow.sdk import ParamsDict
from airflow.sdk.exceptions import ParamValidationError

from twinlog.airflow.params import run_limits, run_params
from twinlog.errors import ConfigurationError
from twinlog.model.flow import Flow
from twinlog.operations.run_scope import Limits

FLOW = Flow("nyc", "lon", budget_bytes=1_000, budget_seconds=60)


def filled(**values: object) -> Limits:
    """What a run is limited to whose form was filled in so."""
    fields = ParamsDict(run_params(FLOW))
    fields.update(values)
    return run_limits(fields.validate())


def test_a_form_that_is_left_as_it_is_limits_nothing() -> None:
    assert filled() == Limits()
    assert filled(topics=[]) == Limits()


def test_what_is_filled_in_limits_the_run() -> None:
    limits = filled(max_bytes=10, max_seconds=5, topics=["orders"], until="2026-01-31T12:00:00+01:00")
    assert limits == Limits(10, 5, frozenset({"orders"}), 1_769_857_200_000)
    assert filled(until="2026-01-31T11:00:00Z").until_ms == limits.until_ms


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
