"""Reads spans of either cluster's logs for comparing, many partitions in one Fetch, within a bound of memory.

What is read is what a copier would send: committed records as readers see them, markers and aborted data counted. The
target is read in the same way as the source, so that the same batches come out of both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinlog.cluster.raw import RawClient
from twinlog.cluster.signal import Signal
from twinlog.cluster.source_partition import FetchSettings, Parcel, SourcePartitionState
from twinlog.cluster.source_reader import SourceReader
from twinlog.model.figures import Figures
from twinlog.model.findings import Finding
from twinlog.model.offsets import PartitionPair, Span, TopicPartition
from twinlog.model.positions import NO_LEADER_EPOCH
from twinlog.model.throttle import Throttle
from twinlog.wire.outgoing import Gaps, OutgoingBatch

ANY_BATCH = 2**31 - 1
"""No batch is too large to be looked at."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One partition's span, and who takes its batches."""

    pair: PartitionPair
    """Whose source is the log to read."""
    span: Span
    take: Callable[[OutgoingBatch], None]
    max_batch_bytes: int = ANY_BATCH


@dataclass
class ReadingResult:
    """What a round of reading brought beside the batches."""

    bytes: int = 0
    aborted: dict[TopicPartition, int] = field(default_factory=dict)
    """Offsets of rolled back transactions, by partition."""
    refused: Mapping[TopicPartition, Finding] = field(default_factory=dict)
    """The partitions that could not be read to their ends."""


class LogReader(SourceReader):
    """Goes on where nothing is left of a span: its end may have been removed by the log cleaner."""

    def _accept(self, response: Any) -> None:
        super()._accept(response)
        answers = list(self._answers(response))
        # Beside others' records, an empty answer may be for want of room.
        if any(answer.records for _, answer in answers):
            return
        for state, answer in answers:
            elsewhere = answer.preferred_read_replica is not None and answer.preferred_read_replica >= 0
            if answer.error_code or elsewhere or state.exhausted or answer.last_stable_offset < state.stop:
                continue
            state.parcels.append(Parcel(None, state.stop, NO_LEADER_EPOCH, Gaps(compacted=state.stop - state.at)))
            state.read_to(state.stop, NO_LEADER_EPOCH)


async def read_spans(
    client: RawClient, readings: Sequence[Reading], settings: FetchSettings, throttle: Throttle
) -> ReadingResult:
    """Hand every batch of the spans to whoever takes it; of each partition there may be one span."""
    result = ReadingResult()
    wanted = {one.pair.source: one for one in readings if one.span.start < one.span.end}
    if not wanted:
        return result
    arrived, figures = Signal(), Figures()
    states = [
        SourcePartitionState(one.pair, one.span.start, one.span.end, one.max_batch_bytes, NO_LEADER_EPOCH)
        for one in wanted.values()
    ]
    reader = LogReader(client, states, settings, arrived, figures)
    reading = client.spawn(reader.run())
    try:
        while not all(state.exhausted and not state.parcels for state in reader.partitions.values()):
            if reader.failure is not None:
                raise reader.failure
            owed_s = throttle.owed_s(time.monotonic())
            if owed_s > 0:
                await client.pause(owed_s)
            elif not _take(reader, wanted, result, throttle):
                await arrived.wait()
    finally:
        reader.close()
        await reading
    if reader.failure is not None:
        raise reader.failure
    result.bytes = figures.fetched_bytes
    result.refused = {finding.partition: finding for finding in reader.refused}
    return result


def _take(
    reader: LogReader, wanted: Mapping[TopicPartition, Reading], result: ReadingResult, throttle: Throttle
) -> bool:
    """Hand over what has come, a partition's parcels at a time; whether there was anything."""
    came = False
    for partition, one in wanted.items():
        while (parcel := reader.take(partition)) is not None:
            came = True
            if parcel.batch is None:
                _count(result, partition, parcel.trailing.aborted)
                continue
            _count(result, partition, sum(run.gaps.aborted for run in parcel.batch.runs))
            one.take(parcel.batch)
            reader.done_with(partition, parcel)
            if throttle.take(parcel.batch.size_bytes, time.monotonic()) > 0:
                return True
    return came


def _count(result: ReadingResult, partition: TopicPartition, aborted: int) -> None:
    if aborted:
        result.aborted[partition] = result.aborted.get(partition, 0) + aborted


def flipped(pair: PartitionPair) -> PartitionPair:
    """The pair whose source is the target's log."""
    return PartitionPair(
        pair.target_topic, pair.target_topic_id, pair.source_topic, pair.source_topic_id, pair.partition
    )
