"""What a cluster says about itself: brokers, topics with their ids, and who leads which partition.

Values only; `read_metadata` turns the answer of one Metadata request into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import kafka.errors as kafka_errors

from twinlog.model.offsets import TopicPartition

_NOT_THERE: str = kafka_errors.UnknownTopicOrPartitionError.__name__


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker, at the address it advertises to this listener's clients."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Partition(NamedTuple):
    """A partition of a topic; `leader` is None while it has none. A tuple, since there may be 50,000."""

    number: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions in order; `error` names what keeps the cluster from describing it."""

    name: str
    topic_id: UUID | None
    internal: bool
    partitions: tuple[Partition, ...]
    error: str | None = None

    @property
    def is_missing(self) -> bool:
        """The cluster says that there is no such topic: not that it may not be seen."""
        return self.error == _NOT_THERE


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """One answer, so brokers and leaders belong together."""

    cluster_id: str | None
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]

    def leader(self, partition: TopicPartition) -> int | None:
        """Who leads the partition; None where nobody does, or the broker that answered has not heard of it yet."""
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        return topic.partitions[partition.partition].leader


def read_metadata(response: Any) -> ClusterMetadata:
    """From a MetadataResponse, of any version that kafka-python decodes."""
    brokers = {
        broker.node_id: Broker(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers
    }
    topics = (_read_topic(topic) for topic in response.topics or ())
    return ClusterMetadata(response.cluster_id, brokers, {topic.name: topic for topic in topics})


def _read_topic(topic: Any) -> Topic:
    partitions = sorted(
        Partition(
            number=partition.partition_index,
            leader=partition.leader_id if partition.leader_id >= 0 else None,
            leader_epoch=_known(partition.leader_epoch),
            replicas=tuple(partition.replica_nodes),
            in_sync=tuple(partition.isr_nodes),
        )
        for partition in topic.partitions
    )
    error = kafka_errors.for_code(topic.error_code).__name__ if topic.error_code else None
    topic_id = topic.topic_id if topic.topic_id and topic.topic_id.int else None
    return Topic(topic.name, topic_id, bool(topic.is_internal), tuple(partitions), error)


def _known(epoch: int | None) -> int | None:
    return epoch if epoch is not None and epoch >= 0 else None
