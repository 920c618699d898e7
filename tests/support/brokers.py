"""Brokers of a cluster that several tests share, and that one of them stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient

from local.kafka import KafkaCluster


@contextmanager
def left_whole(cluster: KafkaCluster) -> Iterator[None]:
    """Whatever becomes of its brokers inside, all run afterwards."""
    try:
        yield
    finally:
        for number, node in enumerate(cluster.nodes):
            if not node.running:
                cluster.restart_broker(number)


def replicas_of(cluster: KafkaCluster, topic: str) -> tuple[int, int]:
    """The leader, and the other replica."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    partition = admin.list_topics(topic, timeout=10).topics[topic].partitions[0]
    (other,) = set(partition.replicas) - {partition.leader}
    return partition.leader, other
