"""The first half of a migration: settings, backfill, and ordinary runs that go on without a seam."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from support.ledger_check import check_twins, flow_positions, ledger_rows
from support.migrating import migrate, migrating, migration, stamped
from support.mirroring import Twins
from support.source_logs import delete_records, fill
from support.syncing import Hand
from twinlog.cluster.copier import LaneReport
from twinlog.cluster.copy_order import CopyOrder, carry_out_here
from twinlog.errors import ConfigurationError, FlowStateError
from twinlog.model.backfill import Priorities
from twinlog.model.blackouts import DAYS, Blackouts
from twinlog.model.flow_state import Lease, State
from twinlog.model.migration import Phase
from twinlog.model.offsets import TopicPartition
from twinlog.model.twin_settings import MOST
from twinlog.operations import backfill_progress, backfilling
from twinlog.operations.backfilling import Backfilling
from twinlog.operations.migrate import Asked
from twinlog.operations.throttling import change_throttle

DAY_MS = 24 * 3600 * 1000


def now_ms() -> int:
    return int(time.time() * 1000)


def test_what_is_there_is_copied_and_ordinary_runs_go_on_at_the_next_offset(flow: Twins, topic: str) -> None:
    flow.create(topic, 2)
    for partition in range(2):
        fill(flow.source_servers, topic, range(300), partition)

    done = migrate(flow)
    fill(flow.source_servers, topic, range(300, 350), 1)
    ran = flow.mirror()

    assert done.failures == ()
    assert done.done == (Phase.SETTINGS, Phase.BACKFILL, Phase.LIVE, Phase.PROOF)
    assert migration(flow).phase is Phase.CUT_OVER
    assert done.backfilled.records == 600
    assert ran.recorded.records == 50
    assert check_twins(flow, topic) == 650


def test_while_it_backfills_ordinary_runs_wait_and_the_target_keeps_what_is_old(flow: Twins, topic: str) -> None:
    target = Hand(flow.target_servers)
    compacted, empty = f"{topic}.compacted", f"{topic}.empty"
    flow.create(topic, retention_ms="3600000", message_timestamp_before_max_ms=MOST)
    flow.create(compacted, cleanup_policy="compact,delete", retention_ms="3600000", segment_ms="1000")
    flow.create(empty)
    fill(flow.source_servers, topic, range(20))
    fill(flow.source_servers, compacted, range(20))
    moving = migrating(flow)

    moving.begin(Asked())
    moving.settings()
    held = {name: target.overrides(flow.twin(name)) for name in (topic, compacted, empty)}
    waits = flow.mirror()
    moving.backfill(carry_out_here, tasks=1)
    ordinary = flow.mirror()

    for name in (topic, compacted, empty):
        assert (held[name]["retention.ms"], held[name]["retention.bytes"]) == ("-1", "-1")
        assert held[name]["min.compaction.lag.ms"] == MOST
        assert target.overrides(flow.twin(name))["retention.ms"] == "-1"
    assert waits.skipped is not None
    assert "is being migrated and is at its backfill" in waits.skipped
    assert ordinary.skipped is None
    assert TopicPartition(flow.twin(empty), 0) in flow_positions(flow)
    assert check_twins(flow, topic) == 20


def test_it_begins_at_a_time_or_an_offset_and_counts_what_lies_before(flow: Twins, topic: str) -> None:
    flow.create(topic, 4)
    begin_ms = now_ms() - DAY_MS
    for partition in range(3):
        stamped(flow.source_servers, topic, range(30), begin_ms - 1, partition)
        stamped(flow.source_servers, topic, range(30, 50), begin_ms, partition)
    delete_records(flow.source_servers, topic, 10)
    offsets = {TopicPartition(topic, 1): 40, TopicPartition(topic, 2): 5}

    done = migrate(flow, from_ms=begin_ms, from_offsets=offsets)

    assert done.backfilled.records == 20 + 10 + 45
    skipped = {row["partition"]: row["gap_skipped"] for row in ledger_rows(flow, topic) if row["gap_skipped"]}
    assert skipped == {0: 20, 1: 40, 2: 5}
    assert [int(one.value) for one in flow.read_target(topic)[0]] == list(range(30, 50))
    assert [int(one.value) for one in flow.read_target(topic)[1]] == list(range(40, 50))
    with pytest.raises(ConfigurationError, match=f"shows no partition {topic}-4"):
        migrate(flow, from_offsets={TopicPartition(topic, 4): 1})
    with pytest.raises(FlowStateError, match="where it begins, and what it adopts, was settled"):
        migrate(flow, from_ms=begin_ms - 5)


def test_offsets_far_from_zero_and_topics_without_records(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(400))
    delete_records(flow.source_servers, topic, 390)
    flow.create(f"{topic}.gone")
    fill(flow.source_servers, f"{topic}.gone", range(40))
    delete_records(flow.source_servers, f"{topic}.gone", 40)

    assert migrate(flow).failures == ()

    positions = flow_positions(flow)
    assert positions[TopicPartition(flow.twin(f"{topic}.gone"), 0)].offset == 40
    assert check_twins(flow, topic, {0: 390}) == 10
    fill(flow.source_servers, f"{topic}.gone", [40])
    assert flow.mirror().recorded.records == 1


def test_urgent_topics_come_first_and_whoever_goes_on_finds_where_it_was(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However little is left, it is worth a run.
    monkeypatch.setattr(backfill_progress, "SMALL_LAG_S", 0.0)
    names = [f"{topic}.{end}" for end in ("c", "b", "a")]
    for name in names:
        flow.create(name)
        fill(flow.source_servers, name, range(100))
    order: list[set[str]] = []

    def interrupted(orders: Sequence[CopyOrder]) -> list[LaneReport]:
        copied = [one.pair.source_topic for each in orders for one in each.ranges if one.range.offsets > 1]
        order.append(set(copied))
        if len(order) == 3:
            raise KeyboardInterrupt
        return carry_out_here(list(orders))

    priority = (".*[.]b", ".*[.]c")
    with pytest.raises(KeyboardInterrupt):
        migrating(flow).run(Asked(priority=priority), interrupted, tasks=1)
    at = migration(flow)
    done = migrate(flow)

    assert order[1:] == [{names[1]}, {names[0]}]
    assert (at.phase, at.priority, at.positioned) == (Phase.BACKFILL, priority, True)
    assert at.id == done.migration.id
    assert Priorities(priority).ranks(names) == [[names[1]], [names[0]], [names[2]]]
    assert sum(check_twins(flow, name) for name in names) == 300


def test_nothing_is_copied_in_a_blackout_and_a_run_ends_when_one_begins(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(100))
    moving = migrating(flow)
    moving.begin(Asked(blackouts=("mon-fri 08:00-18:00",)))
    moving.settings()
    # A Wednesday at noon, and it is evening when the first window has been waited for.
    noon_ms = (6 * 24 + 12) * 3600 * 1000
    clock, waited, told = [noon_ms], list[float](), list[str]()
    seconds: list[float] = []

    def wait(for_s: float) -> None:
        waited.append(for_s)
        clock[0] += int(for_s * 1000)

    def copying(orders: Sequence[CopyOrder]) -> list[LaneReport]:
        seconds.extend(order.settings.budget_s for order in orders)
        assert Blackouts.parse(["mon-fri 08:00-18:00"]).ends_at_ms(clock[0]) is None
        clock[0] = noon_ms + int(19.9 * 3600 * 1000)
        return carry_out_here(list(orders))

    backfill = Backfilling(
        flow.topology,
        flow.flow,
        flow.ends(),
        flow.ledger,
        migration(flow),
        wait=wait,
        tell=told.append,
        now_ms=lambda: clock[0],
    )
    done = backfill.run(copying, tasks=1)

    assert DAYS[2] == "wed"
    assert sum(waited) == 6 * 3600
    assert done.records == 100
    assert seconds[0] == pytest.approx(backfilling.RUN_SECONDS)
    assert seconds[1] == pytest.approx(0.1 * 3600)
    assert sum("nothing is backfilled before" in sentence for sentence in told) == 1


def test_its_rate_is_the_one_on_the_target_whatever_the_topology_says(flow: Twins, topic: str) -> None:
    flow = flow.with_settings(throttle=7.0)
    flow.create(topic)
    fill(flow.source_servers, topic, range(100))
    moving = migrating(flow)
    rates: list[int] = []

    def copying(orders: Sequence[CopyOrder]) -> list[LaneReport]:
        rates.append(flow.record().throttle_bytes_per_s)
        change_throttle(flow.flow, flow.ends().target, 50.0)
        return carry_out_here(list(orders))

    moving.begin(Asked(throttle=30.0))
    moving.settings()
    moving.backfill(copying, tasks=1)
    after = flow.mirror()

    assert rates == [30_000_000, 50_000_000]
    assert after.skipped is None
    assert flow.record().throttle_bytes_per_s == 7_000_000


def test_a_dry_run_says_what_is_left_and_changes_nothing(flow: Twins, topic: str) -> None:
    target = Hand(flow.target_servers)
    flow.create(topic)
    fill(flow.source_servers, topic, range(60))

    looked = migrating(flow).look(Asked())

    assert looked.dry_run
    # A twin that is not there yet has nothing that could be counted.
    assert any(f"create topic {flow.twin(topic)}" in note for note in looked.notes) or looked.left_records == 60
    assert not {name for name in target.topics() if flow.flow.source in name}


def test_a_paused_flow_is_not_migrated_further(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    moving = migrating(flow)
    moving.begin(Asked())
    moving.settings()
    flow.change_record(lambda record: replace(record, state=State.PAUSED))

    with pytest.raises(FlowStateError, match="is paused"):
        moving.backfill(carry_out_here, tasks=1)
    flow.change_record(lambda record: replace(record, state=State.ACTIVE))
    moving.backfill(carry_out_here, tasks=1)
    flow.change_record(lambda record: replace(record, state=State.PAUSED))
    with pytest.raises(FlowStateError, match="is paused"):
        moving.live(carry_out_here, tasks=1)


def test_it_waits_for_a_run_of_a_scheduler_s(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    told, waited = list[str](), list[float]()

    def wait(seconds: float) -> None:
        waited.append(seconds)
        # The scheduler's has come to its end.
        flow.change_record(lambda record: replace(record, lease=None))

    moving = migrating(flow, tell=told.append, wait=wait)
    moving.begin(Asked())
    moving.settings()
    moving.backfill(carry_out_here, tasks=1)
    held = Lease("a scheduler's", "somewhere", now_ms() + 60_000)
    flow.change_record(lambda record: replace(record, lease=held))

    moving.live(carry_out_here, tasks=1)

    assert len(waited) == 1
    assert any("run a scheduler's of somewhere holds" in sentence for sentence in told)
    assert migration(flow).phase is Phase.PROOF
