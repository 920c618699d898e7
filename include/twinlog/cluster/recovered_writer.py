"""Appends records of the source that a twin lacks to a topic of their own on the target, each exactly once.

Each keeps its key, value, headers and timestamp, and gets one header more, which says where it came from:

    twinlog.recovered    <source topic id>/<partition>/<source offset>

That header is also what makes it exact: under a transactional id of its own, which fences whoever did this before, the
topic is read first, and what it has already is not appended again.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from twinlog.cluster.committed_records import read_committed_records
from twinlog.cluster.raw import RawClient
from twinlog.cluster.span_reader import SpanReader
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.model.lanes import recovering_transactional_id
from twinlog.model.offsets import Span, TopicPartition
from twinlog.wire.added_header import with_header
from twinlog.wire.encoder import encode
from twinlog.wire.outgoing import NO_GAPS, OutgoingBatch
from twinlog.wire.outgoing_records import open_outgoing
from twinlog.wire.records import RawRecord
from twinlog.wire.source import SourcePartition

HEADER = b"twinlog.recovered"
TRANSACTION_TIMEOUT_MS = 60_000
RETRIES = 40


@dataclass(frozen=True, slots=True)
class Lacking:
    """Source offsets of one partition whose records the twin lacks, and where they are appended."""

    source: TopicPartition
    source_topic_id: uuid.UUID
    spans: Sequence[Span]
    """In order, and all of them below the source's last stable offset."""
    into: TopicPartition


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of one partition's."""

    lacking: Lacking
    offsets: Sequence[int]
    """Source offsets whose records are there now."""
    appended: int
    """Of them, those that were not there before."""


@dataclass(frozen=True)
class RecoveredWriter:
    """Of one flow."""

    source: RawClient
    target: RawClient
    flow: str
    max_batch_bytes: int

    async def append(self, members: Sequence[Lacking]) -> list[Recovered]:
        """Append what is not there yet, a partition after the other."""
        writer = TransactionalWriter(
            self.target, recovering_transactional_id(self.flow), timeout_ms=TRANSACTION_TIMEOUT_MS, retries=RETRIES
        )
        await writer.open()
        return [await self._append(writer, one) for one in members]

    async def _append(self, writer: TransactionalWriter, one: Lacking) -> Recovered:
        there = await self._there(one)
        found = set[int]()
        appended = 0
        for span in one.spans:
            reader, at = SpanReader(self.source, one.source, span.end), span.start
            while at < span.end:
                part = await reader.batches(at)
                for batch in part.batches:
                    records = [each for each in self._opened(one, batch) if span.start <= each.offset < span.end]
                    found.update(record.offset for record in records)
                    new = [record for record in records if record.offset not in there]
                    if new:
                        await self._send(writer, one, batch.codec, new)
                        appended += len(new)
                at = part.end
                # What is there is not appended again, so nothing needs to be committed together.
                await writer.commit()
        return Recovered(one, sorted(found), appended)

    async def _there(self, one: Lacking) -> set[int]:
        """The source offsets of what the topic has of this partition already."""
        begin = f"{one.source_topic_id}/{one.source.partition}/".encode()
        return {
            int(header.value.removeprefix(begin))
            for record in await read_committed_records(self.target, one.into)
            for header in record.headers
            if header.key == HEADER and header.value is not None and header.value.startswith(begin)
        }

    def _opened(self, one: Lacking, batch: OutgoingBatch) -> list[RawRecord]:
        place = SourcePartition(self.source.alias, one.source.topic, one.source.partition)
        return open_outgoing(batch, place)

    async def _send(self, writer: TransactionalWriter, one: Lacking, codec: int, records: Sequence[RawRecord]) -> None:
        place = SourcePartition(self.source.alias, one.source.topic, one.source.partition)
        named = [
            record._replace(
                content=with_header(
                    record.content, HEADER, f"{one.source_topic_id}/{one.source.partition}/{record.offset}".encode()
                )
            )
            for record in records
        ]
        await writer.add_partitions([one.into])
        leader = (await self.target.metadata([one.into.topic])).leader(one.into)
        for batch in encode(named, codec, NO_GAPS, max_batch_bytes=self.max_batch_bytes, source=place):
            await writer.produce(leader, {one.into: writer.stamp(one.into, batch)})
