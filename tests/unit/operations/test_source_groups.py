"""What is said of groups that the source does not list."""

from __future__ import annotations

from twinlog.operations.source_groups import listed, no_longer_there, without_leader


def test_partitions_of_the_offsets_topic_without_a_leader_are_told_of() -> None:
    (note,) = without_leader("nyc", (1, 3))
    assert "cluster nyc: __consumer_offsets has 2 partitions without a leader (1, 3)" in note
    assert list(without_leader("nyc", ())) == []


def test_groups_that_are_gone_are_named() -> None:
    (note,) = no_longer_there("nyc", ["billing"])
    assert "1 group (billing) is no longer listed there" in note
    assert list(no_longer_there("nyc", [])) == []


def test_of_many_groups_the_first_are_named() -> None:
    assert listed([f"g{number}" for number in range(1_000)]) == "1,000 groups (g0, g1, g2, g3, g4, ...) are"
