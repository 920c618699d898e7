"""How far each partition has been copied, by the ledger: for positions that the target has forgotten.

The last segment of a target partition ends where its position was, since both were written in one transaction; what
the position knew of the source stands beside it, and is not known of rows that an earlier version wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from twinlog.ledger.schema import GAP_COLUMNS, SOURCE_COLUMNS
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import UNKNOWN, GapKind, PartitionPair, TopicPartition
from twinlog.model.positions import NO_LEADER_EPOCH, Position

_TARGET = ("target_topic_id", "partition")
_CLOSES = GAP_COLUMNS[GapKind.RECREATED]
_PLACE = ("source_topic_id", "source_start", "target_start", "count")
_COLUMNS = (*_TARGET, *_PLACE, "copied_at_ms", _CLOSES, *SOURCE_COLUMNS)


def last_positions(ledger: Ledger, pairs: Iterable[PartitionPair]) -> dict[TopicPartition, Position]:
    """The positions, by target partition, of those `pairs` whose target topic has been copied to before.

    A position names the source topic that was copied, which may be an earlier one of that name.
    """
    wanted = {(str(pair.target_topic_id), pair.partition): pair.target for pair in pairs}
    if not wanted:
        return {}
    topic_ids = sorted({topic_id for topic_id, _ in wanted})
    rows = ledger.read(_COLUMNS, lambda bounds: bounds.may_hold("target_topic_id", topic_ids))
    rows = rows.filter(pc.is_in(rows.column("target_topic_id").cast(pa.string()), pa.array(topic_ids)))
    return {
        wanted[row["target_topic_id"], row["partition"]]: Position(
            row["source_start"] + row["count"],
            UUID(row["source_topic_id"]),
            UUID(row["target_topic_id"]),
            NO_LEADER_EPOCH if row["source_epoch"] == UNKNOWN else row["source_epoch"],
            row["target_start"] + row["count"],
            seen_end=max(row["source_seen_end"], row["source_start"] + row["count"]),
        )
        for row in _last_of_each(rows).to_pylist()
        if (row["target_topic_id"], row["partition"]) in wanted
    }


def _last_of_each(rows: pa.Table) -> pa.Table:
    """The row of each target partition that was written last: offsets on the target only grow."""
    rows = pa.table(
        [column.cast(pa.string()) if _is_text(column) else column for column in rows.columns], rows.column_names
    )
    ends = pc.add(rows.column("target_start"), rows.column("count"))
    # Of rows that end at one place the later ones hold gaps only, so they are told apart by time and source offset. The
    # last row of a source topic that is gone is written together with the first ones of its successor.
    rows = rows.append_column("target_end", ends).sort_by(
        [
            ("target_end", "ascending"),
            ("copied_at_ms", "ascending"),
            (_CLOSES, "descending"),
            ("source_start", "ascending"),
        ]
    )
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    return rows.take(numbered.group_by(list(_TARGET)).aggregate([("row", "max")]).column("row_max"))


def _is_text(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(column.type))
