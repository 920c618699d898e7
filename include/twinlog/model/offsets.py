"""Offsets of one partition: the half-open span a run copies, and what a run of copied records became.

    source   ...  s   s+1  s+2 | s+3 aborted, s+4 marker |  s+5  s+6
    target   ...  t   t+1  t+2 | t+3 our own marker      |  t+4  t+5
                  \\__ segment _/                            \\_ segment, gaps {aborted: 1, control: 1}

Inside a segment source and target advance one by one, so an offset is translated by an addition. Whatever was
not copied lies between segments and is counted, by kind, on the segment that follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class GapKind(StrEnum):
    """Why offsets of the source have no record on the target."""

    ABORTED = "aborted"
    """Records of a transaction that was rolled back."""
    CONTROL = "control"
    """Transaction markers, which no reader sees."""
    COMPACTED = "compacted"
    """Removed by the source's log cleaner before they were copied."""
    EXPIRED = "expired"
    """Removed by the source's retention before they were copied: lost, and said so."""
    FILTERED = "filtered"
    """Left out by the flow's own rules, or mirrored in from the target in the first place."""
    RECREATED = "recreated"
    """Were ready in a source topic that was deleted, and created again, before they were copied: lost."""
    STRANDED = "stranded"
    """Had not crossed when the target took over, and were left on the source by the failback, as it was told to."""
    SKIPPED = "skipped"
    """Lie before the time or the offset that copying was asked to begin at."""


Gaps = Mapping[GapKind, int]

UNKNOWN = -1
"""Of what an entry does not say, as those of earlier versions."""


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of a topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Span(NamedTuple):
    """Offsets `[start, end)` of a partition that is known from elsewhere."""

    start: int
    end: int


def offsets_among(spans: Iterable[Span], start: int, end: int) -> int:
    """How many of the offsets `[start, end)` are in the spans, which do not overlap."""
    return sum(max(0, min(span.end, end) - max(span.start, start)) for span in spans)


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets `[start, end)` of one source partition that a run is to copy."""

    source: TopicPartition
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"{self.source}: [{self.start}, {self.end}) is not a range of offsets")

    @property
    def offsets(self) -> int:
        """How many offsets it spans; records may be fewer."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PartitionPair:
    """A source partition and its twin, each by name and id: a topic made anew is another topic."""

    source_topic: str
    source_topic_id: UUID
    target_topic: str
    target_topic_id: UUID
    partition: int

    @property
    def source(self) -> TopicPartition:
        return TopicPartition(self.source_topic, self.partition)

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.target_topic, self.partition)


@dataclass(frozen=True, slots=True)
class Segment:
    """`count` consecutive records, copied in one transaction from `source_start` on to `target_start` on.

    The `gaps` are the offsets `[source_start - sum(gaps), source_start)`. A segment with no record carries gaps at
    the end of a range: its `target_start` is where the next record will go at the earliest.
    """

    pair: PartitionPair
    source_start: int
    target_start: int
    count: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    bytes: int
    digest: int
    """Of the records as readers see them, 64 bits; see twinlog.wire.digest."""
    gaps: Gaps = field(default_factory=dict)

    @property
    def span_start(self) -> int:
        """The first source offset that this segment accounts for."""
        return self.source_start - sum(self.gaps.values())

    @property
    def source_end(self) -> int:
        return self.source_start + self.count

    @property
    def target_end(self) -> int:
        return self.target_start + self.count


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A segment as the journal and the ledger keep it: with the flow, the run and the time that made it."""

    flow: str
    run: str
    copied_at_ms: int
    segment: Segment
    source_seen_end: int = UNKNOWN
    """How far the source was seen to be ready, as the position says that was committed with it."""
    source_epoch: int = UNKNOWN
    """The source leader's epoch of the last batch before that position."""
