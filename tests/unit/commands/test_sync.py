"""What people read of a sync."""

from __future__ import annotations

from uuid import UUID

from twinlog.commands.sync import _lines
from twinlog.model.acls import Acl, Pattern
from twinlog.model.quotas import Quota, QuotaChange
from twinlog.model.sync_plan import SyncPlan
from twinlog.model.twin_settings import SettingChange, WantedSettings
from twinlog.model.twin_topics import Deletion, Growth, NewTwin, Report, ReportKind, TopicFacts
from twinlog.operations.sync_result import SyncResult

PLAN = SyncPlan(
    create=(
        NewTwin(
            "nyc.new",
            TopicFacts("new", UUID(int=1), 3, 1),
            2,
            WantedSettings({"retention.ms": "5"}, {"retention.ms": "why"}),
        ),
    ),
    grow=(Growth("nyc.orders", 1, 4),),
    settings=(SettingChange("nyc.orders", "flush.ms", "5", None),),
    add_acls=(Acl("topic", "nyc.", Pattern.PREFIXED, "User:alice", "*", "READ", "ALLOW"),),
    quotas=(QuotaChange(Quota((("user", None),), "producer_byte_rate"), None, 1024.0),),
    delete=(Deletion("nyc.old", UUID(int=2), "old", 0),),
    waiting=(Deletion("nyc.gone", UUID(int=3), "gone", 0),),
)


def test_every_change_is_a_line() -> None:
    assert list(_lines(SyncResult("nyc->lon", PLAN, dry_run=True))) == [
        "nyc->lon: 7 differences, nothing was changed",
        "  create topic nyc.new: partitions none -> 3 (replication factor 2)",
        "  set setting nyc.new: retention.ms none -> 5 (why)",
        "  add partitions nyc.orders: partitions 1 -> 4",
        "  reset setting nyc.orders: flush.ms 5 -> none",
        "  add acl topic nyc.*: User:alice none -> ALLOW READ from *",
        "  set quota user (default): producer_byte_rate none -> 1024",
        "  delete topic nyc.old: topic nyc.old -> none (old is gone from the source)",
        "  delete topic nyc.gone: waits until 1970-01-01 00:00:00 UTC, as gone is gone from the source; "
        "--yes deletes it now",
    ]


def test_how_it_ended_is_the_first_line_and_the_exit_code() -> None:
    shrunk = SyncPlan(reports=(Report(ReportKind.SHRUNK, "orders", "a sentence"),))
    ends = {
        SyncResult("f"): ("f: nothing to change", 0, True),
        SyncResult("f", dry_run=True): ("f: nothing to change", 0, False),
        SyncResult("f", SyncPlan(grow=PLAN.grow)): ("f: 1 difference, put right", 0, True),
        SyncResult("f", SyncPlan(grow=PLAN.grow), dry_run=True): ("f: 1 difference, nothing was changed", 1, False),
        SyncResult("f", SyncPlan(grow=PLAN.grow), failed=("no",)): (
            "f: 1 difference, not all of them put right",
            1,
            False,
        ),
        SyncResult("f", shrunk): ("f: nothing to change", 1, True),
        SyncResult("f", skipped="f is failed over"): ("f is failed over", 0, False),
    }

    for result, expected in ends.items():
        assert (next(_lines(result)), result.exit_code, result.applied) == expected
