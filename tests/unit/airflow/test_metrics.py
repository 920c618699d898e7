"""Samples through Airflow's own metrics, as its StatsD client sends them."""

from __future__ import annotations

import math

import pytest
from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped

from twinlog.airflow.metrics import send, tells_errors
from twinlog.airflow.tasks.mirror import tell_of_idle
from twinlog.errors import ErrorKind, NotAuthorizedError
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.flow_state import State
from twinlog.model.metrics import FINDINGS, LAG_RECORDS, TIME_TO_CATCH_UP
from twinlog.model.offsets import TopicPartition
from twinlog.operations.run_plan import RunPlan


class Wire:
    """Where the StatsD client would send to."""

    def __init__(self) -> None:
        self.gauges: dict[str, float] = {}

    def gauge(self, stat: str, value: float, *_: object) -> None:
        self.gauges[stat] = value


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    from airflow.sdk._shared.observability.metrics import stats
    from airflow.sdk._shared.observability.metrics.statsd_logger import SafeStatsdLogger

    found = Wire()
    logger = SafeStatsdLogger(found, influxdb_tags_enabled=True, statsd_influxdb_enabled=True)
    monkeypatch.setattr(stats, "_factory", lambda: logger)
    monkeypatch.setattr(stats, "_backend", None)
    return found


def test_labels_are_tags_in_the_characters_that_airflow_takes(wire: Wire) -> None:
    send([LAG_RECORDS(3, flow="nyc->lon", topic="orders.eu"), FINDINGS(0, flow="nyc->lon", kind="target replaced")])
    assert wire.gauges == {
        "twinlog_lag_records,flow=nyc_to_lon,topic=orders.eu": 3.0,
        "twinlog_findings,flow=nyc_to_lon,kind=target_replaced": 0.0,
    }


def test_what_is_infinite_is_left_out(wire: Wire) -> None:
    send([TIME_TO_CATCH_UP(math.inf, flow="nyc->lon"), TIME_TO_CATCH_UP(5, flow="lon->nyc")])
    assert wire.gauges == {"twinlog_time_to_catch_up_seconds,flow=lon_to_nyc": 5.0}


@pytest.mark.parametrize(
    ("ended_by", "kinds"),
    [
        (None, set()),
        (AirflowSkipException("nothing to do"), set()),
        (DownstreamTasksSkipped(tasks=["copy"]), set()),  # type: ignore[no-untyped-call]
        (NotAuthorizedError("no"), {"not_allowed"}),
        (ValueError("odd"), {"fault"}),
    ],
)
def test_a_task_tells_what_kind_of_error_ended_it(wire: Wire, ended_by: Exception | None, kinds: set[str]) -> None:
    @tells_errors("plan")
    def task(flow_name: str) -> str:
        if ended_by is not None:
            raise ended_by
        return flow_name

    if ended_by is None:
        assert task("nyc->lon") == "nyc->lon"
    else:
        with pytest.raises(type(ended_by)):
            task("nyc->lon")

    assert wire.gauges == {
        f"twinlog_errors,flow=nyc_to_lon,step=plan,kind={kind}": float(kind in kinds) for kind in ErrorKind
    }


def test_a_run_with_nothing_to_copy_replaces_the_figures_of_the_last_that_had(wire: Wire) -> None:
    held = Finding(FindingKind.HELD_BACK, TopicPartition("orders", 0), 7, "an open transaction")
    found = RunPlan("nyc->lon", "r1", State.ACTIVE, findings=(held,))

    tell_of_idle(found, ["copy", "record"], 0.5)

    of_the_flow = {name.removeprefix("twinlog_"): value for name, value in wire.gauges.items()}
    assert of_the_flow["run_seconds,flow=nyc_to_lon"] == 0.5
    assert of_the_flow["run_records,flow=nyc_to_lon"] == 0
    assert of_the_flow["findings,flow=nyc_to_lon,kind=held_back"] == 1
    assert of_the_flow["findings,flow=nyc_to_lon,kind=expired"] == 0
    assert of_the_flow["errors,flow=nyc_to_lon,step=copy,kind=spark"] == 0
    assert "run_end_timestamp_seconds,flow=nyc_to_lon" in of_the_flow
