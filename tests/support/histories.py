"""Random histories of a mirrored partition: what happened on both logs, and the segments it left behind.

A source log of records, aborted records, markers and holes that compaction left, which need not begin at 0,
is copied in transactions of random length; each ends with a marker on the target, and attempts that failed
leave aborted records and a marker there too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from uuid import UUID

import pyarrow as pa

from twinlog.ledger.columns import RawEntry, to_table
from twinlog.model.offsets import GapKind, JournalEntry, PartitionPair, Segment
from twinlog.wire import journal

FLOW = "nyc->lon"


def some_id(random: Random) -> UUID:
    return UUID(int=random.getrandbits(128), version=4)


@dataclass
class History:
    """One pair's past."""

    pair: PartitionPair
    position: int
    target_end: int
    target_start: int = 0
    copied: dict[int, int] = field(default_factory=dict)
    """Source offset to target offset, of every copied record."""
    entries: list[JournalEntry] = field(default_factory=list)

    @property
    def last_copied(self) -> int | None:
        return max(self.copied.values(), default=None)


def history(random: Random, pair: PartitionPair, length: int = 60) -> History:
    """A past of about `length` source offsets, copied from the log's start or later."""
    begin = random.choice((0, 0, random.randrange(1, 20)))
    kinds = [
        random.choices((None, GapKind.ABORTED, GapKind.CONTROL, GapKind.COMPACTED), (8, 1, 1, 1))[0]
        for _ in range(random.randrange(length))
    ]
    past = History(pair, begin, random.choice((0, 0, random.randrange(1, 9))))
    past.target_start = past.target_end
    at = 0
    run = 0
    while at < len(kinds):
        if random.random() < 0.2:
            past.target_end += random.randrange(1, 4)
        if random.random() < 0.3:
            run += 1
        size = random.randrange(1, 12)
        _transaction(past, kinds[at : at + size], f"run-{run}", 1_000 + at)
        at += size
    return past


def _transaction(past: History, kinds: list[GapKind | None], run: str, now_ms: int) -> None:
    gaps: dict[GapKind, int] = {}
    open_: Segment | None = None
    segments = []
    for kind in kinds:
        offset, past.position = past.position, past.position + 1
        if kind is not None:
            if open_ is not None:
                segments.append(open_)
                open_ = None
            gaps[kind] = gaps.get(kind, 0) + 1
            continue
        past.copied[offset] = past.target_end
        if open_ is None:
            open_ = Segment(past.pair, offset, past.target_end, 1, now_ms, now_ms, 10, offset, gaps)
            gaps = {}
        else:
            open_ = Segment(
                past.pair,
                open_.source_start,
                open_.target_start,
                open_.count + 1,
                open_.first_timestamp_ms,
                now_ms,
                open_.bytes + 10,
                open_.digest * 31 + offset,
                open_.gaps,
            )
        past.target_end += 1
    if open_ is not None:
        segments.append(open_)
    if gaps:
        segments.append(Segment(past.pair, past.position, past.target_end, 0, -1, -1, 0, 0, gaps))
    past.target_end += 1
    past.entries += [JournalEntry(FLOW, run, now_ms, segment) for segment in segments]


def rows(entries: list[JournalEntry]) -> pa.Table:
    """Ledger rows of `entries`, by way of the journal's bytes."""
    return to_table([RawEntry(*journal.encode(entry), "journal", 0, number) for number, entry in enumerate(entries)])
