"""Names the partitions that are copied from their beginning although they were copied before.

With a deleted topic the broker forgets its positions, so a twin that was deleted, and perhaps made again, looks like
one that was never filled. The ledger remembers: it has rows of the same source topic with another twin's id.
"""

from __future__ import annotations

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
import pyarrow.compute as pc  # noqa: TID253

from twinlog.ledger.store import Ledger
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.offsets import PartitionPair
from twinlog.model.plan import Partitions

_TEXTS = ("source_topic_id", "target_topic_id")
_COLUMNS = (*_TEXTS, "partition")


def started_anew(ledger: Ledger, found: Partitions) -> list[Finding]:
    """A finding for each partition without a position whose source topic was mirrored to an earlier twin."""
    begun = {
        (str(pair.source_topic_id), pair.partition): pair
        for pair, position, end in zip(found.pairs, found.positions, found.last_stable, strict=True)
        # A source partition that was never written to was never copied either.
        if position is None and end > 0
    }
    if not begun:
        return []
    topic_ids = sorted({topic_id for topic_id, _ in begun})
    rows = ledger.read(_COLUMNS, lambda bounds: bounds.may_hold("source_topic_id", topic_ids))
    rows = rows.filter(pc.is_in(rows.column("source_topic_id").cast(pa.string()), pa.array(topic_ids)))
    for name in _TEXTS:
        rows = rows.set_column(rows.column_names.index(name), name, rows.column(name).cast(pa.string()))
    replaced = {
        (row["source_topic_id"], row["partition"])
        for row in rows.group_by(list(_COLUMNS)).aggregate([]).to_pylist()
        if (pair := begun.get((row["source_topic_id"], row["partition"]))) is not None
        and str(pair.target_topic_id) != row["target_topic_id"]
    }
    return [_finding(begun[key]) for key in sorted(replaced)]


def _finding(pair: PartitionPair) -> Finding:
    return Finding(
        FindingKind.TARGET_REPLACED,
        pair.source,
        0,
        f"{pair.target}: the topic was deleted since it was last copied to; the new one is filled from the source's "
        "beginning",
    )
