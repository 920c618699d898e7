"""One partition's two logs, compared record by record: what is one to one up to the target's end, as the segments and
the position that the flow would have if it had copied it itself, and a sentence for all that is not.

Segments carry the digests that reconciliation looks for: of a batch as it is stored on the target where the batch lies
wholly inside a segment, of its records where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from twinlog.cluster.adopted_writer import Adopted
from twinlog.cluster.log_offsets import AtTime, OffsetAt, list_offsets
from twinlog.cluster.log_reading import StoredBatch, source_records, target_batches
from twinlog.cluster.raw import RawClient
from twinlog.model.log_matching import Matching, SourceLog
from twinlog.model.offsets import Gaps, PartitionPair, Segment, TopicPartition
from twinlog.model.plan import Partitions
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.model.segment_builder import Copied, SegmentBuilder
from twinlog.wire.digest import chain, digest_batch, digest_records
from twinlog.wire.mirror_maker import OffsetSync
from twinlog.wire.records import RawRecord

TOLD_AT_MOST = 5
NO_GAPS: Gaps = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one partition."""

    source: TopicPartition
    records: int = 0
    """Verified, one to one."""
    next_offset: int | None = None
    """Where the flow goes on, on the source; None where nothing was adopted."""
    refused: str | None = None
    """Why nothing was adopted."""
    notes: tuple[str, ...] = ()
    """What of the target's log was not adopted, or differs."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What MirrorMaker 2 has left: the pairs of offsets that it noted, and how far it had read."""

    syncs: dict[TopicPartition, list[OffsetSync]] = field(default_factory=dict)
    read_to: dict[TopicPartition, int] = field(default_factory=dict)


class _Row(NamedTuple):
    """A record of the target, and what it is on the source; None where it is not there, or does not count."""

    record: RawRecord
    source: int | None = None
    gaps: Gaps = NO_GAPS


class Comparing:
    """One partition: both logs read in step, and what is one to one collected."""

    def __init__(
        self, source: RawClient, target: RawClient, found: Partitions, row: int, *, notes: Notes, compacts: bool
    ) -> None:
        self._pair = found.pairs[row]
        self._source = source
        self._target = target
        self._start = found.log_starts[row]
        self._end = found.last_stable[row]
        self._target_end = found.target_ends[row]
        self._syncs = notes.syncs.get(self._pair.source, [])
        self._read_to = notes.read_to.get(self._pair.source)
        self._compacts = compacts
        self._found = _Segments(self._pair)
        self._matching: Matching | None = None

    def run(self) -> tuple[Outcome, Adopted | None]:
        """What can be adopted, and what is to be said."""
        for batch in target_batches(self._target, self._pair.target, self._target_start(), self._target_end):
            if self._matching is None:
                self._matching = Matching(self._log(batch.records[0]), self._compacts)
            self._take(batch)
        matching = self._matching
        if matching is None:
            # Nothing that could be there twice.
            return Outcome(self._pair.source, notes=("its twin holds no record any more, so it is copied",)), None
        refused = self._refused(matching)
        notes = tuple(_notes(matching, self._found.records))
        if refused is not None:
            return Outcome(self._pair.source, refused="; ".join((refused, *notes))), None
        segments = self._found.finish()
        position = Position(
            self._found.source_end,
            self._pair.source_topic_id,
            self._pair.target_topic_id,
            NO_LEADER_EPOCH,
            # Where the cleaner has taken the source's last ones, what the twin has of them is the other mirror's too.
            self._target_end if self._compacts else self._found.target_end,
            max(self._end, self._found.source_end),
        )
        adopted = Adopted(self._pair, segments, position)
        return Outcome(self._pair.source, self._found.records, position.offset, notes=notes), adopted

    def _target_start(self) -> int:
        twin = self._pair.target
        view = self._target.run(self._target.metadata([twin.topic]))
        return self._target.run(list_offsets(self._target, view, [twin], OffsetAt.LOG_START)).offsets.get(twin, 0)

    def _log(self, first: RawRecord) -> SourceLog:
        """From the first record on that can be the target's first: earlier ones have earlier stamps, or are earlier."""
        pair, start = self._pair.source, self._start
        if first.timestamp_ms >= 0:
            view = self._source.run(self._source.metadata([pair.topic]))
            listing = self._source.run(list_offsets(self._source, view, [pair], AtTime(first.timestamp_ms)))
            # None of that time: its twin is older than all that is left.
            start = max(start, listing.offsets.get(pair, -1))
        return SourceLog(lambda offset: source_records(self._source, pair, offset, self._end), start)

    def _take(self, batch: StoredBatch) -> None:
        matching = self._matching
        if matching is None:
            raise ValueError("a batch was taken before the source's log was opened")
        rows: list[_Row] = []
        for record in batch.records:
            match = matching.match(record.offset, (record.timestamp_ms, record.content))
            if match is None:
                rows.append(_Row(record))
                continue
            if match.restarts:
                self._found.begin_anew()
                rows = [_Row(earlier.record) for earlier in rows]
            rows.append(_Row(record, match.offset, match.gaps))
        self._found.add(batch, rows)

    def _refused(self, matching: Matching) -> str | None:
        if not self._found.records:
            return "none of its twin's last records is on the source"
        if matching.unmatched and not self._compacts:
            return f"the last {matching.unmatched:,} records of its twin are not on the source"
        syncs = [sync for sync in self._syncs if self._found.covers(sync.downstream_offset)]
        for sync in syncs:
            if self._found.source_of(sync.downstream_offset) != sync.upstream_offset:
                return (
                    f"MirrorMaker 2 noted that source offset {sync.upstream_offset} became {sync.downstream_offset}, "
                    f"and the logs say {self._found.source_of(sync.downstream_offset)}"
                )
        if self._read_to is not None and self._found.source_end < self._read_to and not self._compacts:
            return (
                f"MirrorMaker 2 had read up to source offset {self._read_to}, and its twin ends with "
                f"{self._found.source_end - 1}"
            )
        if not syncs and not matching.certain:
            return "its records are too much alike to tell one place of the log from another"
        return None


class _Segments:
    """Collects matched batches as the copier's segments, with the digests that reconciliation will look for."""

    def __init__(self, pair: PartitionPair) -> None:
        self._pair = pair
        self._runs: list[tuple[int, int, int]] = []
        self.begin_anew()

    def begin_anew(self) -> None:
        self._builder = SegmentBuilder(self._pair, chain)
        self._runs.clear()
        self.records = 0
        self.source_end = self.target_end = 0

    def add(self, batch: StoredBatch, rows: list[_Row]) -> None:
        header = batch.batch.header
        for source_start, run in _runs(rows):
            records = [row.record for row in run]
            first, gaps = records[0], run[0].gaps
            count = len(run)
            whole = count == header.record_count == header.last_offset_delta + 1
            size = header.size_bytes * count // max(len(rows), 1)
            piece = (
                digest_batch(header.codec, header.base_timestamp_ms, count, batch.batch.body)
                if whole
                else digest_records(records)
            )
            stamps = [record.timestamp_ms for record in records]
            self._builder.add(Copied(source_start, first.offset, count, stamps[0], max(stamps), size, piece, gaps))
            self._note(source_start, first.offset, count)

    def finish(self) -> list[Segment]:
        return list(self._builder.finish({}, self.source_end, self.target_end))

    def covers(self, target_offset: int) -> bool:
        return self.source_of(target_offset) is not None

    def source_of(self, target_offset: int) -> int | None:
        for source, target, count in self._runs:
            if target <= target_offset < target + count:
                return source + target_offset - target
        return None

    def _note(self, source: int, target: int, count: int) -> None:
        self.records += count
        self.source_end, self.target_end = source + count, target + count
        if self._runs:
            last_source, last_target, last = self._runs[-1]
            if (last_source + last, last_target + last) == (source, target):
                self._runs[-1] = (last_source, last_target, last + count)
                return
        self._runs.append((source, target, count))


def _runs(rows: list[_Row]) -> Iterator[tuple[int, list[_Row]]]:
    """Rows whose offsets rise by one on both sides, together, after where they begin on the source; those that are not
    there divide them."""
    start, run = 0, list[_Row]()
    for row in rows:
        apart = row.source is not None and row.source - len(run) != start
        if run and (row.source is None or apart or row.gaps or row.record.offset != run[-1].record.offset + 1):
            yield start, run
            run = []
        if row.source is not None:
            start = start if run else row.source
            run.append(row)
    if run:
        yield start, run


def _notes(matching: Matching, records: int) -> Iterator[str]:
    if matching.older:
        yield f"the first {matching.older:,} records of its twin are on the source no longer, and were not verified"
    if matching.superseded:
        yield f"{matching.superseded:,} records of its twin have been compacted on the source"
    if matching.issues:
        told = ", ".join(issue.sentence for issue in matching.issues[:TOLD_AT_MOST])
        more = len(matching.issues) - TOLD_AT_MOST
        also = f", and so at {more:,} places more" if more > 0 else ""
        yield f"only the last {records:,} records of its twin are one to one with the source's: {told}{also}"
