"""Turns acknowledged batches of one partition, in order, into segments.

    acknowledged   source 10..19 -> target 40   |  source 20..24 -> target 50  |  gaps {control: 1}, source 26..29 -> 55
    segments       [10, 25) -> 40, 15 records                                  |  [26, 30) -> 55, 4 records

A segment runs on while both sides do. A gap on the source, or a jump on the target (a transaction marker, somebody
else's record), begins a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from twinlog.model.offsets import Gaps, PartitionPair, Segment

NO_TIMESTAMP = -1
EMPTY_DIGEST = 0


@dataclass(frozen=True, slots=True)
class Copied:
    """One batch as it was acknowledged by the target."""

    source_start: int
    target_start: int
    count: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    bytes: int
    digest: int
    """Of this batch's records alone."""
    gaps: Gaps
    """Counted offsets right before `source_start`."""


class SegmentBuilder:
    """Collects what one transaction copies to one partition."""

    def __init__(self, pair: PartitionPair, chain_digest: Callable[[int, int], int]) -> None:
        self._pair = pair
        self._chain = chain_digest
        self._done: list[Segment] = []
        self._open: Copied | None = None

    def add(self, copied: Copied) -> None:
        opened = self._open
        if opened is not None and self._runs_on(opened, copied):
            self._open = Copied(
                opened.source_start,
                opened.target_start,
                opened.count + copied.count,
                opened.first_timestamp_ms,
                copied.last_timestamp_ms,
                opened.bytes + copied.bytes,
                self._chain(opened.digest, copied.digest),
                opened.gaps,
            )
            return
        self._close()
        self._open = replace(copied, digest=self._chain(EMPTY_DIGEST, copied.digest))

    def finish(self, trailing: Gaps, source_end: int, target_end: int) -> Iterator[Segment]:
        """The segments, and one with no record for offsets that were passed over at the end."""
        self._close()
        if sum(trailing.values()):
            self._done.append(gaps_only(self._pair, trailing, source_end, target_end))
        yield from self._done
        self._done = []

    @staticmethod
    def _runs_on(opened: Copied, copied: Copied) -> bool:
        return (
            not sum(copied.gaps.values())
            and copied.source_start == opened.source_start + opened.count
            and copied.target_start == opened.target_start + opened.count
        )

    def _close(self) -> None:
        if self._open is None:
            return
        opened, self._open = self._open, None
        self._done.append(
            Segment(
                self._pair,
                opened.source_start,
                opened.target_start,
                opened.count,
                opened.first_timestamp_ms,
                opened.last_timestamp_ms,
                opened.bytes,
                opened.digest,
                _counted(opened.gaps),
            )
        )


def gaps_only(pair: PartitionPair, gaps: Gaps, source_end: int, target_end: int) -> Segment:
    """The segment with no record that accounts for the `gaps` right before `source_end`."""
    return Segment(pair, source_end, target_end, 0, NO_TIMESTAMP, NO_TIMESTAMP, 0, EMPTY_DIGEST, _counted(gaps))


def _counted(gaps: Gaps) -> Gaps:
    return {kind: offsets for kind, offsets in gaps.items() if offsets}
