"""Reads a partition's committed records from an offset on: the source's with what lies between them counted as copying
counts it, the target's batch by batch as they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kafka import errors as kafka_errors

from twinlog.cluster.committed_records import FETCH_BYTES, MAX_WAIT_MS, fetch_committed
from twinlog.cluster.fetch_request import Wanted, fetch_request
from twinlog.cluster.fetched import select_from
from twinlog.cluster.raw import RawClient
from twinlog.errors import ClusterError, ClusterUnreachableError
from twinlog.model.log_matching import SourceRecord
from twinlog.model.offsets import GapKind, TopicPartition
from twinlog.wire.batches import Batch, read_batches
from twinlog.wire.outgoing import Gaps, OutgoingBatch
from twinlog.wire.records import RawRecord, read_raw
from twinlog.wire.restamp import stamp_plain
from twinlog.wire.source import SourcePartition

LARGEST_BATCH = 2**31 - 1
EMPTY_ANSWERS = 50


class StoredBatch(NamedTuple):
    """A batch with its records opened."""

    batch: Batch
    records: list[RawRecord]


def source_records(client: RawClient, partition: TopicPartition, start: int, end: int) -> Iterator[SourceRecord]:
    """The records of `[start, end)` that readers of committed records see."""
    source = SourcePartition(client.alias, partition.topic, partition.partition)
    at = start
    gaps: dict[GapKind, int] = {}
    for answer in _answers(client, partition, start, end):
        selection = select_from(answer, source, at, end, LARGEST_BATCH)
        for batch in selection.batches:
            yield from _records(batch, source, gaps)
        _add(gaps, selection.trailing)
        at = selection.end


def target_batches(client: RawClient, partition: TopicPartition, start: int, end: int) -> Iterator[StoredBatch]:
    """The batches of `[start, end)` that hold committed records; one that straddles the start comes whole."""
    source = SourcePartition(client.alias, partition.topic, partition.partition)
    leader = client.run(client.metadata([partition.topic])).leader(partition)
    at, empty = start, 0
    while at < end:
        found, after = client.run(fetch_committed(client, leader, partition, at))
        for batch in found:
            if batch.header.base_offset < end:
                yield StoredBatch(batch, read_raw(batch, source))
        empty = empty + 1 if after == at else 0
        _check_progress(client, partition, at, empty)
        at = after


def _answers(client: RawClient, partition: TopicPartition, start: int, end: int) -> Iterator[Any]:
    """The partition's part of each Fetch answer; whoever takes one has used all of it when the next is asked for."""
    leader = client.run(client.metadata([partition.topic])).leader(partition)
    source = SourcePartition(client.alias, partition.topic, partition.partition)
    at, empty = start, 0
    while at < end:
        request = fetch_request([Wanted(partition, at, FETCH_BYTES)], max_bytes=FETCH_BYTES, max_wait_ms=MAX_WAIT_MS)
        response = client.run(client.request(request, leader))
        for answer in (one for topic in response.responses for one in topic.partitions):
            if answer.error_code:
                raise _unreadable(client, partition, answer.error_code)
            after = at
            for batch in read_batches(memoryview(answer.records or b""), source, at):
                after = max(after, batch.next_offset)
            if after > at:
                yield answer
            empty = empty + 1 if after == at else 0
            at = after
        _check_progress(client, partition, at, empty)


def _records(batch: OutgoingBatch, source: SourcePartition, gaps: dict[GapKind, int]) -> Iterator[SourceRecord]:
    """The records of a batch as copying would send it, under the offsets that they have on the source."""
    header, body = stamp_plain(batch)
    (stored,) = read_batches(memoryview(b"".join((header, body))), source, 0)
    if not isinstance(stored, Batch):
        raise ClusterError(f"{source}: a batch of an old format came out of the encoder")
    records = iter(read_raw(stored, source))
    for run in batch.runs:
        _add(gaps, run.gaps)
        for number in range(run.record_count):
            record = next(records)
            yield SourceRecord(run.source_start + number, (record.timestamp_ms, record.content), dict(gaps))
            gaps.clear()


def _add(gaps: dict[GapKind, int], more: Gaps) -> None:
    for kind, offsets in (
        (GapKind.ABORTED, more.aborted),
        (GapKind.CONTROL, more.control),
        (GapKind.COMPACTED, more.compacted),
        (GapKind.FILTERED, more.filtered),
    ):
        if offsets:
            gaps[kind] = gaps.get(kind, 0) + offsets


def _check_progress(client: RawClient, partition: TopicPartition, at: int, empty: int) -> None:
    if empty >= EMPTY_ANSWERS:
        raise ClusterUnreachableError(f"cluster {client.alias}: {partition} gives nothing from offset {at} on")


def _unreadable(client: RawClient, partition: TopicPartition, code: int) -> ClusterError:
    error = kafka_errors.for_code(code)
    kind = ClusterUnreachableError if issubclass(error, kafka_errors.RetriableError) else ClusterError
    return kind(f"cluster {client.alias}: {partition} can't be read: {error.__name__}")
