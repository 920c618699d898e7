"""Compaction: many small files become one, rows that run on become one, rows of records long gone are
dropped.

The rules are in `compact_rows`, which takes and gives rows; `compact` applies it in this process, and
`spark_jobs/compact_ledger.py` applies the same function on Spark, to each share of the rows with whole
pairs in it.

Two rows are joined only where both sides run on: same pair and run, no gap counted between them, and the
second begins where the first ends on the source and on the target. A transaction marker on the target
prevents it, so such rows are few; what mostly shrinks is the number of files. A row is dropped when both
logs start after it and it was copied longer ago than `keep_ms`, except each pair's last row and its last
with records: they are what "all that was copied lies before" is answered from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinlog.ledger.chain import Link
from twinlog.ledger.numbering import UNKNOWN, Numbering, dictionary
from twinlog.ledger.schema import GAP_COLUMNS, IN_MEMORY, ORDER, SOURCE_COLUMNS, to_memory
from twinlog.ledger.store import Ledger, LiveFile
from twinlog.model.offsets import PartitionPair

LARGE_BYTES = 128 * 1024 * 1024

RULED_BY = (*ORDER, "target_start", "copied_at_ms")
"""The columns that decide whether a row stays."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Where a pair's two logs start now; past every offset on a side whose topic is gone."""

    pair: PartitionPair
    source_start: int
    target_start: int


@dataclass(frozen=True, slots=True)
class Retention:
    """Rows copied before `copied_before_ms` are dropped once both logs start after them."""

    floors: Sequence[Floor] = ()
    copied_before_ms: int = 0


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did; `file` is None where there was nothing to gain."""

    files: int
    rows_before: int
    rows_after: int
    file: str | None


NOTHING_TO_GAIN = Compacted(0, 0, 0, None)


def choose(files: Sequence[LiveFile], *, everything: bool = False, least: int = 2) -> list[LiveFile]:
    """The consecutive files to merge: the newest ones that are not yet large, or all of them."""
    if everything:
        return list(files)
    start = len(files)
    while start and files[start - 1].bytes < LARGE_BYTES:
        start -= 1
    return list(files[start:]) if len(files) - start >= least else []


def compact(ledger: Ledger, retention: Retention, *, everything: bool = False, least: int = 2) -> Compacted:
    """Merge in this process, which serves ledgers of some million rows; readers may read meanwhile."""
    files, rows = ledger.read_some(lambda listed: choose(listed, everything=everything, least=least))
    if not files:
        return NOTHING_TO_GAIN
    merged = compact_rows(rows, retention)
    if len(files) == 1 and merged.num_rows == rows.num_rows and not everything:
        return NOTHING_TO_GAIN
    link: Link = ledger.replace(files, merged)
    return Compacted(len(files), rows.num_rows, merged.num_rows, link.name)


def compact_rows(table: pa.Table, retention: Retention) -> pa.Table:
    """`table`, which must hold each of its pairs whole, in source order, joined, and without what is to go."""
    table = to_memory(table)
    if table.num_rows == 0:
        return table
    order = _source_order(table)
    table = table.take(pa.array(order))
    table = table.filter(pa.array(_kept(table, retention)))
    return _joined(table)


def kept_rows(table: pa.Table, retention: Retention) -> NDArray[np.bool_]:
    """Which rows of `table`, which must hold each of its pairs whole, stay; needs no columns but RULED_BY."""
    kept = np.ones(table.num_rows, dtype=bool)
    if table.num_rows:
        order = _source_order(table)
        kept[order] = _kept(table.take(pa.array(order)), retention)
    return kept


def _source_order(table: pa.Table) -> NDArray[np.intp]:
    # Least significant first. A row of gaps only comes before the records that start at the same offset.
    names = ("count", "source_start", "partition", "target_topic_id", "source_topic_id")
    return np.lexsort([_codes(table, name) for name in names])


def _codes(table: pa.Table, name: str) -> NDArray[Any]:
    """A column as integers that are equal where its values are."""
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        return dictionary(column)[1]
    return np.asarray(column.to_numpy())


def _starts_pair(table: pa.Table) -> NDArray[np.bool_]:
    begins = np.ones(table.num_rows, dtype=bool)
    begins[1:] = False
    for name in ("source_topic_id", "target_topic_id", "partition"):
        codes = _codes(table, name)
        begins[1:] |= codes[1:] != codes[:-1]
    return begins


def _kept(table: pa.Table, retention: Retention) -> NDArray[np.bool_]:
    """Which of the ordered rows stay."""
    pairs = [floor.pair for floor in retention.floors]
    numbering = Numbering(
        [_pair_key(str(pair.source_topic_id), str(pair.target_topic_id)) for pair in pairs],
        [pair.partition for pair in pairs],
    )
    numbers = numbering.find(_pair_keys(table), _codes(table, "partition"))
    # A pair without a floor is kept: nobody said where its logs start.
    source_floor = np.asarray([floor.source_start for floor in retention.floors] + [-1], dtype=np.int64)[numbers]
    target_floor = np.asarray([floor.target_start for floor in retention.floors] + [-1], dtype=np.int64)[numbers]
    count = _codes(table, "count")
    gone = (
        (numbers != UNKNOWN)
        & (_codes(table, "source_start") + count <= source_floor)
        & (_codes(table, "target_start") + count <= target_floor)
        & (_codes(table, "copied_at_ms") < retention.copied_before_ms)
    )
    group = np.cumsum(_starts_pair(table)) - 1
    rows = np.arange(table.num_rows)
    last = np.full(group[-1] + 1, -1)
    np.maximum.at(last, group, rows)
    last_copied = np.full(group[-1] + 1, -1)
    np.maximum.at(last_copied, group[count > 0], rows[count > 0])
    kept: NDArray[np.bool_] = ~gone | (rows == last[group]) | (rows == last_copied[group])
    return kept


def _pair_key(source_id: str, target_id: str) -> str:
    return f"{source_id} {target_id}"


def _pair_keys(table: pa.Table) -> pa.DictionaryArray:
    sources, source_codes = dictionary(table.column("source_topic_id"))
    targets, target_codes = dictionary(table.column("target_topic_id"))
    combined = source_codes.astype(np.int64) * len(targets) + target_codes
    present, codes = np.unique(combined, return_inverse=True)
    keys = [_pair_key(sources[key // len(targets)], targets[key % len(targets)]) for key in present.tolist()]
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(keys))


def _joined(table: pa.Table) -> pa.Table:
    """The ordered rows, each run of rows that run on as one."""
    column = {name: _codes(table, name) for name in IN_MEMORY.names if name != "digest"}
    gaps = np.sum([column[name] for name in GAP_COLUMNS.values()], axis=0)
    count, source, target = column["count"], column["source_start"], column["target_start"]
    runs_on = np.zeros(table.num_rows, dtype=bool)
    runs_on[1:] = (
        ~_starts_pair(table)[1:]
        & (column["run"][1:] == column["run"][:-1])
        & (gaps[1:] == 0)
        & (count[1:] > 0)
        & (count[:-1] > 0)
        & (source[1:] == source[:-1] + count[:-1])
        & (target[1:] == target[:-1] + count[:-1])
    )
    if not runs_on.any():
        return table
    begins = np.flatnonzero(~runs_on)
    ends = np.append(begins[1:], table.num_rows)
    joined = table.take(pa.array(begins))
    replaced = {
        "count": np.add.reduceat(count, begins),
        "bytes": np.add.reduceat(column["bytes"], begins),
        "last_timestamp_ms": column["last_timestamp_ms"][ends - 1],
        **{name: column[name][ends - 1] for name in ("copied_at_ms", *SOURCE_COLUMNS)},
        "digest": _joined_digests(table.column("digest"), count, begins, ends),
    }
    for name, values in replaced.items():
        joined = joined.set_column(joined.schema.get_field_index(name), IN_MEMORY.field(name), pa.array(values))
    return joined


def _joined_digests(
    digests: pa.ChunkedArray, count: NDArray[np.int64], begins: NDArray[np.intp], ends: NDArray[np.intp]
) -> list[str]:
    texts = digests.to_pylist()
    counts = count.tolist()
    return [
        texts[begin]
        if end - begin == 1
        # A part that was joined before is a list already.
        else " ".join(
            text if ":" in text else f"{counts[begin + place]}:{text}" for place, text in enumerate(texts[begin:end])
        )
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]
