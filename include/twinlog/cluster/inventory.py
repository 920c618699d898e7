"""What planning needs to know of many partitions at once; each question costs one request a broker, however many.

A question that a cluster does not let us ask is answered with what is known, never with an error: sizes only balance
the work, and what a batch may weigh is checked again by the broker that takes it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from twinlog.cluster.log_offsets import OffsetAt, OffsetListing, list_offsets
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import refusal_named
from twinlog.errors import ClusterError
from twinlog.model.offsets import TopicPartition

TOPIC_RESOURCE = 2
MAX_MESSAGE_BYTES = "max.message.bytes"
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
"""Kafka's own default, for a topic whose setting we may not read."""
NO_TRANSACTION = -1

SETTLING_ATTEMPTS = 20
SETTLING_PAUSE_S = 0.25
_UNSETTLED = frozenset(
    {
        "LeaderNotAvailableError",
        "NotLeaderForPartitionError",
        "OffsetNotAvailableError",
        "ReplicaNotAvailableError",
        "UnknownLeaderEpochError",
        "UnknownTopicOrPartitionError",
    }
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction on the source that nobody has ended: what lies behind its start can't be copied yet."""

    producer_id: int
    start_offset: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """What a leader answers when it is asked for an epoch: the last one up to it that it knows, and its end."""

    leader_epoch: int
    end_offset: int


async def settled_metadata(client: RawClient, topics: Sequence[str]) -> ClusterMetadata:
    """Metadata of topics that may have been created just now: asked for until all that may be seen have leaders, for
    some seconds."""
    metadata = await client.metadata(topics)
    for _ in range(SETTLING_ATTEMPTS):
        found = [metadata.topics.get(name) for name in topics]
        if all(topic is not None and _is_settled(topic) for topic in found):
            break
        await client.pause(SETTLING_PAUSE_S)
        metadata = await client.metadata(topics)
    return metadata


def _is_settled(topic: Topic) -> bool:
    if topic.error is not None:
        return refusal_named(topic.error).not_allowed
    return all(one.leader is not None for one in topic.partitions)


async def settled_offsets(
    client: RawClient, metadata: ClusterMetadata, partitions: Sequence[TopicPartition], at: OffsetAt
) -> OffsetListing:
    """As `list_offsets`, and again for those whose leader has changed or is just taking over, for some seconds."""
    listing = await list_offsets(client, metadata, partitions, at)
    offsets, failed = dict(listing.offsets), dict(listing.failed)
    for _ in range(SETTLING_ATTEMPTS):
        unsettled = [partition for partition, error in failed.items() if error in _UNSETTLED]
        if not unsettled:
            break
        await client.pause(SETTLING_PAUSE_S)
        metadata = await client.metadata({partition.topic for partition in unsettled})
        again = await list_offsets(client, metadata, unsettled, at)
        offsets |= again.offsets
        failed = {key: error for key, error in failed.items() if key not in again.offsets} | dict(again.failed)
    return OffsetListing(offsets, failed)


async def log_sizes(client: RawClient, metadata: ClusterMetadata) -> dict[TopicPartition, int]:
    """How many bytes each partition's log holds on its leader, of those that we may see."""
    answers = await _answers(client, {node_id: DescribeLogDirsRequest(topics=None) for node_id in metadata.brokers})
    leaders = {
        TopicPartition(topic.name, number): partition.leader
        for topic in metadata.topics.values()
        for number, partition in enumerate(topic.partitions)
    }
    sizes: dict[TopicPartition, int] = {}
    for node_id, answer in answers.items():
        for folder in answer.results:
            for topic in folder.topics:
                for log in topic.partitions:
                    partition = TopicPartition(topic.name, log.partition_index)
                    if leaders.get(partition) == node_id and not log.is_future_key:
                        sizes[partition] = log.partition_size
    return sizes


async def max_batch_bytes(client: RawClient, topics: Iterable[str]) -> dict[str, int]:
    """The largest batch that each topic takes."""
    wanted = list(topics)
    found = await topic_settings(client, wanted, MAX_MESSAGE_BYTES)
    return {topic: int(found.get(topic, DEFAULT_MAX_MESSAGE_BYTES)) for topic in wanted}


async def topic_settings(client: RawClient, topics: Iterable[str], name: str) -> dict[str, str]:
    """One setting of many topics, as it is in effect; topics that we may not look at are left out."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        resource(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=[name]) for topic in topics
    ]
    if not resources:
        return {}
    answer = await client.request(
        DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
    )
    return {
        result.resource_name: entry.value
        for result in answer.results
        if not result.error_code
        for entry in result.configs
        if entry.name == name and entry.value
    }


async def epoch_ends(
    client: RawClient, metadata: ClusterMetadata, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd]:
    """Where each partition's log ended in the leader epoch given, of those whose leaders still know."""
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    answers = await _answers(
        client,
        {
            leader: OffsetForLeaderEpochRequest(
                replica_id=-1,
                topics=[
                    topic(
                        topic=name,
                        partitions=[
                            topic.OffsetForLeaderPartition(
                                partition=index,
                                current_leader_epoch=-1,
                                leader_epoch=epochs[TopicPartition(name, index)],
                            )
                            for index in indexes
                        ],
                    )
                    for name, indexes in topics.items()
                ],
            )
            for leader, topics in _by_leader(metadata, epochs).items()
        },
    )
    return {
        TopicPartition(result.topic, partition.partition): EpochEnd(partition.leader_epoch, partition.end_offset)
        for answer in answers.values()
        for result in answer.topics
        for partition in result.partitions
        if not partition.error_code and partition.end_offset >= 0
    }


async def open_transactions(
    client: RawClient, metadata: ClusterMetadata, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, OpenTransaction]:
    """The oldest open transaction of each partition that has one."""
    topic = DescribeProducersRequest.TopicRequest
    answers = await _answers(
        client,
        {
            leader: DescribeProducersRequest(
                topics=[topic(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
            )
            for leader, topics in _by_leader(metadata, partitions).items()
        },
    )
    found: dict[TopicPartition, OpenTransaction] = {}
    for answer in answers.values():
        for result in answer.topics:
            for partition in result.partitions:
                pending = [one for one in partition.active_producers if one.current_txn_start_offset != NO_TRANSACTION]
                if pending:
                    oldest = min(pending, key=_txn_start)
                    found[TopicPartition(result.name, partition.partition_index)] = OpenTransaction(
                        oldest.producer_id, oldest.current_txn_start_offset, oldest.last_timestamp
                    )
    return found


async def transactional_ids(
    client: RawClient, metadata: ClusterMetadata, producer_ids: Sequence[int]
) -> dict[int, str]:
    """The transactional ids behind producer ids, of those that we may see; people know the one, not the other."""
    request = ListTransactionsRequest(
        state_filters=[], producer_id_filters=list(producer_ids), duration_filter=-1, transactional_id_pattern=None
    )
    answers = await _answers(client, dict.fromkeys(metadata.brokers, request))
    return {
        one.producer_id: one.transactional_id for answer in answers.values() for one in answer.transaction_states or ()
    }


async def _answers(client: RawClient, requests: Mapping[int, Any]) -> dict[int, Any]:
    """The brokers' answers, without those that are away or do not know the question."""

    async def ask(node_id: int, request: Any) -> Any:
        try:
            return await client.request(request, node_id)
        except ClusterError as failure:
            _LOG.info("broker %d of %s did not answer %s: %s", node_id, client.alias, request.name, failure)
            return None

    answers = await client.gather(ask(node_id, request) for node_id, request in requests.items())
    return {node_id: answer for node_id, answer in zip(requests, answers, strict=True) if answer is not None}


def _txn_start(producer: Any) -> int:
    start: int = producer.current_txn_start_offset
    return start


def _by_leader(metadata: ClusterMetadata, partitions: Iterable[TopicPartition]) -> dict[int, dict[str, list[int]]]:
    """Partition numbers by topic, by the broker that leads them; those without a leader are left out."""
    grouped: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for partition in partitions:
        topic = metadata.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            continue
        leader = topic.partitions[partition.partition].leader
        if leader is not None:
            grouped[leader][partition.topic].append(partition.partition)
    return grouped
