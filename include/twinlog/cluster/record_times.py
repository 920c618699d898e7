"""When the record at an offset was written, for many partitions at once, told from batch headers alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kafka.protocol.consumer import IsolationLevel

from twinlog.cluster.fetch_request import Wanted, fetch_request
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.model.offsets import TopicPartition
from twinlog.wire.header import HEADER, HEADER_BYTES, MAGIC, MAGIC_AT, BatchHeader

PARTITION_BYTES = 64 * 1024
ANSWER_BYTES = 32 * 1024 * 1024
MAX_WAIT_MS = 100
ROUNDS = 10
"""A broker sends at least one whole batch a request; batches larger than PARTITION_BYTES come one a round."""


async def times_at(
    client: RawClient, metadata: ClusterMetadata, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The timestamp (ms) of the batch that holds each offset; partitions that could not be read are left out."""
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for partition in offsets:
        topic = metadata.topics.get(partition.topic)
        if topic is not None and partition.partition < len(topic.partitions):
            leader = topic.partitions[partition.partition].leader
            if leader is not None:
                by_leader[leader].append(partition)
    found: dict[TopicPartition, int] = {}
    for answers in await client.gather(
        _ask(client, leader, {partition: offsets[partition] for partition in partitions})
        for leader, partitions in by_leader.items()
    ):
        found.update(answers)
    return found


async def _ask(client: RawClient, leader: int, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for _ in range(ROUNDS):
        missing = sorted(partition for partition in offsets if partition not in found)
        if not missing:
            break
        request = fetch_request(
            [Wanted(partition, offsets[partition], PARTITION_BYTES) for partition in missing],
            max_bytes=ANSWER_BYTES,
            max_wait_ms=MAX_WAIT_MS,
            # What a transaction holds back has been written all the same.
            isolation=IsolationLevel.READ_UNCOMMITTED,
        )
        response = await client.request(request, leader)
        before = len(found)
        for topic in response.responses:
            for answer in topic.partitions:
                records = answer.records or b""
                if len(records) >= HEADER_BYTES and records[MAGIC_AT] == MAGIC:
                    header = BatchHeader._make(HEADER.unpack_from(records))
                    found[TopicPartition(topic.topic, answer.partition_index)] = header.first_timestamp_ms
        if len(found) == before:
            break
    return found
