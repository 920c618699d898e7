"""The ledger's rows as reconciliation looks at them: by the target partition they went to, in order, as columns.

One target partition may hold what came from several source topics of one name, each made anew after the other was
deleted; their rows follow one another there:

    target   [rows of the earlier source topic ...)[rows of the current one ...)  end
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinlog.ledger.numbering import dictionary
from twinlog.ledger.schema import GAP_COLUMNS, PAIR_COLUMNS
from twinlog.ledger.spans import Ints
from twinlog.model.offsets import GapKind, PartitionPair, Span
from twinlog.model.reconciliation import Account

COLUMNS = (
    *PAIR_COLUMNS,
    "source_topic",
    "target_topic",
    "source_start",
    "target_start",
    "count",
    "first_timestamp_ms",
    "last_timestamp_ms",
    "bytes",
    "digest",
    "copied_at_ms",
    *GAP_COLUMNS.values(),
)


class Part(NamedTuple):
    """A row as it was journalled: one that was joined from several is several parts again."""

    first: int
    """Of its records, counted from the row's first."""
    records: int
    digest: int


@dataclass(frozen=True)
class PairRows:
    """One pair's rows in source order, a column each."""

    pair: PartitionPair
    source_start: Ints
    target_start: Ints
    count: Ints
    gaps: Ints
    filtered: Ints
    """Of the gaps, the offsets that may hold records which are not to be on the target, stranded ones among them."""
    bytes: Ints
    newest_ms: Ints
    """The newest time stamp of a row's records, as nearly as the ledger tells it."""
    copied_at_ms: Ints
    digests: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.source_start)

    @property
    def span_start(self) -> Ints:
        return self.source_start - self.gaps

    @property
    def source_end(self) -> Ints:
        return self.source_start + self.count

    @property
    def target_end(self) -> Ints:
        return self.target_start + self.count

    def parts(self, row: int) -> Iterator[Part]:
        return parts_of(str(self.digests[row]), int(self.count[row]))


def parts_of(digest: str, count: int) -> Iterator[Part]:
    """What a digest column says: one digest, or those of several parts with their numbers of records."""
    if ":" not in digest:
        yield Part(0, count, int(digest, 16))
        return
    first = 0
    for text in digest.split(" "):
        records, _, value = text.partition(":")
        yield Part(first, int(records), int(value, 16))
        first += int(records)


def by_target(rows: pa.Table) -> dict[tuple[UUID, int], list[PairRows]]:
    """All rows, by target topic id and partition; of each, its pairs in the order in which they were copied."""
    grouped: dict[tuple[UUID, int], list[PairRows]] = {}
    for one in _pairs(rows):
        grouped.setdefault((one.pair.target_topic_id, one.pair.partition), []).append(one)
    for members in grouped.values():
        members.sort(key=lambda one: (int(one.target_start[0]), int(one.copied_at_ms[0])))
    return grouped


def _pairs(rows: pa.Table) -> Iterator[PairRows]:
    if not rows.num_rows:
        return
    source_ids, source_codes = dictionary(rows.column("source_topic_id"))
    target_ids, target_codes = dictionary(rows.column("target_topic_id"))
    source_names, source_name_codes = dictionary(rows.column("source_topic"))
    target_names, target_name_codes = dictionary(rows.column("target_topic"))
    column = {name: np.asarray(rows.column(name).to_numpy()) for name in COLUMNS if name not in _TEXTS}
    digests = np.asarray(rows.column("digest").to_numpy(zero_copy_only=False), dtype=object)
    partitions = column["partition"].astype(np.int64)
    width = int(partitions.max()) + 1
    keys = (source_codes.astype(np.int64) * len(target_ids) + target_codes) * width + partitions
    # The count puts a row of gaps only before the records that start there too.
    order = np.lexsort((column["count"], column["source_start"], keys))
    begins = np.flatnonzero(np.concatenate(([True], keys[order][1:] != keys[order][:-1])))
    gaps = np.sum([column[name] for name in GAP_COLUMNS.values()], axis=0)
    newest = np.maximum(column["first_timestamp_ms"], column["last_timestamp_ms"])
    newest = np.where(newest < 0, column["copied_at_ms"], newest)
    for begin, end in zip(begins, [*begins[1:], len(order)], strict=True):
        own = order[begin:end]
        first = own[0]
        pair = PartitionPair(
            source_names[source_name_codes[first]],
            UUID(source_ids[source_codes[first]]),
            target_names[target_name_codes[first]],
            UUID(target_ids[target_codes[first]]),
            int(partitions[first]),
        )
        yield PairRows(
            pair,
            column["source_start"][own],
            column["target_start"][own],
            column["count"][own],
            gaps[own],
            (column[GAP_COLUMNS[GapKind.FILTERED]] + column[GAP_COLUMNS[GapKind.STRANDED]])[own],
            column["bytes"][own],
            newest[own],
            column["copied_at_ms"][own],
            digests[own],
        )


_TEXTS = frozenset({"source_topic_id", "target_topic_id", "source_topic", "target_topic", "digest"})


@dataclass(frozen=True, slots=True)
class Unaccounted:
    """Source offsets that the rows do not account for exactly once."""

    source: Span
    target_offset: int
    """Of the next record that is accounted for."""
    twice: bool


def account_of(pairs: Iterable[PairRows], log_starts: Iterable[int], positions: Iterable[int | None]) -> Account:
    """What became of the source's offsets, from each pair's first row to its position."""
    total: dict[str, int] = dict.fromkeys((column.name for column in fields(Account)), 0)
    for rows, log_start, position in zip(pairs, log_starts, positions, strict=True):
        last = int(rows.source_end[-1])
        end = max(last, position or 0)
        between = rows.span_start[1:] - rows.source_end[:-1]
        lacking = int(between.clip(min=0).sum()) + end - last
        found = list(unaccounted(rows, log_start, position))
        holes = sum(one.source.end - one.source.start for one in found if not one.twice)
        total["offsets"] += end - int(rows.span_start[0])
        total["records"] += int(rows.count.sum())
        total["gaps"] += int(rows.gaps.sum())
        total["holes"] += holes
        total["dropped"] += lacking - holes
        total["twice"] += sum(one.source.end - one.source.start for one in found if one.twice)
    return Account(**total)


def unaccounted(rows: PairRows, source_log_start: int, position: int | None) -> Iterator[Unaccounted]:
    """Holes and overlaps of one pair, from its first row to the position.

    Below the source's log start rows may be missing: those that both logs have long dropped leave the ledger too.
    """
    starts, ends = rows.span_start, rows.source_end
    for place in np.flatnonzero(starts[1:] != ends[:-1]).tolist():
        after, before = int(starts[place + 1]), int(ends[place])
        if after < before:
            yield Unaccounted(Span(after, before), int(rows.target_start[place + 1]), twice=True)
        elif after > source_log_start:
            yield Unaccounted(
                Span(max(before, source_log_start), after), int(rows.target_start[place + 1]), twice=False
            )
    last = int(ends[-1])
    if position is not None and max(last, source_log_start) < position:
        yield Unaccounted(Span(max(last, source_log_start), position), int(rows.target_end[-1]), twice=False)
