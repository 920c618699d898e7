from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from twinlog.cluster.lane_start import replaced, starting_target
from twinlog.cluster.metadata import ClusterMetadata, Partition, Topic
from twinlog.model.findings import FindingKind
from twinlog.model.offsets import GapKind, PartitionPair, Range, Span
from twinlog.model.plan import PlannedRange
from twinlog.model.positions import Position

PAIR = PartitionPair("orders", UUID(int=1), "nyc.orders", UUID(int=2), 0)
POSITION = Position(10, PAIR.source_topic_id, PAIR.target_topic_id, leader_epoch=3, target_end=50, seen_end=20)


def planned(start: int = 10, end: int = 20, expired: int = 0) -> PlannedRange:
    return PlannedRange(PAIR, Range(PAIR.source, start, end), expired, lane=0, bytes=1, seen_end=end)


def target_cluster(topic_id: int = 2, partitions: int = 1, error: str | None = None) -> ClusterMetadata:
    members = tuple(Partition(number, 7, 0, (7,), (7,)) for number in range(partitions))
    topic = Topic("nyc.orders", UUID(int=topic_id), internal=False, partitions=members, error=error)
    return ClusterMetadata("id", {}, {topic.name: topic})


def test_a_partition_goes_on_at_its_position() -> None:
    state = starting_target(planned(), POSITION, target_cluster(), log_end=51)
    assert (state.position, state.leader_epoch, state.target_end, state.expected, state.leader) == (10, 3, 50, 51, 7)
    assert (state.carried, state.touched, state.suspicion) == ({}, False, None)


def test_an_earlier_try_got_further_than_the_plan_knew() -> None:
    state = starting_target(planned(start=10, expired=4), replace(POSITION, offset=15), target_cluster(), log_end=51)
    assert (state.position, state.carried) == (15, {})


def test_what_expired_is_counted_from_the_position_and_not_from_the_plan() -> None:
    state = starting_target(planned(start=12, expired=9), POSITION, target_cluster(), log_end=51)
    assert (state.position, state.carried, state.touched) == (12, {GapKind.EXPIRED: 2}, True)


def test_what_expired_and_had_come_from_the_target_is_counted_as_not_sent_back() -> None:
    to_pass = replace(planned(start=16, expired=9), returned=(Span(2, 8), Span(9, 12), Span(13, 14), Span(15, 18)))
    counted = {GapKind.EXPIRED: 2, GapKind.FILTERED: 4}
    assert starting_target(to_pass, POSITION, target_cluster(), log_end=51).carried == counted
    # The target has forgotten the position since.
    assert starting_target(to_pass, None, target_cluster(), log_end=51).carried == {
        GapKind.EXPIRED: 3,
        GapKind.FILTERED: 6,
    }


def test_a_partition_without_a_position_gets_one() -> None:
    state = starting_target(planned(start=3), None, target_cluster(), log_end=8)
    assert (state.position, state.target_end, state.expected, state.touched) == (3, 0, 8, True)
    assert state.suspicion is None


def test_a_source_topic_made_anew_goes_on_behind_its_predecessor() -> None:
    earlier = replace(POSITION, source_topic_id=UUID(int=9))
    state = starting_target(planned(start=0), earlier, target_cluster(), log_end=51)
    assert (state.position, state.leader_epoch, state.target_end, state.touched) == (0, -1, 50, True)


@pytest.mark.parametrize("earlier_target", [PAIR.target_topic_id, UUID(int=8)])
def test_the_account_of_a_source_topic_that_is_gone_is_closed(earlier_target: UUID) -> None:
    earlier = replace(POSITION, source_topic_id=UUID(int=9), target_topic_id=earlier_target)
    state = starting_target(planned(start=0), earlier, target_cluster(), log_end=51)
    assert state.closing is not None
    assert state.closing.pair == replace(PAIR, source_topic_id=UUID(int=9), target_topic_id=earlier_target)
    assert (state.closing.source_start, state.closing.target_start, state.closing.count) == (20, 50, 0)
    assert state.closing.gaps == {GapKind.RECREATED: 10}


def test_there_is_nothing_to_close_where_all_was_copied_or_the_source_is_the_same() -> None:
    for position in (
        None,
        POSITION,
        replace(POSITION, source_topic_id=UUID(int=9), seen_end=10),
        replace(POSITION, target_topic_id=UUID(int=9)),
    ):
        assert starting_target(planned(start=0), position, target_cluster(), log_end=51).closing is None


def test_how_far_the_source_was_seen_is_committed_before_anything_is_copied() -> None:
    further = starting_target(planned(end=30), POSITION, target_cluster(), log_end=51)
    assert (further.touched, further.new_position().seen_end) == (True, 30)
    # A task that is tried again has nothing new to say.
    known = starting_target(planned(end=15), POSITION, target_cluster(), log_end=51)
    assert (known.touched, known.new_position().seen_end) == (False, 20)


def test_more_than_our_own_marker_behind_the_end_is_to_be_looked_at() -> None:
    state = starting_target(planned(), POSITION, target_cluster(), log_end=54)
    assert state.suspicion is not None
    assert (state.suspicion.start, state.suspicion.end) == (50, 54)


def test_a_target_that_is_not_the_planned_one_is_refused() -> None:
    assert replaced(planned(), target_cluster(), "lon") is None
    for metadata, kind in (
        (target_cluster(topic_id=5), FindingKind.TARGET_REPLACED),
        (target_cluster(partitions=0), FindingKind.TARGET_MISSING),
        (target_cluster(error="UnknownTopicOrPartitionError"), FindingKind.TARGET_MISSING),
        (ClusterMetadata("id", {}, {}), FindingKind.TARGET_MISSING),
    ):
        refused = replaced(planned(), metadata, "lon")
        assert refused is not None
        assert refused.kind == kind
