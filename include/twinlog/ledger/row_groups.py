"""Which parts of a ledger file need to be read, told from its footer alone.

A Parquet file keeps its rows in groups, and of each group the smallest and the largest value of every column. A merged
file is sorted by pair, so its groups hold few pairs each and most of them can be left unread by whoever asks about some
partitions. The bounds only ever say too much: a group that is left out holds no row of those asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from pyarrow import parquet as pq

ROWS_A_GROUP = 32_768
"""Few enough that leaving groups out pays, many enough that footers stay small."""


class Bounds:
    """The smallest and the largest value of each column in one group of rows."""

    def __init__(self, group: pq.RowGroupMetaData) -> None:
        chunks = map(group.column, range(group.num_columns))
        self._statistics = {chunk.path_in_schema: chunk.statistics for chunk in chunks}

    def of(self, column: str) -> tuple[Any, Any] | None:
        """None where the writer of the file did not say."""
        statistics = self._statistics[column]
        if statistics is None or not statistics.has_min_max:
            return None
        return statistics.min, statistics.max

    def may_hold(self, column: str, values: Sequence[Any]) -> bool:
        """Whether one of `values`, which are sorted, can be in the column."""
        bounds = self.of(column)
        if bounds is None:
            return True
        place = bisect_left(values, bounds[0])
        return place < len(values) and bool(values[place] <= bounds[1])


Needed = Callable[[Bounds], bool]
"""Whether a group of rows with these bounds is to be read."""


def all_rows(_: Bounds) -> bool:
    return True


def needed_groups(metadata: pq.FileMetaData, needed: Needed) -> list[int]:
    """The numbers of the file's groups that are to be read."""
    groups = range(metadata.num_row_groups)
    return [number for number in groups if needed(Bounds(metadata.row_group(number)))]
