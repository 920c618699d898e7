"""Writes what another mirror has copied into a flow's journal and positions, as if the flow had copied it.

It is done as copying is: open the lane, which fences whoever wrote there; read the flow's record, then the positions;
then journal entries and positions in one transaction. A partition that has a position by then has been copied by the
flow itself, or was adopted before, and is left as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.kept_values import MAX_BATCH_BYTES, RETRIES
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import FencedError
from twinlog.model.flow_state import Holder
from twinlog.model.lanes import journal_topic, lane_of, position_group, transactional_id
from twinlog.model.offsets import JournalEntry, PartitionPair, Segment, TopicPartition
from twinlog.model.positions import Position
from twinlog.model.topology import Flow
from twinlog.wire import journal
from twinlog.wire.own_records import build_batches
from twinlog.wire.source import SourcePartition

TRANSACTION_TIMEOUT_MS = 60_000
ENTRIES_A_TRANSACTION = 20_000


@dataclass(frozen=True, slots=True)
class Adopted:
    """One partition as the other mirror left it."""

    pair: PartitionPair
    segments: Sequence[Segment]
    position: Position


async def write_adopted(  # noqa: PLR0917 - what is written where, and by whom, each once
    client: RawClient, store: FlowStore, flow: Flow, holder: Holder, lanes: int, adopted: Iterable[Adopted]
) -> set[TopicPartition]:
    """Write these; the target partitions that were written."""
    by_lane: dict[int, list[Adopted]] = {}
    for one in adopted:
        by_lane.setdefault(lane_of(one.pair.target, lanes), []).append(one)
    writers = (_LaneWriter(client, store, flow, holder, lane) for lane in by_lane)
    written = await client.gather(
        writer.write(members) for writer, members in zip(writers, by_lane.values(), strict=True)
    )
    return {partition for partitions in written for partition in partitions}


@dataclass(frozen=True, slots=True)
class _LaneWriter:
    """One lane of the flow."""

    client: RawClient
    store: FlowStore
    flow: Flow
    holder: Holder
    lane: int

    async def write(self, members: Sequence[Adopted]) -> list[TopicPartition]:
        writer = TransactionalWriter(
            self.client,
            transactional_id(self.flow.name, self.lane),
            timeout_ms=TRANSACTION_TIMEOUT_MS,
            retries=RETRIES,
        )
        await writer.open()
        overtaken = (await self.store.read()).reason_to_stop(self.holder, self.flow.name)
        if overtaken is not None:
            raise FencedError(f"{overtaken}; nothing was adopted")
        group = position_group(self.flow.name)
        known = await fetch_positions(self.client, group, [one.pair.target for one in members])
        new = [one for one in members if one.pair.target not in known]
        for one in new:
            # The position with the last of its entries: before it is there, the others say nothing.
            for first in range(0, len(one.segments), ENTRIES_A_TRANSACTION):
                await self._write_journal(writer, one.segments[first : first + ENTRIES_A_TRANSACTION])
                if first + ENTRIES_A_TRANSACTION >= len(one.segments):
                    await writer.commit_positions(group, {one.pair.target: one.position})
                await writer.commit()
        return [one.pair.target for one in new]

    async def _write_journal(self, writer: TransactionalWriter, segments: Sequence[Segment]) -> None:
        now_ms = int(time.time() * 1000)
        topic = TopicPartition(journal_topic(self.flow.source, self.flow.target), self.lane)
        entries = [JournalEntry(self.flow.name, self.holder.run, now_ms, segment) for segment in segments]
        await writer.add_partitions([topic])
        leader = (await self.client.metadata([topic.topic])).leader(topic)
        place = SourcePartition(self.client.alias, topic.topic, topic.partition)
        pairs = [journal.encode(entry) for entry in entries]
        for batch in build_batches(pairs, now_ms, max_batch_bytes=MAX_BATCH_BYTES, target=place):
            await writer.produce(leader, {topic: writer.stamp(topic, batch)})
