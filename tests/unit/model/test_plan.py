from __future__ import annotations

from dataclasses import replace
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.model.budget import Budget
from twinlog.model.lanes import lane_of
from twinlog.model.offsets import PartitionPair, Span, TopicPartition
from twinlog.model.plan import (
    Decision,
    FindingKind,
    Partitions,
    Plan,
    PlannedRange,
    Rules,
    StartAt,
    plan,
)
from twinlog.model.positions import Position

SOURCE, TARGET, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)


def pair(number: int) -> PartitionPair:
    return PartitionPair("orders", SOURCE, "nyc.orders", TARGET, number)


def position(
    offset: int, target_end: int = 0, source: UUID = SOURCE, target: UUID = TARGET, ready: int = 0
) -> Position:
    return Position(offset, source, target, -1, target_end, offset + ready)


def estate(
    ends: list[int],
    positions: list[Position | None] | None = None,
    starts: list[int] | None = None,
    sizes: list[float] | None = None,
    target_ends: list[int] | None = None,
) -> Partitions:
    count = len(ends)
    return Partitions(
        [pair(number) for number in range(count)],
        positions or [None] * count,
        starts or [0] * count,
        ends,
        target_ends or [0] * count,
        sizes or [100.0] * count,
    )


def lane(of: PartitionPair) -> int:
    return lane_of(of.target, 4)


def ranges(planned: Plan) -> dict[int, tuple[int, int]]:
    return {item.pair.partition: (item.range.start, item.range.end) for task in planned.tasks for item in task.ranges}


def only(planned: Plan) -> PlannedRange:
    [item] = [item for task in planned.tasks for item in task.ranges]
    return item


def test_ranges_go_from_the_position_to_the_last_stable_offset() -> None:
    planned = plan(estate([10, 10, 7], [position(4), None, position(7)]), lane, 2)
    assert ranges(planned) == {0: (4, 10), 1: (0, 10)}
    assert (planned.findings, planned.left_records) == ((), 0)


def test_a_partition_that_was_added_to_a_mirrored_topic_is_copied_from_its_beginning() -> None:
    latest = Rules(start_at=StartAt.LATEST)

    added = plan(estate([5, 5, 7], [position(5), position(5), None]), lane, 2, rules=latest)
    unfinished = plan(estate([5, 5, 7], [None, position(5), None]), lane, 2, rules=latest)

    assert ranges(added) == {2: (0, 7)}
    # Not every earlier one has begun: it is the first run that has not come to its end.
    assert ranges(unfinished) == {0: (5, 5), 2: (7, 7)}


@pytest.mark.parametrize(("start_at", "expected"), [(StartAt.EARLIEST, {0: (3, 10)}), (StartAt.LATEST, {0: (10, 10)})])
def test_a_new_partition_begins_where_the_flow_says(start_at: StartAt, expected: object) -> None:
    assert ranges(plan(estate([10], starts=[3]), lane, 1, rules=Rules(start_at=start_at))) == expected


def test_expired_offsets_are_named_and_the_run_goes_on_after_them() -> None:
    planned = plan(estate([20], [position(5)], starts=[12]), lane, 1)
    assert (ranges(planned), only(planned).expired) == ({0: (12, 20)}, 7)
    [finding] = planned.findings
    assert (finding.kind, finding.start, finding.end) == (FindingKind.EXPIRED, 5, 12)
    assert finding.message.startswith("orders-0: offsets 5 to 11 were removed by retention")


def test_expired_offsets_with_nothing_after_them_still_move_the_position() -> None:
    planned = plan(estate([12], [position(5)], starts=[12]), lane, 1)
    assert (ranges(planned), only(planned).expired) == ({0: (12, 12)}, 7)


def test_what_expired_and_had_come_from_the_target_is_not_lost() -> None:
    def planned(*came: Span, decision: Decision = Decision.CONTINUE) -> Plan:
        found = replace(estate([20], [position(5)], starts=[12]), returned=[came])
        return plan(found, lane, 1, rules=Rules(on_expired=decision))

    some = planned(Span(0, 2), Span(3, 8), Span(10, 11), Span(11, 13), Span(19, 20), Span(20, 30))
    [finding] = some.findings
    assert (finding.returned, only(some).expired) == (5, 7)
    assert "5 of them had come from the target, the other 2, markers" in finding.message
    assert only(some).returned == (Span(3, 8), Span(10, 11), Span(11, 13), Span(19, 20), Span(20, 30))
    for decision in Decision:
        every = planned(Span(4, 12), decision=decision)
        assert (every.findings, ranges(every), only(every).expired) == ((), {0: (12, 20)}, 7)


def test_expired_offsets_stop_the_partition_where_the_flow_says_so() -> None:
    rules = Rules(on_expired=Decision.STOP)
    planned = plan(estate([20, 9], [position(5), position(0)], starts=[12, 0]), lane, 1, rules=rules)
    assert ranges(planned) == {1: (0, 9)}
    assert planned.findings[0].message.endswith("the partition is left out until then")


@pytest.mark.parametrize("end", [3, 8, 30])
@pytest.mark.parametrize(
    ("made_with", "kind"),
    [
        ({"source": OTHER}, FindingKind.SOURCE_RECREATED),
        ({"target": OTHER}, FindingKind.TARGET_RECREATED),
        ({"source": OTHER, "target": OTHER}, FindingKind.SOURCE_RECREATED),
    ],
)
def test_a_topic_made_anew_starts_anew_shorter_equal_or_longer(
    end: int, made_with: dict[str, UUID], kind: FindingKind
) -> None:
    planned = plan(estate([end], [position(8, 9, **made_with)], starts=[1]), lane, 1)
    assert ranges(planned) == {0: (1, end)}
    assert [finding.kind for finding in planned.findings] == [kind]
    stopped = plan(estate([end], [position(8, **made_with)]), lane, 1, rules=Rules(on_recreated=Decision.STOP))
    assert (ranges(stopped), len(stopped.findings)) == ({}, 1)


def test_a_range_knows_what_was_ready_beyond_its_budget() -> None:
    planned = plan(estate([100], [position(4)]), lane, 1, Budget(records=10))
    assert (only(planned).range.end, only(planned).seen_end) == (14, 100)


def test_what_an_earlier_topic_had_ready_is_lost_and_said_so() -> None:
    made_anew = plan(estate([30], [position(8, source=OTHER, ready=12)]), lane, 1)
    [finding] = made_anew.findings
    assert finding.lost == 12
    assert "of that one at least 12 offsets, from 8 on, were never copied and are lost" in finding.message
    # With the source still there, nothing is lost by filling another target.
    for gone in (position(8, target=OTHER, ready=12), position(8, source=OTHER)):
        [finding] = plan(estate([30], [gone]), lane, 1).findings
        assert (finding.lost, "lost" in finding.message) == (0, False)


def test_truncation_of_either_side_stops_only_that_partition() -> None:
    positions: list[Position | None] = [position(8), position(2, target_end=5), position(2, target_end=5)]
    planned = plan(estate([6, 6, 6], positions, target_ends=[0, 4, 5]), lane, 1)
    assert ranges(planned) == {2: (2, 6)}
    assert [(finding.kind, finding.start, finding.end) for finding in planned.findings] == [
        (FindingKind.SOURCE_TRUNCATED, 6, 8),
        (FindingKind.TARGET_TRUNCATED, 4, 5),
    ]


def test_a_huge_partition_does_not_starve_the_others() -> None:
    planned = plan(estate([1_000_000, 10, 50]), lane, 1, Budget(bytes=20_000))
    assert ranges(planned) == {0: (0, 140), 1: (0, 10), 2: (0, 50)}
    assert planned.left_records == 1_000_000 - 140


def test_seconds_bound_by_the_rate_and_records_by_their_number() -> None:
    assert ranges(plan(estate([100, 100]), lane, 1, Budget(seconds=2, bytes_per_second=2_000))) == {
        0: (0, 20),
        1: (0, 20),
    }
    assert ranges(plan(estate([100, 5]), lane, 1, Budget(records=25))) == {0: (0, 20), 1: (0, 5)}


def test_a_budget_below_one_record_still_moves() -> None:
    assert ranges(plan(estate([5, 5]), lane, 1, Budget(bytes=1))) == {0: (0, 1), 1: (0, 1)}


def test_columns_must_be_parallel() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        Partitions([pair(0)], [], [0], [1], [0], [1.0])


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_shares_are_even_whole_and_within_the_budget(seed: int) -> None:
    random = Random(seed)
    count = random.randrange(1, 40)
    ends = [random.choice((random.randrange(10), random.randrange(10_000))) for _ in range(count)]
    sizes = [random.choice((1.0, 100.0, 1500.5)) for _ in range(count)]
    budget = Budget(bytes=random.randrange(1, 2_000_000), records=random.choice((None, random.randrange(1, 20_000))))
    planned = plan(estate(ends, sizes=sizes), lane, random.randrange(1, 8), budget)
    granted = {number: end - start for number, (start, end) in ranges(planned).items()}
    assert all(granted.get(number, 0) <= end for number, end in enumerate(ends))
    assert all(granted[number] > 0 for number, end in enumerate(ends) if end)
    assert planned.left_records == sum(ends) - sum(granted.values())
    assert sum(number * sizes[row] for row, number in granted.items()) <= budget.most_bytes + sum(sizes)
    assert sum(granted.values()) <= budget.most_records + count
    lanes = [number for task in planned.tasks for number in task.lanes]
    assert len(lanes) == len(set(lanes))
    assert all(item.lane in task.lanes for task in planned.tasks for item in task.ranges)
    # Greedy by weight: no task is heavier than the lightest by more than one lane.
    weights = [task.bytes for task in planned.tasks]
    heaviest_lane = max(
        (sum(i.bytes for t in planned.tasks for i in t.ranges if i.lane == number) for number in lanes), default=0
    )
    assert max(weights, default=0) - min(weights, default=0) <= heaviest_lane


def test_partitions_without_a_position_begin_where_they_are_asked_to_and_what_lies_before_is_counted() -> None:
    found = estate([100, 100, 100, 100], [None, position(40), None, None], [10, 10, 50, 10])
    begin_at = {TopicPartition("orders", number): 30 for number in range(3)}

    planned = plan(found, lane, 2, rules=Rules(begin_at=begin_at))

    assert ranges(planned) == {0: (30, 100), 1: (40, 100), 2: (50, 100), 3: (10, 100)}
    skipped = {item.pair.partition: item.skipped for task in planned.tasks for item in task.ranges}
    assert skipped == {0: 20, 1: 0, 2: 0, 3: 0}


@given(st.integers(0, 200), st.integers(0, 100), st.integers(0, 100))
def test_a_beginning_is_never_outside_the_log(asked: int, start: int, length: int) -> None:
    begin_at = {TopicPartition("orders", 0): asked}
    planned = only(plan(estate([start + length], starts=[start]), lane, 1, rules=Rules(begin_at=begin_at)))

    assert planned.range.start == min(max(asked, start), start + length)
    assert planned.skipped == planned.range.start - start
