"""Whether the ledger's files are all there and whole, and whether they say what the journal says.

The journal on the target is what the ledger was recorded from. What is missing of the ledger is recorded again by the
next recording, so nothing is lost; but that it was missing is told, with the offsets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from twinlog.errors import LedgerError
from twinlog.ledger.chain import Link, Mark
from twinlog.ledger.journal import Journal
from twinlog.ledger.proof_rows import COLUMNS, PairRows, by_target
from twinlog.ledger.record import collect
from twinlog.ledger.schema import IN_MEMORY
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import PartitionPair, Span
from twinlog.model.reconciliation import Difference, Kind
from twinlog.model.repair import merged

_SCHEMA = pa.schema([IN_MEMORY.field(name) for name in COLUMNS])
_EXACT = ("source_id", "target_id", "partition", "source_start", "target_start", "count", "digest", "gaps")


@dataclass(frozen=True)
class LedgerFiles:
    """The ledger's files as they are found, before anything is recorded."""

    rows: pa.Table
    """Of those that can be read."""
    damaged: Mapping[str, str]
    """The files that can't be, with what is wrong with them."""
    stranded: tuple[str, ...]
    """Files that nothing leads to any more: one before them is missing."""
    total: int
    """How far the journal is recorded, in offsets of all its partitions."""


def look_at(ledger: Ledger) -> LedgerFiles:
    """Read every file by itself, so that one that is damaged hides none of the others."""
    files = ledger.files()
    damaged: dict[str, str] = {}
    tables = [_SCHEMA.empty_table()]
    for file in files:
        try:
            # All of the file, so that damage in a column that nothing here asks for is found as well.
            tables.append(ledger.read_files([file]).select(list(COLUMNS)).cast(_SCHEMA))
        except (OSError, LedgerError) as failure:
            damaged[file.link.name] = str(failure).splitlines()[0]
    total = files[-1].link.after.total if files else 0
    links = [link for stored in ledger.folder.files() if (link := Link.parse(stored.name)) is not None]
    stranded = tuple(sorted(link.name for link in links if link.after.total > total))
    return LedgerFiles(pa.concat_tables(tables).unify_dictionaries(), damaged, stranded, total)


def journal_rows(journal: Journal, ends: Mapping[int, int]) -> pa.Table:
    """Everything that the journal still holds, as rows."""
    return collect(journal, Mark(), ends).select(list(COLUMNS))


def lost_rows(files: LedgerFiles, now: pa.Table, why: str) -> Iterator[Difference]:
    """What the ledger did not have when it was looked at and has, or the journal has, now."""
    for pair, offsets in _summed(_minus(_parts(now), _parts(files.rows)), now):
        yield Difference(
            Kind.LEDGER,
            pair.source_topic,
            pair.partition,
            offsets[0],
            offsets[1],
            f"{why}; the journal still has these rows",
            offsets[2],
        )


def unlike_journal(
    ledger: pa.Table, journal: pa.Table, floors: Mapping[PartitionPair, tuple[int, int]]
) -> Iterator[Difference]:
    """Rows that only one of the two has, where either log still holds their records; `floors` are the logs' starts."""
    here, there = _parts(ledger), _parts(journal)
    for rows, one, other, said in (
        (
            journal,
            there,
            here,
            "the journal has these rows and the ledger does not; `twinlog ledger rebuild` makes it anew",
        ),
        (ledger, here, there, "the ledger has these rows and the journal does not"),
    ):
        for pair, offsets in _summed(_minus(one, other), rows, floors):
            yield Difference(Kind.LEDGER, pair.source_topic, pair.partition, offsets[0], offsets[1], said, offsets[2])


def gone_from_journal(
    ledger: Iterable[PairRows], journal: pa.Table, floors: Mapping[PartitionPair, tuple[int, int]]
) -> dict[PartitionPair, int]:
    """How many rows of the ledger the journal accounts for no more, though either log still holds their records: a
    ledger that was rebuilt from that journal would not know them."""
    known = {one.pair: list(merged(_spans(one))) for members in by_target(journal).values() for one in members}
    lost: dict[PartitionPair, int] = {}
    for one in ledger:
        floor = floors.get(one.pair)
        if floor is None:
            continue
        held = (one.source_end > floor[0]) | (one.target_end > floor[1])
        gone = [span for span, is_held in zip(_spans(one), held.tolist(), strict=True) if is_held]
        count = sum(not _within(span, known.get(one.pair, [])) for span in gone)
        if count:
            lost[one.pair] = count
    return lost


def _spans(rows: PairRows) -> list[Span]:
    return [Span(*span) for span in zip(rows.span_start.tolist(), rows.source_end.tolist(), strict=True)]


def _within(span: Span, spans: Sequence[Span]) -> bool:
    place = bisect_right(spans, span.start, key=lambda one: one.start) - 1
    return place >= 0 and span.end <= spans[place].end


def _parts(rows: pa.Table) -> pa.Table:
    """The rows as they were journalled, rows that were joined taken apart, in columns that can be compared."""
    columns: dict[str, list[object]] = {name: [] for name in _EXACT}
    for members in by_target(rows).values():
        for one in members:
            _append(columns, one)
    types = [pa.string(), pa.string(), *[pa.int64()] * 4, pa.uint64(), pa.int64()]
    arrays = [pa.array(columns[name], kind) for name, kind in zip(_EXACT, types, strict=True)]
    return pa.table(arrays, names=list(_EXACT))


def _append(columns: dict[str, list[object]], one: PairRows) -> None:
    source_id, target_id = str(one.pair.source_topic_id), str(one.pair.target_topic_id)
    starts, targets, gaps = one.source_start.tolist(), one.target_start.tolist(), one.gaps.tolist()
    for row in range(len(one)):
        for first, records, digest in one.parts(row):
            values = (
                source_id,
                target_id,
                one.pair.partition,
                starts[row] + first,
                targets[row] + first,
                records,
                digest,
                gaps[row] if not first else 0,
            )
            for name, value in zip(_EXACT, values, strict=True):
                columns[name].append(value)


def _minus(rows: pa.Table, others: pa.Table) -> pa.Table:
    return rows.join(others, keys=list(_EXACT), join_type="left anti")


def _summed(
    rows: pa.Table, named: pa.Table, floors: Mapping[PartitionPair, tuple[int, int]] | None = None
) -> Iterator[tuple[PartitionPair, tuple[int, int, int]]]:
    """By pair: the first source and target offset of the rows, and how many rows there are."""
    if not rows.num_rows:
        return
    names = {
        (str(one.pair.source_topic_id), str(one.pair.target_topic_id), one.pair.partition): one.pair
        for members in by_target(named).values()
        for one in members
    }
    found: dict[PartitionPair, list[tuple[int, int]]] = {}
    for row in rows.to_pylist():
        pair = names[row["source_id"], row["target_id"], row["partition"]]
        if floors is not None:
            floor = floors.get(pair)
            ends = row["source_start"] + row["count"], row["target_start"] + row["count"]
            if floor is None or (ends[0] <= floor[0] and ends[1] <= floor[1]):
                continue
        found.setdefault(pair, []).append((row["source_start"] - row["gaps"], row["target_start"]))
    for pair, offsets in found.items():
        first = min(offsets)
        yield pair, (first[0], first[1], len(offsets))
