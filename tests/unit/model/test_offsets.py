from __future__ import annotations

from uuid import UUID

import pytest

from twinlog.model.offsets import PartitionPair, Range, Segment, TopicPartition

PAIR = PartitionPair("orders", UUID(int=1), "nyc.orders", UUID(int=2), 3)


def test_a_pair_names_both_partitions() -> None:
    assert (str(PAIR.source), str(PAIR.target)) == ("orders-3", "nyc.orders-3")


def test_partitions_sort_by_topic_then_number() -> None:
    unsorted = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]
    assert [str(partition) for partition in sorted(unsorted)] == ["a-9", "a-10", "b-0"]


def test_a_segment_ends_as_many_offsets_later_on_both_sides() -> None:
    segment = Segment(PAIR, 10, 40, 3, 1, 2, 30, 5)
    assert (segment.source_end, segment.target_end) == (13, 43)


def test_a_range_counts_its_offsets_and_may_be_empty() -> None:
    assert Range(PAIR.source, 4, 9).offsets == 5
    assert Range(PAIR.source, 4, 4).offsets == 0


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (5, 4)])
def test_a_range_cannot_run_backwards_or_below_zero(start: int, end: int) -> None:
    with pytest.raises(ValueError, match=r"orders-3: \["):
        Range(PAIR.source, start, end)
