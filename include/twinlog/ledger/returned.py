"""Which offsets of a flow's *target* were mirrored in: what the other direction must not send back."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinlog.ledger.store import Ledger
from twinlog.model.offsets import Span

_COLUMNS = ("target_topic_id", "partition", "target_start", "count")


def mirrored_in(ledger: Ledger, target_topic_ids: Iterable[str]) -> dict[tuple[str, int], list[Span]]:
    """The spans of these topics, by topic id and partition, in order and as few as they can be."""
    rows = ledger.read(_COLUMNS)
    # Dictionaries can't be sorted by.
    rows = rows.set_column(0, "target_topic_id", rows.column("target_topic_id").cast(pa.string()))
    wanted = pa.array(sorted(set(target_topic_ids)), pa.string())
    ours = pc.is_in(rows.column("target_topic_id"), value_set=wanted)
    rows = rows.filter(pc.and_(ours, pc.greater(rows.column("count"), 0))).sort_by(
        [("target_topic_id", "ascending"), ("partition", "ascending"), ("target_start", "ascending")]
    )
    if not rows.num_rows:
        return {}
    ids = rows.column("target_topic_id").to_numpy(zero_copy_only=False)
    partitions = rows.column("partition").to_numpy()
    starts = rows.column("target_start").to_numpy()
    ends = starts + rows.column("count").to_numpy()
    goes_on = (ids[1:] == ids[:-1]) & (partitions[1:] == partitions[:-1]) & (starts[1:] == ends[:-1])
    first = np.flatnonzero(np.concatenate(([True], ~goes_on)))
    last = np.concatenate((first[1:] - 1, [rows.num_rows - 1]))
    spans: dict[tuple[str, int], list[Span]] = {}
    for begin, end in zip(first, last, strict=True):
        spans.setdefault((str(ids[begin]), int(partitions[begin])), []).append(Span(int(starts[begin]), int(ends[end])))
    return spans
