from __future__ import annotations

from twinlog.airflow.tasks.status import notices
from twinlog.model.objectives import Objective, Objectives
from twinlog.operations.status import FlowStatus, SideStatus

NYC = SideStatus("nyc", True)
LON = SideStatus("lon", True)


def told(flow: FlowStatus) -> dict[str, tuple[bool, str]]:
    return {notice.kind: (notice.over, notice.title) for notice in notices(flow)}


def test_of_a_flow_without_objectives_only_its_clusters_are_told() -> None:
    assert told(FlowStatus("nyc->lon", "active", NYC, LON)) == {
        "unreachable": (True, "nyc->lon: both clusters can be reached again")
    }


def test_a_cluster_that_is_away_is_told_with_what_it_said() -> None:
    away = SideStatus("lon", False, error="no broker of lon answered")
    (notice,) = notices(FlowStatus("nyc->lon", "active", NYC, away))
    assert (notice.over, notice.title) == (False, "nyc->lon: lon could not be reached")
    assert notice.text == "no broker of lon answered"


def test_an_objective_is_told_when_it_is_missed_and_when_it_is_met() -> None:
    missed = Objectives(point=Objective(60, 90.4, "lag"), time=Objective(300, None))
    assert told(FlowStatus("nyc->lon", "active", NYC, LON, objectives=missed))["lag"] == (
        False,
        "nyc->lon: lag is beyond what is wanted: 90 s measured, 60 s wanted",
    )
    met = Objectives(point=Objective(60, 1, "lag"), time=Objective(300, 301, "drill"))
    assert {kind: over for kind, (over, _) in told(FlowStatus("f", "active", NYC, LON, objectives=met)).items()} == {
        "unreachable": True,
        "lag": True,
        "recovery_time": False,
    }
