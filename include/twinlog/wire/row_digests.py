"""Digests of the ledger's rows, computed anew from one side's batches as they come, without opening them.

    rows       [10 ........ 20)  [20 .. 24)      [30 ...... 40)
    runs       [10 .. 15)[15 20) [20    24) [26 28) [30 34) . .
                    chained       chained   outside   row 3 lacks [34, 40)

A run that lies inside a row is chained as a whole; one that crosses a row's bounds is opened, since such rows were
digested by their records (see `digest`). What lies in no row is told by its offsets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from twinlog.model.offsets import Span
from twinlog.wire.digest import EMPTY, chain, digest_records
from twinlog.wire.outgoing import OutgoingBatch, Run
from twinlog.wire.outgoing_records import open_outgoing
from twinlog.wire.source import SourcePartition


class RowDigests:
    """One side's digests of some rows, which are in order and do not overlap on that side."""

    def __init__(self, starts: Sequence[int], counts: Sequence[int], source: SourcePartition) -> None:
        self._starts = starts
        self._counts = counts
        self._source = source
        self.digests = [EMPTY] * len(starts)
        self._covered = [0] * len(starts)
        self.outside: list[Span] = []

    def take(self, batch: OutgoingBatch) -> None:
        """The next batch of that side."""
        for run in batch.runs:
            row = bisect_right(self._starts, run.source_start) - 1
            if row >= 0 and run.source_end <= self._starts[row] + self._counts[row]:
                self.digests[row] = chain(self.digests[row], run.digest)
                self._covered[row] += run.record_count
            else:
                self._take_apart(batch, run, max(row, 0))

    def agree(self, expected: Sequence[int]) -> list[bool]:
        """Of each row, whether all its records came and its digest is the one expected."""
        return [
            covered == count and found == wanted
            for covered, count, found, wanted in zip(self._covered, self._counts, self.digests, expected, strict=True)
        ]

    def _take_apart(self, batch: OutgoingBatch, run: Run, row: int) -> None:
        at = run.source_start
        opened = None
        while at < run.source_end and row < len(self._starts):
            start, end = self._starts[row], self._starts[row] + self._counts[row]
            if at < start:
                self._pass(at, min(start, run.source_end))
                at = min(start, run.source_end)
            elif at < end:
                after = min(end, run.source_end)
                opened = open_outgoing(batch, self._source) if opened is None else opened
                part = [record for record in opened if at <= record.offset < after]
                self.digests[row] = chain(self.digests[row], digest_records(part))
                self._covered[row] += len(part)
                at = after
                row += 1
            else:
                row += 1
        if at < run.source_end:
            self._pass(at, run.source_end)

    def _pass(self, start: int, end: int) -> None:
        if self.outside and self.outside[-1].end == start:
            self.outside[-1] = Span(self.outside[-1].start, end)
        else:
            self.outside.append(Span(start, end))
