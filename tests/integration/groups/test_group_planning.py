"""One group's plan, and how ready all are: with the source there, with one that stops answering, and without."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from local.kafka import KafkaClusters
from support.group_logs import all_of, filled
from support.groups import checkpoint, checkpointing, commit, committed, delete_group, planning, read
from support.mirroring import Twins, producer
from support.silent import closed_port
from support.source_logs import fill
from twinlog.errors import ClusterUnreachableError
from twinlog.model.checkpoints import Reason
from twinlog.model.takeover import Request
from twinlog.operations.readiness import ReadinessTables
from twinlog.operations.takeover_plan import TakeoverPlanning


def test_readiness_says_what_is_unread_and_what_would_be_lost(flow: Twins, topic: str, group: str) -> None:
    filled(flow, topic, partitions=2)
    everything = all_of(flow.source_servers, topic)
    commit(flow.source_servers, group, topic, {0: 10, 1: 20})
    flow.mirror()
    fill(flow.source_servers, topic, ["one", "two"], 1)

    checkpoint(flow)
    table = ReadinessTables(flow.ledger).last([])
    fresh = checkpointing(flow).look()

    assert table is not None
    for found in (table, fresh):
        assert (found.ready, found.not_ready) == (1, 0)
        (one,) = found.groups
        assert one.unread == everything.total() - 30
        assert one.lost_records == 2
        assert one.lost_seconds is not None
        assert 0 <= one.lost_seconds < 120


def test_one_group_is_planned_with_the_source_gone(
    kafka_pair: KafkaClusters, flow: Twins, mark: str, topic: str, group: str
) -> None:
    filled(flow, topic, partitions=2)
    everything = all_of(flow.source_servers, topic)
    commit(flow.source_servers, group, topic, {0: 10, 1: 20})
    commit(flow.source_servers, f"ahead-{mark}", topic, {0: 10_000})
    flow.mirror()
    checkpoint(flow)

    there = planning(flow).plan(group)
    gone = planning(flow, source_servers=closed_port())
    alone = gone.plan(group)

    assert there.lost_records == 0
    assert sum(row["unread"] for row in there.plan) == everything.total() - 30
    assert [(row["topic"], row["partition"], row["offset"]) for row in there.plan] == [
        (flow.twin(topic), 0, 10),
        (flow.twin(topic), 1, committed(flow.target_servers, group, flow.twin(topic))[1]),
    ]
    assert (alone.plan, alone.lost_records) == (there.plan, None)
    assert "checkpoints" in alone.notes[0]
    (ahead,) = gone.plan(f"ahead-{mark}").plan
    assert (ahead["how"], ahead["unread"]) == ("end of copy", 0)
    assert [row["reason"] for row in gone.plan(f"nobody-{mark}").left_out] == [Reason.NO_COMMIT]


def test_a_source_that_stops_answering_is_taken_for_gone(
    flow: Twins, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(flow, topic, partitions=1)
    commit(flow.source_servers, group, topic, {0: 10})
    flow.mirror()
    checkpoint(flow)

    def lost(*_: object, **__: object) -> NoReturn:
        raise ClusterUnreachableError(f"cluster {flow.flow.source}: no broker answers")

    for step in ("read_source_groups", "measure_partitions"):
        with monkeypatch.context() as patched:
            patched.setattr(f"twinlog.operations.group_plan.{step}", lost)
            found = planning(flow).plan(group)

        assert [(row["partition"], row["offset"]) for row in found.plan] == [(0, 10)]
        assert found.lost_records is None
        assert "no broker answers" in found.notes[0]


def test_a_damaged_readiness_table_stands_in_the_way_of_nothing(flow: Twins, topic: str, group: str) -> None:
    filled(flow, topic, partitions=1)
    commit(flow.source_servers, group, topic, {0: 10})
    flow.mirror()
    checkpoint(flow)
    newest = max((Path(flow.topology.ledger) / "_readiness").rglob("readiness-*.parquet"))
    newest.write_text("no Parquet")

    alone = planning(flow, source_servers=closed_port()).plan(group)
    ends = flow.ends()
    takeover = TakeoverPlanning(flow.topology, flow.flow, ends.source, ends.target, flow.ledger).plan_alone(Request())
    delete_group(flow.source_servers, group)
    result = checkpoint(flow)

    for notes in (alone.notes, takeover.notes, result.standings.notes):
        assert [note for note in notes if str(newest) in note], notes
    assert [(row["partition"], row["offset"]) for row in alone.plan] == [(0, 10)]
    assert [(row.group, row.offset) for row in takeover.rows] == [(group, 10)]
    assert result.skipped is None
    assert [note for note in result.standings.notes if group in note], "the group is gone"


def test_what_was_known_only_of_the_last_pass_is_left_out_with_the_source_gone(
    flow: Twins, mark: str, topic: str, group: str
) -> None:
    filled(flow, topic, partitions=1)
    elsewhere = f"elsewhere-{mark}x"
    flow.create(elsewhere)
    commit(flow.source_servers, group, topic, {0: 10})
    commit(flow.source_servers, group, elsewhere, {0: 0})
    flow.mirror()
    checkpoint(flow)

    gone = planning(flow, source_servers=closed_port())
    for found in (gone.plan(group), gone.plan(group, at_ms=0)):
        assert [(row["topic"], row["partition"]) for row in found.plan] == [(flow.twin(topic), 0)]
        assert [(row["topic"], row["reason"]) for row in found.left_out] == [(elsewhere, Reason.NOT_TAKEN)]


def test_a_group_that_was_ahead_goes_on_at_its_own_position_once_that_is_copied_with_the_source_gone(
    flow: Twins, topic: str, group: str
) -> None:
    filled(flow, topic, partitions=1)
    flow.mirror()
    fill(flow.source_servers, topic, ["read"])
    read(flow.source_servers, group, topic)
    checkpoint(flow)
    fill(flow.source_servers, topic, ["not read"])
    flow.mirror()

    (row,) = planning(flow, source_servers=closed_port()).plan(group).plan

    assert (row["how"], row["unread"]) == ("copied", 1)


def test_offsets_by_time_are_those_of_the_first_record_of_that_time(flow: Twins, topic: str, group: str) -> None:
    flow.create(topic, 2)
    writer = producer(flow.source_servers)
    for number in range(10):
        writer.produce(topic, str(number), partition=0, timestamp=1_000_000 + number * 1_000)
    assert writer.flush(30) == 0
    flow.mirror()

    found = planning(flow).plan(group, at_ms=1_004_500)

    assert [(row["partition"], row["offset"], row["how"], row["unread"]) for row in found.plan] == [
        (0, 5, "by time", 5),
        (1, 0, "by time", 0),
    ]
