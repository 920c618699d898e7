"""What leaves this package for the copier: batches to send, and the source offsets that their records had.

    source   10 11 12 13 14 15 16 17 18 19
              r  r  C  r  r  a  a  .  r  r       r record   C control   a aborted   . removed by compaction
             [run 1]  [run 2]           [run 3]
              gaps 0   control 1         aborted 2, compacted 1

Always: a run's records are consecutive on both sides, and the offsets of runs and of the gaps before them
add up to the span they came from, without exception.
"""

from __future__ import annotations

from typing import NamedTuple

from twinlog.wire.header import HEADER_BYTES


class Gaps(NamedTuple):
    """Source offsets that are not copied, counted by the reason."""

    aborted: int = 0
    control: int = 0
    compacted: int = 0
    filtered: int = 0
    """Mirrored in from the target in the first place; only a reader that passes over them counts these."""

    @property
    def total(self) -> int:
        return self.aborted + self.control + self.compacted + self.filtered

    def plus(self, other: Gaps) -> Gaps:
        return Gaps(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


NO_GAPS = Gaps()


class Run(NamedTuple):
    """Records of one outgoing batch whose source offsets have no hole: what segments are made of."""

    source_start: int
    record_count: int
    gaps: Gaps
    """What lies between the run before and this one."""
    size_bytes: int
    """Its part of the outgoing batch; over all runs of a batch these add up to the batch's size."""
    first_timestamp_ms: int
    max_timestamp_ms: int
    digest: int
    """See `digest`."""

    @property
    def source_end(self) -> int:
        return self.source_start + self.record_count


class OutgoingBatch(NamedTuple):
    """A batch of format 2, dense and CreateTime, which lacks only what the writer gives it (`restamp`)."""

    codec: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    record_count: int
    body: memoryview | bytes
    runs: tuple[Run, ...]
    """One, except where compaction left holes; never empty."""

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + len(self.body)
