"""Digests of rows from any log, read in any portions, are those that the copier wrote into the ledger."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.modelled_log import Log, logs
from twinlog.model.offsets import Span
from twinlog.wire.aborted import AbortedTransactions
from twinlog.wire.digest import EMPTY, chain
from twinlog.wire.outgoing import OutgoingBatch
from twinlog.wire.restamp import stamp_plain
from twinlog.wire.row_digests import RowDigests
from twinlog.wire.selection import select
from twinlog.wire.source import SourcePartition

SOURCE = SourcePartition("nyc", "orders", 0)


def outgoing(log: Log, count: int) -> list[OutgoingBatch]:
    """What a copier sends of the log, `count` batches a Fetch."""
    batches: list[OutgoingBatch] = []
    at = log.batches[0][0] if log.batches else log.end
    while at < log.end:
        data, listed = log.fetch(at, count)
        if not data:
            break
        found = select(
            memoryview(data),
            source=SOURCE,
            start=at,
            aborted=AbortedTransactions(SOURCE, listed),
            bound=log.end,
            max_batch_bytes=10_000,
        )
        batches += found.batches
        at = found.end
    return batches


def rows_of(batches: list[OutgoingBatch]) -> list[tuple[int, int, int]]:
    """Start, count and digest, as a ledger has them: runs that follow one another are one row."""
    rows: list[tuple[int, int, int]] = []
    for run in (run for batch in batches for run in batch.runs):
        if rows and rows[-1][0] + rows[-1][1] == run.source_start and not run.gaps.total:
            start, count, digest = rows.pop()
            rows.append((start, count + run.record_count, chain(digest, run.digest)))
        else:
            rows.append((run.source_start, run.record_count, chain(EMPTY, run.digest)))
    return rows


@given(logs(), st.integers(1, 5), st.integers(1, 5))
def test_the_source_read_again_agrees_with_what_was_journalled(log: Log, first: int, second: int) -> None:
    rows = rows_of(outgoing(log, first))
    digests = RowDigests([row[0] for row in rows], [row[1] for row in rows], SOURCE)
    for batch in outgoing(log, second):
        digests.take(batch)
    assert digests.agree([row[2] for row in rows]) == [True] * len(rows)
    assert digests.outside == []


@given(logs(), st.integers(1, 5))
def test_the_target_whose_batches_span_several_rows_agrees_too(log: Log, count: int) -> None:
    batches = outgoing(log, count)
    rows = rows_of(batches)
    starts, at = [], 100
    for row in rows:
        starts.append(at)
        at += row[1]
    digests = RowDigests(starts, [row[1] for row in rows], SOURCE)
    at = 100
    for batch in batches:
        digests.take(stored(batch, at))
        at += batch.record_count
    assert digests.agree([row[2] for row in rows]) == [True] * len(rows)


@given(logs(), st.data())
def test_a_row_that_is_not_known_is_told_as_outside(log: Log, data: st.DataObject) -> None:
    batches = outgoing(log, 3)
    rows = rows_of(batches)
    if not rows:
        return
    left_out = data.draw(st.integers(0, len(rows) - 1))
    known = [row for number, row in enumerate(rows) if number != left_out]
    digests = RowDigests([row[0] for row in known], [row[1] for row in known], SOURCE)
    for batch in batches:
        digests.take(batch)
    start, count, _ = rows[left_out]
    assert digests.outside == [Span(start, start + count)]
    assert digests.agree([row[2] for row in known]) == [True] * len(known)


def stored(batch: OutgoingBatch, base_offset: int) -> OutgoingBatch:
    """The batch as a reader of the target selects it: whole, at its offsets there."""
    data = memoryview(b"".join(bytes(part) for part in restamped(batch, base_offset)))
    found = select(
        data,
        source=SOURCE,
        start=base_offset,
        aborted=AbortedTransactions(SOURCE, None),
        bound=base_offset + batch.record_count,
        max_batch_bytes=2**31 - 1,
    )
    (one,) = found.batches
    return one


def restamped(batch: OutgoingBatch, base_offset: int) -> tuple[bytes, bytes]:
    header, body = stamp_plain(batch)
    return base_offset.to_bytes(8, "big") + header[8:], bytes(body)
