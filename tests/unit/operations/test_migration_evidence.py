from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.ledger.store import Ledger
from twinlog.model.flow import Flow
from twinlog.model.migration import Phase
from twinlog.model.takeover import GroupLeftOut, GroupStart, Kind, Request, TakeoverPlan
from twinlog.operations.migration_evidence import Evidence, cleaned_up, group_table, reason_to_stay_away

FLOW = Flow("nyc", "lon")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path / "ledger"), "nyc", "lon")


def test_each_phase_is_there_once_and_each_note(ledger: Ledger) -> None:
    evidence = Evidence(ledger, "20260101T000000Z-1")
    evidence.done(Phase.SETTINGS, "3 changes")
    evidence.done(Phase.SETTINGS, "4 changes", verdict="equal")
    evidence.note(["one", "two"])
    evidence.note(["two", "three"])
    evidence.begin()

    said = Evidence(ledger, "20260101T000000Z-1").read()

    assert [(one["phase"], one["said"]) for one in said["phases"]] == [("settings", "4 changes")]
    assert (said["notes"], said["verdict"]) == (["one", "two", "three"], "equal")


def test_only_the_newest_migration_says_whether_a_flow_stays_away(ledger: Ledger) -> None:
    assert reason_to_stay_away(FLOW, ledger) is None
    first = Evidence(ledger, "20260101T000000Z-1")
    first.begin()
    assert cleaned_up(ledger) is None
    first.write({**first.read(), "cleaning_up": True})

    assert cleaned_up(ledger) == "20260101T000000Z-1"
    said = reason_to_stay_away(FLOW, ledger)
    assert said is not None
    assert said.startswith("nyc->lon was migrated and cleaned up (migration 20260101T000000Z-1)")

    Evidence(ledger, "20260201T000000Z-1").begin()
    assert reason_to_stay_away(FLOW, ledger) is None


def test_groups_are_those_of_the_plan_and_those_that_stay_behind() -> None:
    plan = TakeoverPlan(
        "p",
        Kind.SWITCHOVER,
        "nyc->lon",
        "nyc",
        "lon",
        0,
        Request(),
        rows=(GroupStart("billing", "orders", 0, 7, "exact", 3),),
        left_out=(GroupLeftOut("audit", "it is ahead", "orders", 1),),
    )
    rows = group_table(plan, [["billing", "orders", 2, "it has members"]]).to_pylist()

    assert [(row["group"], row["partition"], row["offset"], row["left_out"]) for row in rows] == [
        ("billing", 0, 7, None),
        ("audit", 1, None, "it is ahead"),
        ("billing", 2, None, "it has members"),
    ]
    assert group_table(None).num_rows == 0
