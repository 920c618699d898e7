from __future__ import annotations

from twinlog.cluster.metadata import Broker, ClusterMetadata, Partition, Topic
from twinlog.operations.returned_cluster import not_whole


def cluster(brokers: tuple[int, ...], **topics: Partition) -> ClusterMetadata:
    return ClusterMetadata(
        "id",
        {number: Broker(number, "host", 1, None) for number in brokers},
        {name: Topic(name, None, internal=False, partitions=(one,)) for name, one in topics.items()},
    )


def test_a_whole_cluster_lacks_nothing() -> None:
    assert list(not_whole("nyc", cluster((1, 2), orders=Partition(0, 1, 0, (1, 2), (1, 2))))) == []


def test_brokers_leaders_and_replicas_that_are_missing_are_each_a_sentence() -> None:
    found = cluster((1,), orders=Partition(0, 1, 0, (1, 2), (1,)), gone=Partition(0, None, 0, (2,), (2,)))
    assert list(not_whole("nyc", found)) == [
        "cluster nyc: brokers 2 have not come back; 1 are there",
        "cluster nyc: 1 topics have partitions without a leader: gone",
        "cluster nyc: 1 topics have replicas that are not in sync yet: orders",
    ]
