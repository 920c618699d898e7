"""Proves blocks of ledger rows: both logs by digest against the ledger, and record by record where that can't tell.

    source log ──batches──> digests a row ─┐
                                           ├─ both as the ledger has them: equal, and nothing was opened
    target log ──batches──> digests a row ─┘  one is not: the row's records are compared (see `record_proof`)

The ledger's digest is the third witness: what it says of a row was computed from the batches that were sent. So either
side can be digested where it is near, and only the answers need to meet.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.inventory import settled_metadata, settled_offsets
from twinlog.cluster.key_lookup import look_up
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.log_reader import Reading, ReadingResult, flipped, read_spans
from twinlog.cluster.proof_order import (
    Block,
    BlockReport,
    Level,
    ProofOrder,
    ProofReport,
    ProofSettings,
    SourceDigests,
)
from twinlog.cluster.raw import RawClient
from twinlog.cluster.record_proof import LogMovedError, RecordProof, RecordsFound
from twinlog.cluster.secrets import ResolvedSettings, remember_all
from twinlog.model.absence import LogRules
from twinlog.model.findings import FindingKind
from twinlog.model.offsets import PartitionPair, Span, TopicPartition
from twinlog.model.reconciliation import Difference, Kind
from twinlog.model.throttle import Throttle
from twinlog.wire.row_digests import RowDigests
from twinlog.wire.source import SourcePartition

ATTEMPTS = 3
"""A log's start may move on while it is read; then the block is looked at anew."""


def prove(order: ProofOrder) -> ProofReport:
    """Carry out one order in this process."""
    for settings in (order.source_settings, order.target_settings):
        remember_all(settings)
    source = ClusterAccess(order.settings.source, ResolvedSettings(order.source_settings))
    target = ClusterAccess(order.settings.target, ResolvedSettings(order.target_settings))
    if order.settings.level is Level.SOURCE_DIGESTS:
        with source.raw() as reading:
            return reading.run(Prover(reading, reading, order.settings).prove(order))
    with target.raw() as there, source.raw(beside=there) as here:
        return there.run(Prover(here, there, order.settings).prove(order))


def prove_here(orders: list[ProofOrder]) -> list[ProofReport]:
    """An executor without Spark: one order after the other."""
    return [prove(order) for order in orders]


@dataclass
class _Work:
    """One block, and what of it is known so far."""

    block: Block
    source: RowDigests
    target: RowDigests
    source_agrees: Sequence[bool] = ()
    source_outside: Sequence[Span] = ()


class Prover:
    """Proves the blocks of one task; `target` and `source` share one loop."""

    def __init__(self, source: RawClient, target: RawClient, settings: ProofSettings) -> None:
        self._source = source
        self._target = target
        self._settings = settings
        now_s = time.monotonic()
        self._throttles = (Throttle(settings.bytes_per_s, now_s), Throttle(settings.bytes_per_s, now_s))
        self._source_bytes = self._target_bytes = 0
        self._records = RecordProof(source, target, settings.fetch, self._throttles, settings.now_ms)

    async def prove(self, order: ProofOrder) -> ProofReport:
        reports = [report for wave in waves(order.blocks) for report in await self._wave(wave)]
        answers = [
            await look_up(lookup, self._source, self._target, self._settings.fetch, self._throttles)
            for lookup in order.lookups
        ]
        read_here = self._source_bytes + sum(answer.source_bytes for answer in answers)
        read_there = self._target_bytes + sum(answer.target_bytes for answer in answers)
        return ProofReport(tuple(reports), tuple(answers), read_here, read_there)

    async def _wave(self, blocks: Sequence[Block]) -> list[BlockReport]:
        """Blocks of different partitions, read at once."""
        works = [_work(block, self._settings) for block in blocks]
        if self._settings.level is Level.RECORDS:
            return [await self._told(work, ReadingResult(), ReadingResult()) for work in works]
        near, far = await self._target.gather([self._read_sources(works), self._read_targets(works)])
        self._source_bytes += near.bytes
        self._target_bytes += far.bytes
        if self._settings.level is Level.SOURCE_DIGESTS:
            return [_source_report(work) for work in works]
        return [await self._told(work, near, far) for work in works]

    async def _read_sources(self, works: Sequence[_Work]) -> ReadingResult:
        readings = [
            Reading(
                work.block.pair,
                _within(work.block.source, work.block.source_log.start, work.block.source_end),
                work.source.take,
                work.block.max_batch_bytes,
            )
            for work in works
            if work.block.digests is None
        ]
        result = await read_spans(self._source, readings, self._settings.fetch, self._throttles[0])
        for work in works:
            known = work.block.digests
            wanted = [row.digest for row in work.block.rows]
            work.source_agrees = work.source.agree(wanted) if known is None else known.agree
            work.source_outside = work.source.outside if known is None else known.outside
        return result

    async def _read_targets(self, works: Sequence[_Work]) -> ReadingResult:
        if self._settings.level is Level.SOURCE_DIGESTS:
            return ReadingResult()
        readings = [
            Reading(
                flipped(work.block.pair),
                _within(work.block.target, work.block.target_log.start, work.block.target_end),
                work.target.take,
            )
            for work in works
        ]
        return await read_spans(self._target, readings, self._settings.fetch, self._throttles[1])

    async def _told(self, work: _Work, near: ReadingResult, far: ReadingResult) -> BlockReport:
        """What there is to say of a block whose digests are known; the rest by its records."""
        block, tally, differences = work.block, Counter[Kind](), list[Difference]()
        by_digest = self._settings.level is Level.DIGESTS
        suspicious = self._by_digest(work, tally, differences) if by_digest else [True] * len(block.rows)
        for pair, result in ((block.pair, near), (flipped(block.pair), far)):
            refused = result.refused.get(pair.source)
            if refused is not None and refused.kind is not FindingKind.EXPIRED:
                return _report(block, Counter(), [_unreadable(block, refused.message)], RecordsFound())
            if refused is not None:
                suspicious = [True] * len(block.rows)
                tally.clear()
                differences.clear()
        found = RecordsFound()
        if any(suspicious) or (not block.rows and (work.target.outside or not by_digest)):
            found = await self._by_record(block, suspicious)
        tally.update(found.tally)
        self._source_bytes += found.source_bytes
        self._target_bytes += found.target_bytes
        report = _report(block, tally, differences + found.differences, found)
        return replace(report, aborted=far.aborted.get(block.pair.target, 0))

    def _by_digest(self, work: _Work, tally: Counter[Kind], differences: list[Difference]) -> list[bool]:
        """Settle the rows that both sides agree on with the ledger, and say which ones they don't."""
        block = work.block
        wanted = [row.digest for row in block.rows]
        there = work.target.agree(wanted)
        suspicious = []
        for row, agrees_here, agrees_there in zip(block.rows, work.source_agrees, there, strict=True):
            expired_here = row.source_end <= block.source_log.start
            expired_there = row.target_end <= block.target_log.start
            settled = (agrees_here or expired_here) and (agrees_there or expired_there)
            suspicious.append(not settled)
            if not settled or not row.records:
                continue
            explained = block.target_log.may_have_expired(row.newest_ms, self._settings.now_ms)
            if expired_there and not expired_here and not explained:
                differences.append(_deleted(block, row.source_start, row.target_start, row.records))
                tally[Kind.MISSING] += row.records
            else:
                tally[Kind.EXPIRED if expired_here or expired_there else Kind.EQUAL] += row.records
        self._suspect_outside(work, suspicious, tally)
        return suspicious

    def _suspect_outside(self, work: _Work, suspicious: list[bool], tally: Counter[Kind]) -> None:
        """The rows beside records that are in no row."""
        block = work.block
        rows = block.rows
        for number, spans in _by_row([row.source_start for row in rows], work.source_outside):
            if number < len(rows) and sum(span.end - span.start for span in spans) > rows[number].filtered:
                suspicious[number] = True
        for number, spans in _by_row([row.target_start for row in rows], work.target.outside):
            if not block.sole_writer:
                tally[Kind.LOCAL] += sum(span.end - span.start for span in spans)
                continue
            for beside in (number - 1, number):
                if 0 <= beside < len(rows):
                    suspicious[beside] = True

    async def _by_record(self, block: Block, suspicious: Sequence[bool]) -> RecordsFound:
        for attempt in range(ATTEMPTS):
            try:
                return await self._records.prove(block, suspicious)
            except LogMovedError as moved:
                if attempt == ATTEMPTS - 1:
                    found = RecordsFound()
                    found.differences.append(_unreadable(block, str(moved)))
                    found.tally[Kind.UNREADABLE] += 1
                    return found
                block = await self._looked_at_anew(block)
        raise RuntimeError("every attempt has either ended or been the last")

    async def _looked_at_anew(self, block: Block) -> Block:
        """The block with the logs' starts and ends of this moment."""
        here = await _ends(self._source, block.pair.source, block.source_log)
        there = await _ends(self._target, block.pair.target, block.target_log)
        return replace(block, source_log=here[0], source_end=here[1], target_log=there[0], target_end=there[1])


def waves(blocks: Iterable[Block]) -> list[list[Block]]:
    """The blocks in rounds with one of each partition at the most."""
    rounds: list[list[Block]] = []
    placed: Counter[PartitionPair] = Counter()
    for block in blocks:
        number = placed[block.pair]
        placed[block.pair] += 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(block)
    return rounds


def _work(block: Block, settings: ProofSettings) -> _Work:
    pair, rows = block.pair, block.rows
    counts = [row.records for row in rows]
    source = SourcePartition(settings.source, pair.source_topic, pair.partition)
    target = SourcePartition(settings.target, pair.target_topic, pair.partition)
    return _Work(
        block,
        RowDigests([row.source_start for row in rows], counts, source),
        RowDigests([row.target_start for row in rows], counts, target),
    )


def _by_row(starts: Sequence[int], spans: Iterable[Span]) -> Iterator[tuple[int, list[Span]]]:
    """Spans that are in no row, by the number of the row that follows them."""
    grouped: dict[int, list[Span]] = {}
    for span in spans:
        grouped.setdefault(bisect_left(starts, span.start), []).append(span)
    yield from grouped.items()


def _within(span: Span, start: int, end: int) -> Span:
    first = max(span.start, start)
    return Span(first, max(first, min(span.end, end)))


async def _ends(client: RawClient, partition: TopicPartition, log: LogRules) -> tuple[LogRules, int]:
    view = await settled_metadata(client, [partition.topic])
    starts = await settled_offsets(client, view, [partition], OffsetAt.LOG_START)
    ends = await settled_offsets(client, view, [partition], OffsetAt.LAST_STABLE)
    if partition not in starts.offsets or partition not in ends.offsets:
        raise LogMovedError(f"cluster {client.alias}: {partition}: where its log begins and ends isn't known")
    return replace(log, start=starts.offsets[partition]), ends.offsets[partition]


def _source_report(work: _Work) -> BlockReport:
    # A partition that could not be read agrees with nothing, and is looked at by whoever compares the records.
    block = work.block
    digests = SourceDigests(tuple(work.source_agrees), tuple(work.source_outside))
    return BlockReport(block.pair, block.source, block.target, len(block.rows), {}, digests=digests)


def _report(block: Block, tally: Counter[Kind], differences: Sequence[Difference], found: RecordsFound) -> BlockReport:
    return BlockReport(
        block.pair,
        block.source,
        block.target,
        len(block.rows),
        {kind: count for kind, count in tally.items() if count},
        tuple(differences),
        tuple(found.needs),
        opened=found.opened,
    )


def _deleted(block: Block, source_offset: int, target_offset: int, count: int) -> Difference:
    return Difference(
        Kind.MISSING,
        block.pair.source_topic,
        block.pair.partition,
        source_offset,
        target_offset,
        f"the target's log starts at {block.target_log.start}, and its retention would have kept this: somebody has "
        "deleted it",
        count,
    )


def _unreadable(block: Block, message: str) -> Difference:
    return Difference(
        Kind.UNREADABLE,
        block.pair.source_topic,
        block.pair.partition,
        block.source.start,
        block.target.start,
        message,
        max(1, sum(row.records for row in block.rows)),
    )
