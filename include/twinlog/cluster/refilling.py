"""Fills a twin that was made anew from a fresh copy beside it, as if the flow had copied it from its source.

    fresh    [r r r][M][r r r r][M]       with its ledger's rows: source 10..12, then, after a gap, 15..18
    twin     [r r r][M][r r r r][M]       the same batches, and the rows journalled as the flow's own

Done as copying is: open the lane, which fences whoever wrote there; read the flow's record, then the positions; then
batches, journal entries and position in one transaction. So whoever dies in between has filled a part, exactly: the
next try goes on behind it, and so does an ordinary run of the flow, from the source.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.kept_values import MAX_BATCH_BYTES
from twinlog.cluster.raw import RawClient
from twinlog.cluster.span_reader import SpanReader
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import FencedError, RepairError
from twinlog.model.flow_state import Holder
from twinlog.model.lanes import journal_topic, lane_of, position_group, transactional_id
from twinlog.model.offsets import JournalEntry, PartitionPair, Segment, Span, TopicPartition
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.model.topology import Flow
from twinlog.wire import journal
from twinlog.wire.own_records import build_batches
from twinlog.wire.source import SourcePartition

TRANSACTION_TIMEOUT_MS = 180_000
"""For what a transaction has at the most, on a slow day."""
RETRIES = 40
BYTES_A_TRANSACTION = 32 * 1024 * 1024
ROWS_A_TRANSACTION = 10_000


@dataclass(frozen=True, slots=True)
class Filling:
    """One partition: what the fresh copy has of it, and the twin that is to have it."""

    pair: PartitionPair
    """The flow's own: the source's topic, and the twin as it was made anew."""
    fresh: TopicPartition
    rows: Sequence[Segment]
    """In source order; their target offsets are the fresh copy's."""
    end: Position
    """Where the fresh copy has come to."""


@dataclass(frozen=True)
class Refilling:
    """Of one flow, under the lease of one try of a run."""

    client: RawClient
    store: FlowStore
    flow: Flow
    holder: Holder
    lanes: int

    async def fill(self, fillings: Iterable[Filling]) -> int:
        """Fill all of them; answers how many records were written."""
        by_lane: dict[int, list[Filling]] = defaultdict(list)
        for one in fillings:
            by_lane[lane_of(one.pair.target, self.lanes)].append(one)
        return sum(await self.client.gather(self._fill_lane(lane, members) for lane, members in by_lane.items()))

    async def _fill_lane(self, lane: int, members: Sequence[Filling]) -> int:
        writer = TransactionalWriter(
            self.client, transactional_id(self.flow.name, lane), timeout_ms=TRANSACTION_TIMEOUT_MS, retries=RETRIES
        )
        await writer.open()
        overtaken = (await self.store.read()).reason_to_stop(self.holder, self.flow.name)
        if overtaken is not None:
            raise FencedError(f"{overtaken}; nothing was filled")
        twins = [one.pair.target for one in members]
        known = await fetch_positions(self.client, position_group(self.flow.name), twins)
        return sum([await _Partition(self, writer, lane, one).fill(known.get(one.pair.target)) for one in members])


@dataclass
class _Partition:
    """One partition on its way."""

    refilling: Refilling
    writer: TransactionalWriter
    lane: int
    filling: Filling
    target_end: int = 0

    async def fill(self, position: Position | None) -> int:
        filling = self.filling
        if position is not None and position.target_topic_id != filling.pair.target_topic_id:
            position = None
        done = -1
        if position is not None:
            done, self.target_end = position.offset, position.target_end
            if done >= filling.end.offset or all(row.source_end != done for row in filling.rows):
                # A run of the flow has gone on from the source in the meantime, and does the rest.
                return 0
        records = 0
        left = [row for row in filling.rows if row.source_end > done]
        for rows in transactions(left):
            last = rows[-1].source_end >= filling.end.offset
            records += await self._transaction(rows, last=last)
        if not left:
            # Nothing was ever there to be copied; the position alone says how far that is known.
            await self._transaction((), last=True)
        return records

    async def _transaction(self, rows: Sequence[Segment], *, last: bool) -> int:
        pair, filling = self.filling.pair, self.filling
        images: dict[int, int] = {}
        for span in stretches(rows):
            images[span.start] = await self._copy(span)
        written = [self._placed(row, images) for row in rows]
        end = filling.end
        offset = end.offset if last else rows[-1].source_end
        position = Position(
            offset,
            pair.source_topic_id,
            pair.target_topic_id,
            end.leader_epoch if last else NO_LEADER_EPOCH,
            self.target_end,
            max(offset, end.seen_end),
        )
        if written:
            await self._write_journal(written, position)
        await self.writer.commit_positions(position_group(self.refilling.flow.name), {pair.target: position})
        await self.writer.commit()
        return sum(row.count for row in rows)

    def _placed(self, row: Segment, images: dict[int, int]) -> Segment:
        """The row as the twin has it; `images` says where stretches of the fresh copy were put."""
        place = self.target_end
        if row.count:
            begin = max(start for start in images if start <= row.target_start)
            place = images[begin] + row.target_start - begin
        self.target_end = place + row.count
        return replace(row, pair=self.filling.pair, target_start=place)

    async def _copy(self, span: Span) -> int:
        """The fresh copy's batches of a span, whole; answers where the first of them was put."""
        client, target = self.refilling.client, self.filling.pair.target
        reader, at = SpanReader(client, self.filling.fresh, span.end), span.start
        await self.writer.add_partitions([target])
        first: int | None = None
        sent = 0
        while at < span.end:
            part = await reader.batches(at)
            leader = (await client.metadata([target.topic])).leader(target)
            for batch in part.batches:
                placed = await self.writer.produce(leader, {target: self.writer.stamp(target, batch)})
                first = placed[target] if first is None else first
                if placed[target] != first + sent:
                    raise RepairError(
                        f"cluster {client.alias}: {target} took a record at offset {placed[target]} instead of "
                        f"{first + sent}: somebody else writes there. Stop it, then run again"
                    )
                sent += batch.record_count
            at = part.end
        if first is None or sent != span.end - span.start:
            raise RepairError(
                f"cluster {client.alias}: {self.filling.fresh} has {sent} records in offsets {span.start} to "
                f"{span.end - 1}, where {span.end - span.start} were copied; abandon this repair and begin another"
            )
        return first

    async def _write_journal(self, rows: Sequence[Segment], position: Position) -> None:
        refilling = self.refilling
        client, flow, now_ms = refilling.client, refilling.flow, int(time.time() * 1000)
        place = TopicPartition(journal_topic(flow.source, flow.target), self.lane)
        run = refilling.holder.run
        entries = [JournalEntry(flow.name, run, now_ms, row, position.seen_end, position.leader_epoch) for row in rows]
        await self.writer.add_partitions([place])
        leader = (await client.metadata([place.topic])).leader(place)
        where = SourcePartition(client.alias, place.topic, place.partition)
        pairs = [journal.encode(entry) for entry in entries]
        for batch in build_batches(pairs, now_ms, max_batch_bytes=MAX_BATCH_BYTES, target=where):
            await self.writer.produce(leader, {place: self.writer.stamp(place, batch)})


def stretches(rows: Iterable[Segment]) -> Iterator[Span]:
    """The fresh copy's offsets of these rows, those that follow on one another together: a batch may be of several."""
    current: Span | None = None
    for row in rows:
        if not row.count:
            continue
        if current is not None and row.target_start == current.end:
            current = Span(current.start, row.target_end)
            continue
        if current is not None:
            yield current
        current = Span(row.target_start, row.target_end)
    if current is not None:
        yield current


def transactions(rows: Sequence[Segment]) -> Iterator[Sequence[Segment]]:
    """The rows in parts of bounded size; what follows on in the fresh copy stays together."""
    part: list[Segment] = []
    size, end = 0, -1
    for row in rows:
        apart = row.count > 0 and row.target_start != end
        if part and apart and (size >= BYTES_A_TRANSACTION or len(part) >= ROWS_A_TRANSACTION):
            yield part
            part, size = [], 0
        part.append(row)
        size += row.bytes
        end = row.target_end if row.count else end
    if part:
        yield part
