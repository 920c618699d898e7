"""Committed batches of one partition of the target, oldest first; a small internal topic is read whole."""

from __future__ import annotations

from typing import Any

from kafka import errors as kafka_errors

from twinlog.cluster.fetch_request import Wanted, fetch_request
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.errors import ClusterError, ClusterUnreachableError, NotAuthorizedError
from twinlog.model.offsets import TopicPartition
from twinlog.wire.aborted import AbortedTransaction, AbortedTransactions
from twinlog.wire.batches import Batch, read_batches
from twinlog.wire.reader import records_of
from twinlog.wire.records import Record
from twinlog.wire.source import SourcePartition

FETCH_BYTES = 8 * 1024 * 1024
MAX_WAIT_MS = 200


async def read_committed_records(client: RawClient, partition: TopicPartition, last: int | None = None) -> list[Record]:
    """Every record that readers of committed records may see now, or those of the `last` so many offsets."""
    metadata = await client.metadata([partition.topic])
    refused = metadata.topics[partition.topic].error
    if refused is not None:
        raise _unreadable(client, partition, refused)
    starts = await list_offsets(client, metadata, [partition], OffsetAt.LOG_START)
    ends = await list_offsets(client, metadata, [partition], OffsetAt.LAST_STABLE)
    for listing in (starts, ends):
        if partition in listing.failed:
            raise _unreadable(client, partition, listing.failed[partition])
    leader = metadata.topics[partition.topic].partitions[partition.partition].leader
    records: list[Record] = []
    at, end = starts.offsets[partition], ends.offsets[partition]
    if last is not None:
        at = max(at, end - last)
    source = SourcePartition(client.alias, partition.topic, partition.partition)
    while at < end:
        found, after = await fetch_committed(client, leader, partition, at)
        records += [record for batch in found for record in records_of(batch, source) if record.offset >= at]
        at = after
    return records


async def fetch_committed(
    client: RawClient, leader: int | None, partition: TopicPartition, at: int
) -> tuple[list[Batch], int]:
    """One answer's batches that hold committed records, and the offset to go on at: `at` where nothing came."""
    request = fetch_request([Wanted(partition, at, FETCH_BYTES)], max_bytes=FETCH_BYTES, max_wait_ms=MAX_WAIT_MS)
    response = await client.request(request, leader)
    answers = [answer for topic in response.responses for answer in topic.partitions]
    if not answers:
        # A broker that holds us back by a quota answers for no partition at all.
        return [], at
    (answer,) = answers
    if answer.error_code:
        raise _unreadable(client, partition, kafka_errors.for_code(answer.error_code).__name__)
    return committed_batches(answer, SourcePartition(client.alias, partition.topic, partition.partition), at)


def committed_batches(answer: Any, source: SourcePartition, at: int) -> tuple[list[Batch], int]:
    """The batches with committed records in the answer for one partition, asked for from `at` on, and the offset to go
    on at."""
    aborted = AbortedTransactions(
        source, [AbortedTransaction(one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()]
    )
    batches: list[Batch] = []
    for batch in read_batches(memoryview(answer.records or b""), source, at):
        if isinstance(batch, Batch):
            if not aborted.follow(batch) and not batch.header.is_control:
                batches.append(batch)
            at = max(at, batch.header.next_offset)
    return batches, at


def _unreadable(client: RawClient, partition: TopicPartition, error: str) -> ClusterError:
    """The error for Kafka's of this name: one that time may mend, as where a leader has moved, is worth another try."""
    sentence = f"cluster {client.alias}: {partition} can't be read: {error}"
    kind = getattr(kafka_errors, error, Exception)
    if issubclass(kind, kafka_errors.AuthorizationError):
        return NotAuthorizedError(f"{sentence}; grant READ on topic {partition.topic}")
    return (
        ClusterUnreachableError(sentence) if issubclass(kind, kafka_errors.RetriableError) else ClusterError(sentence)
    )
