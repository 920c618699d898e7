from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds

from twinlog.ledger.store import Ledger
from twinlog.operations.readiness import KEPT, SCHEMA, TRIED, Readiness, ReadinessTables

ROW = {"flow": "nyc->lon", "at_ms": 1, "group": "billing", "topic": "orders", "partition": 0, "unread": 3}


def found(at_ms: int, *rows: dict[str, object]) -> Readiness:
    return Readiness(at_ms, SCHEMA.empty_table().from_pylist([{**ROW, **row} for row in rows], schema=SCHEMA))


def test_a_group_is_ready_where_all_its_partitions_are() -> None:
    seen = found(
        1,
        {"ready": True, "lost_records": 2, "lost_seconds": 1.5},
        {"ready": False, "partition": 1, "reason": "ahead of the mirror", "unread": None, "lost_records": 4},
        {"ready": True, "group": "audit"},
    )

    audit, billing = seen.groups
    assert (seen.ready, seen.not_ready) == (1, 1)
    assert (audit.group, audit.ready, audit.lost_records) == ("audit", True, None)
    assert (billing.ready, billing.partitions, billing.unread) == (False, 2, 3)
    assert (billing.lost_records, billing.lost_seconds, billing.reasons) == (6, 1.5, ("ahead of the mirror",))


def test_a_group_says_where_it_goes_on_in_each_partition_that_it_has_committed_on() -> None:
    on = {"target_topic": "nyc.orders", "target_offset": 7, "ready": True, "how": "copied"}
    seen = found(1, on, {"ready": False, "partition": 1, "reason": "recreated"}, {"group": "idle", "topic": None})

    billing, idle = seen.groups

    assert [(one.partition, one.target_offset, one.how, one.reason) for one in billing.offsets] == [
        (0, 7, "copied", None),
        (1, None, None, "recreated"),
    ]
    assert (idle.partitions, idle.offsets) == (0, ())


def test_what_a_group_would_lose_is_not_known_where_one_of_its_partitions_is_not() -> None:
    (billing,) = found(
        1,
        {"ready": True, "target_topic": "nyc.orders", "lost_records": 2, "lost_seconds": 1.5},
        {"ready": True, "target_topic": "nyc.orders", "partition": 1},
    ).groups
    assert (billing.lost_records, billing.lost_seconds) == (None, None)


def test_the_last_tables_are_kept_and_the_newest_is_read_back(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "nyc", "lon")
    tables = ReadinessTables(ledger)
    assert (tables.last([]), tables.last_ms()) == (None, None)

    for at_ms in range(1, KEPT + 4):
        tables.write(found(at_ms, {"ready": True}))

    last = tables.last([])
    assert last is not None
    assert (last.at_ms, tables.last_ms()) == (KEPT + 3, KEPT + 3)
    assert last.groups == found(1, {"ready": True}).groups
    assert len(list((tmp_path / "_readiness").rglob("*.parquet"))) == KEPT


def test_whoever_reads_the_ledger_does_not_meet_the_tables(tmp_path: Path) -> None:
    ReadinessTables(Ledger(str(tmp_path), "nyc", "lon")).write(found(1, {"ready": True}))

    assert ds.dataset(tmp_path, format="parquet", partitioning="hive").files == []


def test_a_damaged_table_is_told_of_and_the_one_before_it_is_read(tmp_path: Path) -> None:
    tables = ReadinessTables(Ledger(str(tmp_path), "nyc", "lon"))
    tables.write(found(1, {"ready": True}))
    tables.write(found(2, {"ready": True}))
    newest = max(tmp_path.rglob("readiness-*.parquet"))
    newest.write_text("no Parquet")
    unreadable: list[str] = []

    last, groups = tables.last(unreadable), tables.last_groups([])

    assert last is not None
    assert (last.at_ms, groups) == (1, {"billing"})
    (sentence,) = unreadable
    assert str(newest) in sentence


def test_a_storage_that_fails_is_not_tried_for_ever(tmp_path: Path) -> None:
    tables = ReadinessTables(Ledger(str(tmp_path), "nyc", "lon"))
    for at_ms in range(1, TRIED + 3):
        tables.write(found(at_ms, {"ready": True}))
    for file in tmp_path.rglob("readiness-*.parquet"):
        file.write_text("no Parquet")
    unreadable: list[str] = []

    assert tables.last(unreadable) is None
    assert len(unreadable) == TRIED
