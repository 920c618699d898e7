from __future__ import annotations

from collections import Counter

from twinlog.model.lanes import (
    journal_topic,
    lane_of,
    position_group,
    state_topic,
    state_transactional_id,
    transactional_id,
)
from twinlog.model.offsets import TopicPartition


def test_a_topic_is_spread_evenly() -> None:
    lanes = Counter(lane_of(TopicPartition("orders", number), 8) for number in range(96))
    assert lanes == dict.fromkeys(range(8), 12)


def test_topics_of_one_partition_do_not_meet_in_one_lane() -> None:
    lanes = Counter(lane_of(TopicPartition(f"topic-{number}", 0), 8) for number in range(400))
    assert min(lanes.values()) > 20


def test_where_a_partition_goes_never_changes() -> None:
    # Kept on the target for ever: another answer would have two lanes write to one partition.
    assert [lane_of(TopicPartition("nyc.orders", number), 8) for number in range(6)] == [7, 7, 0, 0, 1, 1]


def test_names_on_the_target() -> None:
    assert transactional_id("nyc->lon", 3) == "twinlog.nyc->lon.3"
    assert state_transactional_id("nyc->lon") == "twinlog.nyc->lon.state"
    assert position_group("nyc->lon") == "twinlog.nyc->lon"
    assert journal_topic("nyc", "lon") == "twinlog.nyc.lon.journal.internal"
    assert state_topic("nyc", "lon") == "twinlog.nyc.lon.state.internal"
