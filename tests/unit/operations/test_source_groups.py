"""What is said of groups that the source does not list."""

from __future__ import annotations

from twinlog.cluster.groups import OFFSETS_TOPIC, leaderless
from twinlog.cluster.metadata import ClusterMetadata, Partition, Topic
from twinlog.operations.source_groups import listed, no_longer_there, without_leader


def view(*leaders: int | None) -> ClusterMetadata:
    partitions = tuple(Partition(number, leader, 0, (1,), (1,)) for number, leader in enumerate(leaders))
    return ClusterMetadata("id", {}, {OFFSETS_TOPIC: Topic(OFFSETS_TOPIC, None, internal=True, partitions=partitions)})


def test_partitions_of_the_offsets_topic_without_a_leader_are_told_of() -> None:
    (note,) = without_leader("nyc", leaderless(view(1, None, 2, None), OFFSETS_TOPIC))
    assert "cluster nyc: __consumer_offsets has 2 partitions without a leader (1, 3)" in note


def test_where_all_are_led_or_nothing_is_known_there_is_nothing_to_tell() -> None:
    assert list(without_leader("nyc", leaderless(view(1, 2), OFFSETS_TOPIC))) == []
    assert leaderless(ClusterMetadata("id", {}, {}), OFFSETS_TOPIC) == []


def test_groups_that_are_gone_are_named() -> None:
    (note,) = no_longer_there("nyc", ["billing"])
    assert "1 group (billing) is no longer listed there" in note
    assert list(no_longer_there("nyc", [])) == []


def test_of_many_groups_the_first_are_named() -> None:
    assert listed([f"g{number}" for number in range(1_000)]) == "1,000 groups (g0, g1, g2, g3, g4, ...) are"
