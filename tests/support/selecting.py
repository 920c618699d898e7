"""Selecting from record bytes and reading back what would be produced, with kafka-python as the reader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from support.record_bytes import SOURCE, kafka_python_records
from twinlog.wire.aborted import AbortedTransaction, AbortedTransactions
from twinlog.wire.outgoing import NO_GAPS, Gaps, OutgoingBatch
from twinlog.wire.restamp import restamp
from twinlog.wire.selection import Selection, select


def selecting(
    data: bytes, start: int = 0, aborted: Iterable[AbortedTransaction] | None = None, **options: Any
) -> Selection:
    """`select` with the defaults that most tests want."""
    options = {"bound": 2**62, "max_batch_bytes": 1 << 20} | options
    return select(memoryview(data), source=SOURCE, start=start, aborted=AbortedTransactions(SOURCE, aborted), **options)


def produced(batch: OutgoingBatch) -> bytes:
    """The batch as it would stand in a Produce request."""
    return b"".join(restamp(batch, producer_id=4000, producer_epoch=2, base_sequence=0))


def copied(selection: Selection) -> list[tuple[int, int | None, bytes | None, bytes | None, list[Any]]]:
    """(source offset, timestamp, key, value, headers) of all records to be produced, as kafka-python reads them."""
    found = []
    for batch in selection.batches:
        source_offsets = [offset for run in batch.runs for offset in range(run.source_start, run.source_end)]
        records = kafka_python_records(produced(batch))
        assert [record[0] for record in records] == list(range(batch.record_count))
        found += [(offset, *record[1:]) for offset, record in zip(source_offsets, records, strict=True)]
    return found


def all_gaps(selection: Selection) -> Gaps:
    """Gaps of all runs and the trailing ones."""
    total = NO_GAPS
    for batch in selection.batches:
        for run in batch.runs:
            total = total.plus(run.gaps)
    return total.plus(selection.trailing)


def assert_adds_up(selection: Selection, start: int, carried: Gaps = NO_GAPS) -> None:
    """Every offset from the start to the end is in a run or in a gap."""
    records = sum(run.record_count for batch in selection.batches for run in batch.runs)
    assert records + all_gaps(selection).total == selection.end - start + carried.total
    for batch in selection.batches:
        assert batch.record_count == sum(run.record_count for run in batch.runs)
        assert batch.size_bytes == sum(run.size_bytes for run in batch.runs)
