"""Results become samples; what is not known becomes none."""

from __future__ import annotations

import math
from dataclasses import replace

from support.exposition import read_exposition, series
from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.errors import ErrorKind
from twinlog.model.canary import Verdict
from twinlog.model.figures import Figures
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.metrics import exposition
from twinlog.model.objectives import Objective, Objectives
from twinlog.model.offsets import TopicPartition
from twinlog.operations.canary import CanaryResult
from twinlog.operations.lag import TopicLag
from twinlog.operations.metrics import canary_samples, pace_samples, run_samples, status_samples
from twinlog.operations.mirror_result import MirrorResult, RecordedRun
from twinlog.operations.pace import Pace, TopicPace
from twinlog.operations.status import FlowStatus, SideStatus

FLOW = "nyc->lon"
FIGURES = Figures(
    records=100,
    bytes=5_000,
    batches=10,
    retries=1,
    fetches=4,
    fetched_bytes=8_000,
    produces=5,
    in_flight_sum=10,
    seconds=10.0,
    waited_source_s=6.0,
    waited_target_s=1.0,
    throttled_s=0.5,
    quota_s=0.5,
)


def run(**changes: object) -> MirrorResult:
    lane = LaneReport(0, Outcome.DONE, "", FIGURES, ())
    done = MirrorResult(
        FLOW, "r1", seconds=5.0, partitions=2, recorded=RecordedRun(100, 5_000, {"aborted": 3}), lanes=(lane,)
    )
    return replace(done, **changes)


def test_a_look_that_found_everything() -> None:
    row = FlowStatus(
        FLOW,
        "active",
        SideStatus("nyc", reachable=True),
        SideStatus("lon", reachable=False),
        lag_records=7,
        lag=(TopicLag("orders", 7, 1.5), TopicLag("odd", 1, None), TopicLag("leaderless", None, None)),
        heartbeat_age_s=2.5,
        objectives=Objectives(Objective(60, 7.5, "lag"), Objective(5, 8.0, "drill")),
        groups_ready=4,
        groups_not_ready=0,
        groups_age_s=60.5,
        last_verdict="different",
        last_verdict_age_s=90.5,
    )
    found = read_exposition(exposition(status_samples(row)))
    assert {one: value for one, value in found.items() if one[0] != "twinlog_errors"} == {
        series("twinlog_cluster_reached", flow=FLOW, side="source", cluster="nyc"): 1,
        series("twinlog_cluster_reached", flow=FLOW, side="target", cluster="lon"): 0,
        series("twinlog_lag_records", flow=FLOW, topic="orders"): 7,
        series("twinlog_lag_records", flow=FLOW, topic="odd"): 1,
        series("twinlog_lag_seconds", flow=FLOW, topic="orders"): 1.5,
        series("twinlog_heartbeat_age_seconds", flow=FLOW): 2.5,
        series("twinlog_recovery_point_seconds", flow=FLOW): 7.5,
        series("twinlog_recovery_time_seconds", flow=FLOW): 8,
        series("twinlog_recovery_wanted_seconds", flow=FLOW, objective="point"): 60,
        series("twinlog_recovery_wanted_seconds", flow=FLOW, objective="time"): 5,
        series("twinlog_recovery_objective_missed", flow=FLOW, objective="point"): 0,
        series("twinlog_recovery_objective_missed", flow=FLOW, objective="time"): 1,
        series("twinlog_groups_ready", flow=FLOW): 4,
        series("twinlog_groups_not_ready", flow=FLOW): 0,
        series("twinlog_groups_age_seconds", flow=FLOW): 60.5,
        series("twinlog_twin_equal", flow=FLOW): 0,
        series("twinlog_verdict_age_seconds", flow=FLOW): 90.5,
    }


def test_a_flow_that_never_ran_has_no_lag_and_no_heartbeat() -> None:
    side = SideStatus("nyc", reachable=True)
    found = read_exposition(exposition(status_samples(FlowStatus(FLOW, "active", side, side))))
    assert {name for name, _ in found} == {"twinlog_cluster_reached", "twinlog_errors"}
    assert not any(value for (name, _), value in found.items() if name == "twinlog_errors")


def test_what_a_look_could_not_see_is_told_by_kind() -> None:
    away = SideStatus("nyc", reachable=False, error="no", error_kind=ErrorKind.UNREACHABLE)
    closed = SideStatus("lon", reachable=False, error="no", error_kind=ErrorKind.NOT_AUTHENTICATED)
    row = FlowStatus(FLOW, "unreachable", away, closed, problem="no", problem_kinds=(ErrorKind.LEDGER,))
    found = read_exposition(exposition(status_samples(row)))
    assert {dict(labels)["kind"] for (name, labels), value in found.items() if name == "twinlog_errors" and value} == {
        "unreachable",
        "not_authenticated",
        "ledger",
    }


def test_the_pace_of_a_flow_that_falls_behind() -> None:
    pace = Pace({"orders": TopicPace(1_000.0, 60.0), "small": TopicPace(0.0, None)}, 5.0, 500.0, 400.0)
    found = read_exposition(exposition(pace_samples(FLOW, pace)))
    assert found[series("twinlog_lag_bytes", flow=FLOW, topic="orders")] == 1_000
    assert found[series("twinlog_time_until_expiry_seconds", flow=FLOW, topic="orders")] == 60
    assert found[series("twinlog_time_to_catch_up_seconds", flow=FLOW)] == math.inf
    assert series("twinlog_time_until_expiry_seconds", flow=FLOW, topic="small") not in found
    unknown = Pace({"orders": TopicPace(None, None)}, None, None, None)
    assert list(pace_samples(FLOW, unknown)) == []


def test_a_run_and_its_copier() -> None:
    found = read_exposition(exposition(run_samples(run(), ended_s=1_700_000_000.0)))
    assert found[series("twinlog_run_end_timestamp_seconds", flow=FLOW)] == 1_700_000_000
    assert found[series("twinlog_copy_bytes_per_second", flow=FLOW)] == 1_000
    assert found[series("twinlog_run_gap_offsets", flow=FLOW, kind="aborted")] == 3
    assert found[series("twinlog_findings", flow=FLOW, kind="target replaced")] == 0
    assert found[series("twinlog_copier_fetch_bytes_mean", flow=FLOW)] == 2_000
    assert found[series("twinlog_copier_requests_in_flight_mean", flow=FLOW)] == 2
    spent = {
        dict(labels)["spent"]: value for (name, labels), value in found.items() if name == "twinlog_copier_time_ratio"
    }
    assert spent == {"source": 0.6, "target": 0.1, "throttle": 0.05, "quota": 0.05, "work": 0.2}
    limits = {
        dict(labels)["limit"]: value for (name, labels), value in found.items() if name == "twinlog_copier_limited_by"
    }
    assert limits == {"source": 1, "target": 0, "throttle": 0, "copier": 0}


def test_errors_are_counted_by_kind_one_a_partition() -> None:
    one, other = (Finding(FindingKind.EXPIRED, TopicPartition("orders", number), 0, "gone") for number in (0, 1))
    failed = LaneReport(1, Outcome.FAILED, "no", Figures(), ())
    found = read_exposition(exposition(run_samples(run(findings=(one, one, other), lanes=(failed,)))))
    assert found[series("twinlog_findings", flow=FLOW, kind="expired")] == 2
    assert found[series("twinlog_lanes_not_done", flow=FLOW, outcome="failed")] == 1
    assert not [name for name, _ in found if name.startswith("twinlog_copier")], "it never began"


def test_nothing_is_known_of_a_run_that_was_skipped() -> None:
    assert list(run_samples(MirrorResult(FLOW, "r1", skipped="another holds it"))) == []


def test_a_canary_with_faults_and_one_that_never_arrived() -> None:
    verdict = Verdict(10, 9, 1, 0, 2, 3, 4, 0.5, 0.75)
    result = CanaryResult(FLOW, "r1", "t", "nyc.t", 1, verdict, 1.0)
    found = read_exposition(exposition(canary_samples(result)))
    assert found[series("twinlog_canary_latency_seconds", flow=FLOW, quantile="0.99")] == 0.75
    assert {
        dict(labels)["fault"]: value for (name, labels), value in found.items() if name == "twinlog_canary_faults"
    } == {"lost": 1, "late": 0, "doubled": 2, "out_of_order": 3, "altered": 4}
    never = replace(result, verdict=Verdict(10, 0, 0, 10, 0, 0, 0, None, None))
    assert "latency" not in exposition(canary_samples(never))
