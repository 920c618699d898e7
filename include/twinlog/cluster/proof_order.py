"""What a task is told to prove, and what it answers. Values all the way down, so that they can be sent to executors.

A block is a stretch of one pair's ledger rows:

    source   [source_from ........................ source_to)     gaps included
    target   [target_from ........................ target_to)     markers, and whatever others wrote, included
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from twinlog.cluster.source_partition import FetchSettings
from twinlog.model.absence import LogRules
from twinlog.model.offsets import PartitionPair, Span
from twinlog.model.reconciliation import Difference, Kind


class Level(StrEnum):
    """How closely a task looks."""

    DIGESTS = "digests"
    """Whole batches by digest; records only where that can't tell."""
    SOURCE_DIGESTS = "source digests"
    """The source's half of that alone, by a task beside the source: only what it answers crosses the distance."""
    RECORDS = "records"
    """Every record."""


class ProofRow(NamedTuple):
    """A ledger row, or a part of one that was joined."""

    span_start: int
    source_start: int
    target_start: int
    records: int
    digest: int
    filtered: int
    """Of the gap before it, offsets that are known to have records that are not copied."""
    newest_ms: int

    @property
    def source_end(self) -> int:
        return self.source_start + self.records

    @property
    def target_end(self) -> int:
        return self.target_start + self.records


@dataclass(frozen=True, slots=True)
class SourceDigests:
    """What a task beside the source has found of a block."""

    agree: tuple[bool, ...]
    outside: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one pair, to be proven together."""

    pair: PartitionPair
    rows: tuple[ProofRow, ...]
    source: Span
    target: Span
    source_log: LogRules
    target_log: LogRules
    source_end: int
    """The source's last stable offset; an earlier end than the rows' tells of a log that was cut."""
    target_end: int
    max_batch_bytes: int
    sole_writer: bool
    digests: SourceDigests | None = None
    """Where the source's half has been done elsewhere."""


@dataclass(frozen=True, slots=True)
class Need:
    """A record that its log's cleaner may have removed: right, if a later record there has its key."""

    side: str
    key: bytes
    offset: int
    """On the side that does not have it."""
    other_offset: int
    otherwise: Difference
    """What it is if there is none."""


@dataclass(frozen=True, slots=True)
class BlockReport:
    """What was found of one block."""

    pair: PartitionPair
    source: Span
    target: Span
    rows: int
    tally: Mapping[Kind, int]
    """Records by verdict."""
    differences: tuple[Difference, ...] = ()
    needs: tuple[Need, ...] = ()
    opened: int = 0
    """Records that were compared one by one."""
    aborted: int = 0
    """Offsets on the target with records of attempts that were rolled back."""
    digests: SourceDigests | None = None


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """Keys of which a later record is wanted on one side, or else a tombstone on the other."""

    pair: PartitionPair
    side: str
    span: Span
    other_span: Span
    keys: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """The last offset of each key that was found."""

    pair: PartitionPair
    side: str
    last: Mapping[bytes, int]
    tombstones: Mapping[bytes, int]
    """On the other side, of those that were not found later on this one."""
    source_bytes: int
    target_bytes: int


@dataclass(frozen=True)
class ProofSettings:
    """What all tasks of a reconciliation share."""

    flow: str
    source: str
    target: str
    level: Level
    now_ms: int
    bytes_per_s: float
    """Of each cluster, for this task; 0 for no limit."""
    fetch: FetchSettings


@dataclass(frozen=True)
class ProofOrder:
    """One task's share; it carries the clusters' resolved settings, so it shows nothing of them when printed."""

    settings: ProofSettings
    blocks: tuple[Block, ...]
    lookups: tuple[KeyLookup, ...]
    source_settings: Mapping[str, str] = field(repr=False)
    target_settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ProofReport:
    """What one order found."""

    blocks: tuple[BlockReport, ...] = ()
    answers: tuple[KeyAnswer, ...] = ()
    source_bytes: int = 0
    """Fetched from the source."""
    target_bytes: int = 0
