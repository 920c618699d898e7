from __future__ import annotations

import json

from twinlog.airflow.takeover_view import question, shown_plan, shown_result
from twinlog.airflow.tasks.mirror import LISTED_AT_MOST
from twinlog.model.acls import Acl, Pattern
from twinlog.model.takeover import GroupLeftOut, GroupStart, Kind, Request, TakeoverPlan, TopicLoss
from twinlog.model.takeover_progress import Step
from twinlog.model.twin_settings import SettingChange
from twinlog.operations.takeover_result import StepDone, TakeoverResult

PLAN = TakeoverPlan(
    "20260131T120000Z-1a2b3c4d",
    Kind.FAILOVER,
    "nyc->lon",
    "nyc",
    "lon",
    1_769_860_800_000,
    Request(),
    rows=tuple(GroupStart(f"g{number}", "nyc.orders", 0, 8_000, "copied", 1_998) for number in range(150)),
    left_out=(GroupLeftOut("late", "it reads topics that are not mirrored"),),
    losses=(TopicLoss("orders", "nyc.orders", 2, 4.5),),
    lost_records=2,
    lost_seconds=4.5,
    lost_note="by the last that was seen of nyc",
    bootstrap_servers="kafka.lon.example.com:9092",
    topics={"orders": "nyc.orders"},
    promoted=("refunds",),
    settings=(SettingChange("refunds", "compression.type", "producer", "zstd"),),
    acls=(Acl("TOPIC", "refunds", Pattern.LITERAL, "User:alice", "*", "WRITE", "ALLOW"),),
    notes=("nyc did not answer",),
)


def test_a_person_reads_all_that_is_going_to_happen() -> None:
    text = question(PLAN, "/ledger/plan.json", "/ledger/plan.csv")
    for part in (
        "1. nyc->lon is marked failed over on lon",
        "Lost: 2 records, 4.5 s at most",
        "| group | partitions | how | unread |",
        "| g0 | 1 | copied | 1998 |",
        "| late |  |  | it reads topics that are not mirrored |  |",
        "| orders | nyc.orders |",
        "| refunds | compression.type | producer | zstd |",
        "| User:alice | WRITE | TOPIC refunds |",
        "`kafka.lon.example.com:9092`",
        "- nyc did not answer",
        "`/ledger/plan.csv`",
    ):
        assert part in text


def test_what_airflow_keeps_is_cut_and_says_how_much_there_is() -> None:
    shown = shown_plan(PLAN, "/ledger/plan.json")
    assert len(shown["plan"]) == LISTED_AT_MOST
    assert (shown["plan_total"], shown["groups"], shown["topics_total"]) == (150, 150, 1)
    assert shown["steps"][2].startswith("3. 150 offsets of 150 groups"), "of the whole plan, not of what is shown"
    assert json.loads(json.dumps(shown)) == shown

    done = TakeoverResult(PLAN, (StepDone(Step.STOP, 0.5, "stopped"),), failures=("refused",), seconds=1.5)
    result = shown_result(done, "/ledger/plan.json")
    assert result["done"] == [{"step": "stop", "seconds": 0.5, "said": "stopped"}]
    assert (result["failures"], result["seconds"], result["left_out_total"]) == (["refused"], 1.5, 1)
    assert result["objectives"]["recovery_time"]["met"] is None
