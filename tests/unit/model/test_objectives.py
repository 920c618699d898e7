from __future__ import annotations

from twinlog.model.objectives import Objective, Objectives, recovery_point


def test_the_lag_is_the_recovery_point_and_without_it_the_last_sign_of_life() -> None:
    assert recovery_point(60, 5.0, 90.0) == Objective(60, 5.0, "lag")
    assert recovery_point(60, None, 90.0) == Objective(60, 90.0, "heartbeat")
    assert recovery_point(60, None, None) == Objective(60)


def test_what_is_not_wanted_or_not_known_is_neither_met_nor_missed() -> None:
    assert Objective(60).met is None
    assert Objective(None, 5.0).met is None
    assert Objective(60, 60.0).met is True
    assert Objective(60, 60.1).met is False
    assert list(Objectives().missed("nyc->lon")) == []


def test_each_that_is_missed_is_a_sentence() -> None:
    found = Objectives(Objective(60, 75.25, "heartbeat"), Objective(300, 1_200.0, "drill"))
    assert list(found.missed("nyc->lon")) == [
        "nyc->lon: the recovery point is missed: 75.2 s by the heartbeat, 60 s wanted",
        "nyc->lon: the recovery time is missed: 1,200.0 s by the drill, 300 s wanted",
    ]
    assert found.to_json()["recovery_time"] == {
        "wanted_s": 300,
        "measured_s": 1_200.0,
        "measured_by": "drill",
        "measured_at_ms": None,
        "met": False,
    }
