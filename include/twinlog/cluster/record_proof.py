"""The record level: both logs' records of some rows read, opened and compared one by one.

Rows that stand together are compared together, up to so many records, so that what moved from one to the next is found;
a record that is not there is explained by the log's own rules or told as what is left: missing, or extra.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from twinlog.cluster.log_reader import Reading, flipped, read_spans
from twinlog.cluster.proof_order import Block, Need, ProofRow
from twinlog.cluster.raw import RawClient
from twinlog.cluster.source_partition import FetchSettings
from twinlog.errors import ClusterError
from twinlog.model.absence import Reason
from twinlog.model.offsets import PartitionPair, Span
from twinlog.model.reconciliation import Difference, Kind, joined
from twinlog.model.record_comparison import Judged, MappedSpan, RecordFact, compare
from twinlog.model.throttle import Throttle
from twinlog.wire.outgoing import OutgoingBatch
from twinlog.wire.outgoing_records import facts_of
from twinlog.wire.source import SourcePartition

WINDOW_RECORDS = 50_000
"""Compared at once; a row with more is compared by itself."""
MOST_DIFFERENCES = 10_000
"""Told of a block one by one; what is beyond is counted."""


@dataclass
class RecordsFound:
    """What comparing records has brought."""

    tally: Counter[Kind] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    opened: int = 0
    source_bytes: int = 0
    target_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """Rows `[first, after)` of a block, with what lies before them and, after the last, behind them."""

    first: int
    after: int
    source: Span
    target: Span


def windows(block: Block, suspicious: Sequence[bool]) -> Iterator[Window]:
    """The suspicious rows, neighbours together; a block without rows is one window by itself."""
    rows = block.rows
    if not rows:
        yield Window(0, 0, Span(block.source.end, block.source.end), block.target)
        return
    number = 0
    while number < len(rows):
        if not suspicious[number]:
            number += 1
            continue
        after, records = number + 1, rows[number].records
        while after < len(rows) and suspicious[after] and records + rows[after].records <= WINDOW_RECORDS:
            records += rows[after].records
            after += 1
        yield Window(number, after, *_spans(block, number, after))
        number = after


def _spans(block: Block, first: int, after: int) -> tuple[Span, Span]:
    rows = block.rows
    source_end = block.source.end if after == len(rows) else rows[after - 1].source_end
    target_start = block.target.start if first == 0 else rows[first - 1].target_end
    # What follows the last row of a window belongs to the next row, and is looked at with that one.
    target_end = block.target.end if after == len(rows) else rows[after].target_start
    return Span(rows[first].span_start, source_end), Span(target_start, target_end)


class RecordProof:
    """Compares windows of one block."""

    def __init__(
        self,
        source: RawClient,
        target: RawClient,
        fetch: FetchSettings,
        throttles: tuple[Throttle, Throttle],
        now_ms: int,
    ) -> None:
        self._source = source
        self._target = target
        self._fetch = fetch
        self._throttles = throttles
        self._now_ms = now_ms

    async def prove(self, block: Block, suspicious: Sequence[bool]) -> RecordsFound:
        """The verdict on every record of the suspicious rows."""
        found = RecordsFound()
        for window in windows(block, suspicious):
            await self._compare(block, window, found)
        told = joined(found.differences)
        left = told[MOST_DIFFERENCES:]
        found.differences = told[:MOST_DIFFERENCES]
        if left:
            found.differences[-1] = replace(
                found.differences[-1], detail=f"{found.differences[-1].detail}; and {len(left):,} more like these"
            )
        return found

    async def _compare(self, block: Block, window: Window, found: RecordsFound) -> None:
        pair = block.pair
        source_span = _clipped(window.source, block.source_log.start, block.source_end)
        target_span = _clipped(window.target, block.target_log.start, block.target_end)
        source, target = await self._target.gather(
            [
                read_facts(self._source, pair, source_span, self._fetch, self._throttles[0]),
                read_facts(self._target, flipped(pair), target_span, self._fetch, self._throttles[1]),
            ]
        )
        found.source_bytes += source.bytes
        found.target_bytes += target.bytes
        found.opened += len(source.facts) + len(target.facts)
        rows = block.rows[window.first : window.after]
        facts = without_filtered(source.facts, rows)
        spans = [MappedSpan(row.source_start, row.target_start, row.records) for row in rows if row.records]
        compared = compare(facts, target.facts, spans)
        found.tally[Kind.EQUAL] += compared.equal
        for span in compared.gone:
            self._both_gone(block, span, found)
        for judged in compared.judged:
            self._classify(block, judged, found)

    @staticmethod
    def _both_gone(block: Block, span: MappedSpan, found: RecordsFound) -> None:
        """What neither log has can't be compared; but the target may only lack what its own rules let go."""
        kept_from = max(span.target, block.target_log.start)
        expired = min(kept_from - span.target, span.records)
        if expired:
            found.tally[Kind.EXPIRED] += expired
        left = span.records - expired
        if not left:
            return
        if block.target_log.compacts:
            found.tally[Kind.COMPACTED] += left
            return
        found.tally[Kind.MISSING] += left
        pair = block.pair
        detail = "neither log has what the ledger says was copied here, and on the target nothing may remove it"
        found.differences.append(
            Difference(Kind.MISSING, pair.source_topic, pair.partition, span.source + expired, kept_from, detail, left)
        )

    def _classify(self, block: Block, judged: Judged, found: RecordsFound) -> None:
        kind, here, there, detail = judged
        told = _difference(block.pair, judged)
        if kind is Kind.MISSING and here is not None and not detail:
            self._explain(block, "target", _image(block.rows, here.offset), here, told, found)
        elif kind is Kind.EXTRA and there is not None:
            self._explain(block, "source", _original(block.rows, there.offset), there, told, found)
        elif kind is Kind.FOREIGN and not block.sole_writer:
            found.tally[Kind.LOCAL] += 1
        else:
            found.tally[kind] += 1
            found.differences.append(told)

    def _explain(  # noqa: PLR0917 - a record, and where it should be
        self, block: Block, side: str, offset: int, other: RecordFact, told: Difference, found: RecordsFound
    ) -> None:
        """Why one side does not have what the other has."""
        log = block.target_log if side == "target" else block.source_log
        reason = log.why_absent(offset, other, now_ms=self._now_ms)
        told = replace(told, detail=_told(reason, side, log.start) or told.detail)
        told = replace(told, target_offset=offset) if side == "target" else replace(told, source_offset=offset)
        if reason is Reason.LATER_KEY_NEEDED and other.key is not None:
            found.needs.append(Need(side, other.key, offset, other.offset, told))
        elif reason in (Reason.EXPIRED, Reason.COMPACTED):
            found.tally[Kind.EXPIRED if reason is Reason.EXPIRED else Kind.COMPACTED] += 1
        else:
            found.tally[told.kind] += 1
            found.differences.append(told)


@dataclass(frozen=True, slots=True)
class _Facts:
    facts: list[RecordFact]
    bytes: int


async def read_facts(
    client: RawClient, pair: PartitionPair, span: Span, fetch: FetchSettings, throttle: Throttle
) -> _Facts:
    """The committed records of a span of the pair's source log."""
    source = SourcePartition(client.alias, pair.source_topic, pair.partition)
    facts: list[RecordFact] = []

    def take(batch: OutgoingBatch) -> None:
        # The last batch comes whole, also where it reaches beyond the span.
        facts.extend(fact for fact in facts_of(batch, source) if span.start <= fact.offset < span.end)

    result = await read_spans(client, [Reading(pair, span, take)], fetch, throttle)
    for finding in result.refused.values():
        raise LogMovedError(finding.message)
    return _Facts(facts, result.bytes)


class LogMovedError(ClusterError):
    """A log can't be read as far as it could a moment ago."""


def without_filtered(facts: list[RecordFact], rows: Sequence[ProofRow]) -> list[RecordFact]:
    """The source's records less those of the gaps that are known to hold so many that were not to be copied."""
    left = facts
    for row in rows:
        if row.filtered:
            inside = [fact for fact in left if row.span_start <= fact.offset < row.source_start]
            if len(inside) <= row.filtered:
                left = [fact for fact in left if not row.span_start <= fact.offset < row.source_start]
    return left


def _clipped(span: Span, start: int, end: int) -> Span:
    first = max(span.start, start)
    return Span(first, max(first, min(span.end, end)))


def _difference(pair: PartitionPair, judged: Judged) -> Difference:
    kind, here, there, detail = judged
    return Difference(
        kind,
        pair.source_topic,
        pair.partition,
        None if here is None else here.offset,
        None if there is None else there.offset,
        detail,
    )


def _image(rows: Sequence[ProofRow], offset: int) -> int:
    row = rows[bisect_right(rows, offset, key=lambda row: row.source_start) - 1]
    return row.target_start + offset - row.source_start


def _original(rows: Sequence[ProofRow], offset: int) -> int:
    row = rows[bisect_right(rows, offset, key=lambda row: row.target_start) - 1]
    return row.source_start + offset - row.target_start


def _told(reason: Reason, side: str, start: int) -> str:
    if reason is Reason.DELETED:
        return f"the {side}'s log starts at {start}, and its retention would have kept this: somebody has deleted it"
    if reason is Reason.LATER_KEY_NEEDED:
        return f"gone from the {side}, and no later record there has its key"
    return ""
