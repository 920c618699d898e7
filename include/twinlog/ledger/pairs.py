"""The pairs that a ledger has rows of: every partition that was ever mirrored, earlier topics of a name included."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pyarrow as pa

from twinlog.ledger.numbering import dictionary
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import PartitionPair

_COLUMNS = ("source_topic", "source_topic_id", "target_topic", "target_topic_id", "partition")


def recorded_pairs(ledger: Ledger) -> tuple[list[PartitionPair], int]:
    """The pairs, and how many rows the ledger has."""
    rows = ledger.read(_COLUMNS)
    _, source_codes = dictionary(rows.column("source_topic_id"))
    targets, target_codes = dictionary(rows.column("target_topic_id"))
    partitions = rows.column("partition").to_numpy()
    if not rows.num_rows:
        return [], 0
    # One integer a pair, so that millions of rows are sorted by numbers and not by texts.
    width = int(partitions.max()) + 1
    keys = (source_codes.astype(np.int64) * len(targets) + target_codes) * width + partitions
    _, first = np.unique(keys, return_index=True)
    pairs = [
        PartitionPair(
            row["source_topic"],
            UUID(row["source_topic_id"]),
            row["target_topic"],
            UUID(row["target_topic_id"]),
            row["partition"],
        )
        for row in rows.take(pa.array(first)).to_pylist()
    ]
    return pairs, rows.num_rows
