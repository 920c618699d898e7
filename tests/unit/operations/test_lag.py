"""Sums of what is waiting, and of what could not be looked at."""

from __future__ import annotations

from twinlog.cluster.metadata import Partition, Topic
from twinlog.operations.lag import UNKNOWN, Lag, PartitionLag, TopicLag, topic_lag

ORDERS = Topic("orders", None, internal=False, partitions=(Partition(0, 1, 0, (1,), (1,)),))


def test_what_waits_is_summed_and_the_oldest_counts() -> None:
    assert topic_lag(ORDERS, []) == TopicLag("orders", 0, 0.0)
    assert topic_lag(ORDERS, [PartitionLag(2, 1.5), PartitionLag(3, 0.5)]) == TopicLag("orders", 5, 1.5)
    assert topic_lag(ORDERS, [PartitionLag(2, None)]) == TopicLag("orders", 2, None)


def test_a_partition_that_cannot_be_looked_at_makes_the_sums_unknown() -> None:
    orders = topic_lag(ORDERS, [PartitionLag(2, 1.5), UNKNOWN])
    lag = Lag((orders, TopicLag("audit", 1, 0.5)))

    assert orders == TopicLag("orders", None, None)
    assert (lag.records, lag.seconds, lag.unknown) == (None, None, ["orders"])


def test_a_topic_of_which_no_partition_is_known_is_unknown() -> None:
    hidden = Topic("hidden", None, internal=False, partitions=(), error="LeaderNotAvailableError")
    assert topic_lag(hidden, []) == TopicLag("hidden", None, None)


def test_a_flow_without_topics_is_not_behind() -> None:
    assert (Lag(()).records, Lag(()).seconds) == (0, 0.0)
