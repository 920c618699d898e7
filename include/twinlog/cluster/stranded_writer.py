"""Moves positions past records that never crossed: they are left where they are, or sent to a topic of their own.

It is done as copying is: open the lane, which fences whoever wrote there; read the flow's record, then the positions;
and then, in transactions of the lane, the new position, the journal entry that counts what was passed over, and the
records, where they go somewhere. So whoever dies in between has passed over a part, exactly, and the next try goes on
behind it; no record is sent to that topic twice.

The gap's kind is `stranded`, one an offset that held a committed record; markers, aborted and expired offsets in
between are counted as what they are.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.raw import RawClient
from twinlog.cluster.span_reader import ANY_SIZE, SpanReader
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import FencedError
from twinlog.model.failback import StrandedSpan
from twinlog.model.flow_state import Holder
from twinlog.model.lanes import journal_topic, lane_of, position_group, transactional_id
from twinlog.model.offsets import GapKind, JournalEntry, TopicPartition, offsets_among
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.model.segment_builder import gaps_only
from twinlog.wire import journal
from twinlog.wire.outgoing import Gaps
from twinlog.wire.own_records import build_batches
from twinlog.wire.selection import Selection
from twinlog.wire.source import SourcePartition

TRANSACTION_TIMEOUT_MS = 60_000
RETRIES = 40
JOURNAL_BATCH_BYTES = 512 * 1024


@dataclass(frozen=True)
class StrandedWriter:
    """Of one flow, under the lease of one try of a run."""

    source: RawClient
    target: RawClient
    store: FlowStore
    flow: str
    source_alias: str
    target_alias: str
    holder: Holder
    lanes: int
    forgotten: Mapping[TopicPartition, Position]
    """Positions that the target no longer keeps, by the twin."""
    max_batch_bytes: Mapping[str, int]
    """Of the topics that records are sent to."""

    async def pass_over(self, spans: Iterable[StrandedSpan], topics: Mapping[str, str]) -> int:
        """Move the positions to the end of each span; `topics` names, by the source's topic, where its records are sent
        to, and one that it does not name keeps them. Answers how many records were passed over."""
        by_lane: dict[int, list[StrandedSpan]] = defaultdict(list)
        for span in spans:
            by_lane[lane_of(span.pair.target, self.lanes)].append(span)
        passed = await self.target.gather(self._pass_lane(lane, members, topics) for lane, members in by_lane.items())
        return sum(passed)

    async def _pass_lane(self, lane: int, spans: list[StrandedSpan], topics: Mapping[str, str]) -> int:
        writer = TransactionalWriter(
            self.target, transactional_id(self.flow, lane), timeout_ms=TRANSACTION_TIMEOUT_MS, retries=RETRIES
        )
        await writer.open()
        overtaken = (await self.store.read()).reason_to_stop(self.holder, self.flow)
        if overtaken is not None:
            raise FencedError(f"{overtaken}; nothing was passed over")
        twins = [span.pair.target for span in spans]
        remembered = await fetch_positions(self.target, position_group(self.flow), twins)
        passed = 0
        for span in spans:
            position = remembered.get(span.pair.target) or self.forgotten.get(span.pair.target)
            if position is not None and position.source_topic_id == span.pair.source_topic_id:
                passed += await self._pass_span(writer, lane, span, position, topics.get(span.pair.source_topic))
        return passed

    async def _pass_span(
        self, writer: TransactionalWriter, lane: int, span: StrandedSpan, position: Position, topic: str | None
    ) -> int:
        """Part by part, each in a transaction of its own; what came from the target is passed over as in copying."""
        passed = 0
        if position.offset < span.start:
            after = _moved(position, span.start, position.leader_epoch)
            position = await self._commit(writer, lane, span, after, _before(span, position.offset))
        for piece, came_back in span.pieces:
            if came_back and position.offset < piece.end:
                filtered = {GapKind.FILTERED: piece.end - position.offset}
                after = _moved(position, piece.end, NO_LEADER_EPOCH)
                position = await self._commit(writer, lane, span, after, filtered)
                continue
            reader = SpanReader(self.source, span.pair.source, piece.end)
            while position.offset < piece.end:
                part = await reader.batches(position.offset, ANY_SIZE if topic is None else self.max_batch_bytes[topic])
                if topic is not None:
                    await self._send(writer, TopicPartition(topic, span.pair.partition), part)
                gaps = _gaps(part)
                position = await self._commit(writer, lane, span, _moved(position, part.end, part.last_epoch), gaps)
                passed += gaps.get(GapKind.STRANDED, 0)
        return passed

    async def _send(self, writer: TransactionalWriter, partition: TopicPartition, part: Selection) -> None:
        if not part.batches:
            return
        await writer.add_partitions([partition])
        leader = (await self.target.metadata([partition.topic])).leader(partition)
        for batch in part.batches:
            await writer.produce(leader, {partition: writer.stamp(partition, batch)})

    async def _commit(
        self,
        writer: TransactionalWriter,
        lane: int,
        span: StrandedSpan,
        after: Position,
        gaps: Mapping[GapKind, int],
    ) -> Position:
        now_ms = int(time.time() * 1000)
        segment = gaps_only(span.pair, gaps, after.offset, after.target_end)
        pairs = [
            journal.encode(
                JournalEntry(self.flow, self.holder.run, now_ms, segment, after.seen_end, after.leader_epoch)
            )
        ]
        place = TopicPartition(journal_topic(self.source_alias, self.target_alias), lane)
        await writer.add_partitions([place])
        leader = (await self.target.metadata([place.topic])).leader(place)
        where = SourcePartition(self.target.alias, place.topic, place.partition)
        for batch in build_batches(pairs, now_ms, max_batch_bytes=JOURNAL_BATCH_BYTES, target=where):
            await writer.produce(leader, {place: writer.stamp(place, batch)})
        await writer.commit_positions(position_group(self.flow), {span.pair.target: after})
        await writer.commit()
        return after


def _before(span: StrandedSpan, offset: int) -> dict[GapKind, int]:
    """What the offsets from `offset` up to the span were, which retention has removed."""
    came_back = offsets_among(span.returned, offset, span.start)
    counted = {GapKind.EXPIRED: span.start - offset - came_back, GapKind.FILTERED: came_back}
    return {kind: offsets for kind, offsets in counted.items() if offsets}


def _moved(position: Position, offset: int, epoch: int) -> Position:
    return replace(position, offset=offset, leader_epoch=epoch, seen_end=max(position.seen_end, offset))


def _gaps(part: Selection) -> dict[GapKind, int]:
    """What the offsets of a part were, records as stranded."""
    others = part.trailing
    records = 0
    for batch in part.batches:
        for run in batch.runs:
            records += run.record_count
            others = others.plus(run.gaps)
    return {GapKind.STRANDED: records, **_named(others)} if records else _named(others)


def _named(gaps: Gaps) -> dict[GapKind, int]:
    counted = {
        GapKind.ABORTED: gaps.aborted,
        GapKind.CONTROL: gaps.control,
        GapKind.COMPACTED: gaps.compacted,
        GapKind.FILTERED: gaps.filtered,
    }
    return {kind: offsets for kind, offsets in counted.items() if offsets}
