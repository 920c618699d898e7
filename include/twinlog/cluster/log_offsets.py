"""Where logs start and end, for any number of partitions in one request a broker.

What could not be answered for one partition is named beside the answers, so that one deleted topic does not hide
fifty thousand others.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.consumer import IsolationLevel, ListOffsetsRequest, OffsetSpec

from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.model.offsets import TopicPartition

PAUSE_S = 0.05
PATIENCE_S = 5.0

_MOVED = frozenset(
    {
        kafka_errors.NotLeaderForPartitionError.__name__,
        kafka_errors.FencedLeaderEpochError.__name__,
        kafka_errors.UnknownLeaderEpochError.__name__,
    }
)


class OffsetAt(Enum):
    """Which end of a log is asked for."""

    LOG_START = (OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)
    LOG_END = (OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED)
    """The high watermark: the end of what is replicated."""
    LAST_STABLE = (OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED)
    """The end of what readers of committed records may see."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record that is stamped with this time or a later one; where there is none, the offset is -1."""

    timestamp_ms: int

    @property
    def value(self) -> tuple[int, IsolationLevel]:
        return self.timestamp_ms, IsolationLevel.READ_COMMITTED


@dataclass(frozen=True, slots=True)
class OffsetListing:
    """Offsets by partition, and for the others the name of Kafka's error."""

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    failed: Mapping[TopicPartition, str] = field(default_factory=dict)


async def list_offsets(
    client: RawClient, metadata: ClusterMetadata, partitions: Iterable[TopicPartition], at: OffsetAt | AtTime
) -> OffsetListing:
    """One request to each broker that leads some of the partitions, all brokers at once.

    A broker that does not lead a partition yet, as in the first moments of a topic, or no longer, is a matter of time:
    those partitions are asked for again, where their leaders are then.
    """
    listing = await _ask(client, metadata, partitions, at)
    patience_ends = time.monotonic() + PATIENCE_S
    while (moved := [one for one, error in listing.failed.items() if error in _MOVED]) and (
        time.monotonic() < patience_ends
    ):
        await client.pause(PAUSE_S)
        metadata = await client.metadata({partition.topic for partition in moved})
        again = await _ask(client, metadata, moved, at)
        failed = {one: error for one, error in listing.failed.items() if one not in again.offsets}
        listing = OffsetListing({**listing.offsets, **again.offsets}, {**failed, **again.failed})
    return listing


async def _ask(
    client: RawClient, metadata: ClusterMetadata, partitions: Iterable[TopicPartition], at: OffsetAt | AtTime
) -> OffsetListing:
    offsets: dict[TopicPartition, int] = {}
    failed: dict[TopicPartition, str] = {}
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for partition in partitions:
        leader = _leader(metadata, partition)
        if leader is None:
            failed[partition] = kafka_errors.LeaderNotAvailableError.__name__
        else:
            by_leader[leader][partition.topic].append(partition.partition)
    answers = await client.gather(
        client.request(_list_offsets_request(topics, at), leader) for leader, topics in by_leader.items()
    )
    for answer in answers:
        for topic in answer.topics:
            for listed in topic.partitions:
                partition = TopicPartition(topic.name, listed.partition_index)
                if listed.error_code:
                    failed[partition] = kafka_errors.for_code(listed.error_code).__name__
                else:
                    offsets[partition] = listed.offset
    return OffsetListing(offsets, failed)


def _leader(metadata: ClusterMetadata, partition: TopicPartition) -> int | None:
    topic = metadata.topics.get(partition.topic)
    if topic is None or partition.partition >= len(topic.partitions):
        return None
    return topic.partitions[partition.partition].leader


def _list_offsets_request(topics: Mapping[str, list[int]], at: OffsetAt | AtTime) -> Any:
    spec, isolation = at.value
    request_topic = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            request_topic(
                name=name,
                partitions=[
                    request_topic.ListOffsetsPartition(
                        partition_index=index, current_leader_epoch=-1, timestamp=int(spec)
                    )
                    for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ],
    )
