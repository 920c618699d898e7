"""Which offsets of a flow's *target* were mirrored in: what the other direction must not send back.

A run of the other direction goes on from its positions, so only what lies beyond them matters: most of a long history
is neither read nor looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinlog.ledger.numbering import UNKNOWN, Numbering
from twinlog.ledger.row_groups import Bounds
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import Span

_COLUMNS = ("target_topic_id", "partition", "target_start", "count")
_SOURCE = "source_topic_id"


class TargetPartition(NamedTuple):
    """A partition of the target, by its topic's id."""

    topic_id: str
    number: int


def mirrored_in(
    ledger: Ledger, beyond: Mapping[TargetPartition, int], came_from: Mapping[TargetPartition, str] | None = None
) -> dict[TargetPartition, list[Span]]:
    """The spans of these partitions that end beyond the offset given for each, in order and as few as they can be.

    With `came_from`, those only that were mirrored from the topic of that id.
    """
    if not beyond:
        return {}
    asked = _Asked(beyond)
    rows = ledger.read(_COLUMNS if came_from is None else (*_COLUMNS, _SOURCE), asked.may_be_in)
    rows = rows.filter(pa.array(asked.among(rows)))
    if came_from is not None:
        rows = rows.filter(pa.array(asked.from_these(rows, came_from)))
    # Dictionaries can't be sorted by.
    rows = rows.set_column(0, "target_topic_id", rows.column("target_topic_id").cast(pa.string())).sort_by(
        [("target_topic_id", "ascending"), ("partition", "ascending"), ("target_start", "ascending")]
    )
    return _spans(rows)


class _Asked:
    """The partitions that are asked about, as columns."""

    def __init__(self, beyond: Mapping[TargetPartition, int]) -> None:
        places = sorted(beyond)
        self._places = places
        self._numbering = Numbering([place.topic_id for place in places], [place.number for place in places])
        self._ids = np.asarray([place.topic_id for place in places])
        self._numbers = np.asarray([place.number for place in places], dtype=np.int64)
        self._offsets = np.asarray([beyond[place] for place in places], dtype=np.int64)

    def may_be_in(self, bounds: Bounds) -> bool:
        """Whether a group of rows can hold one that matters."""
        ids, numbers = bounds.of("target_topic_id"), bounds.of("partition")
        starts, counts = bounds.of("target_start"), bounds.of("count")
        if ids is None or numbers is None or starts is None or counts is None:
            return True
        of_these = slice(np.searchsorted(self._ids, ids[0]), np.searchsorted(self._ids, ids[1], side="right"))
        inside = (self._numbers[of_these] >= numbers[0]) & (self._numbers[of_these] <= numbers[1])
        return bool(np.any(inside & (self._offsets[of_these] < starts[1] + counts[1])))

    def among(self, rows: pa.Table) -> NDArray[np.bool_]:
        """Which of the rows matter."""
        found = self._numbering.find(rows.column("target_topic_id"), rows.column("partition").to_numpy())
        count = rows.column("count").to_numpy()
        ends = rows.column("target_start").to_numpy() + count
        matters: NDArray[np.bool_] = (found != UNKNOWN) & (count > 0) & (ends > self._offsets[found])
        return matters

    def from_these(self, rows: pa.Table, came_from: Mapping[TargetPartition, str]) -> NDArray[np.bool_]:
        """Which of the rows, all of them of the partitions asked for, came from the topics named."""
        found = self._numbering.find(rows.column("target_topic_id"), rows.column("partition").to_numpy())
        wanted = np.asarray([came_from[place] for place in self._places])
        sources = rows.column(_SOURCE).cast(pa.string()).to_numpy(zero_copy_only=False)
        same: NDArray[np.bool_] = wanted[found] == sources.astype(str)
        return same


def _spans(rows: pa.Table) -> dict[TargetPartition, list[Span]]:
    if not rows.num_rows:
        return {}
    ids = rows.column("target_topic_id").to_numpy(zero_copy_only=False)
    partitions = rows.column("partition").to_numpy()
    starts = rows.column("target_start").to_numpy()
    ends = starts + rows.column("count").to_numpy()
    goes_on = (ids[1:] == ids[:-1]) & (partitions[1:] == partitions[:-1]) & (starts[1:] == ends[:-1])
    first = np.flatnonzero(np.concatenate(([True], ~goes_on)))
    last = np.concatenate((first[1:] - 1, [rows.num_rows - 1]))
    spans: dict[TargetPartition, list[Span]] = {}
    for begin, end in zip(first, last, strict=True):
        place = TargetPartition(str(ids[begin]), int(partitions[begin]))
        spans.setdefault(place, []).append(Span(int(starts[begin]), int(ends[end])))
    return spans
