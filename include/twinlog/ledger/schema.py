"""The ledger's columns: one row a segment, as plain integers and text that every Parquet reader knows.

The texts repeat endlessly, so in memory they are dictionary-encoded; in the files they are ordinary
strings, and counters are int64 also where fewer bits would do, so that files written by pyarrow and by
Spark are alike. Times are milliseconds since 1970, as Kafka keeps them (-1: the record has none). A digest
is 16 hexadecimal digits (see `twinlog.wire.digest`); on a row that was joined from several, the parts'
digests, each after its number of records (`15:0f...a1 4:77...0c`), since digests of parts do not add up to
a digest of the whole.
"""

from __future__ import annotations

import pyarrow as pa

from twinlog.model.offsets import UNKNOWN, GapKind

TEXT_COLUMNS = ("flow", "run", "source_topic", "source_topic_id", "target_topic", "target_topic_id")

GAP_COLUMNS = {kind: f"gap_{kind.value}" for kind in GapKind}
"""Offsets of the source right before the segment that were not copied, one column a kind."""

SOURCE_COLUMNS = ("source_seen_end", "source_epoch")
"""What the position knew of the source, should the target forget it; files of earlier versions lack them."""

_VALUES = (
    ("partition", pa.int32()),
    ("source_start", pa.int64()),
    ("target_start", pa.int64()),
    ("count", pa.int64()),
    ("first_timestamp_ms", pa.int64()),
    ("last_timestamp_ms", pa.int64()),
    ("bytes", pa.int64()),
    ("digest", pa.string()),
    ("copied_at_ms", pa.int64()),
    *((name, pa.int64()) for name in SOURCE_COLUMNS),
    *((name, pa.int64()) for name in GAP_COLUMNS.values()),
)

TEXT = pa.dictionary(pa.int32(), pa.string())

IN_MEMORY = pa.schema([*((name, TEXT) for name in TEXT_COLUMNS), *_VALUES])
IN_FILES = pa.schema([*((name, pa.string()) for name in TEXT_COLUMNS), *_VALUES])

PAIR_COLUMNS = ("source_topic_id", "target_topic_id", "partition")
"""What a row belongs to: a topic made anew has another id, so its rows are another pair's."""

ORDER = (*PAIR_COLUMNS, "source_start", "count")
"""Source order within a pair; the count puts a segment of gaps only before the records that start there too."""


def to_memory(table: pa.Table) -> pa.Table:
    """`table` with exactly the ledger's columns, texts dictionary-encoded."""
    columns = []
    for field in IN_MEMORY:
        column = table.column(field.name)
        if field.name in SOURCE_COLUMNS and column.null_count:
            column = column.fill_null(UNKNOWN)
        if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=IN_MEMORY).unify_dictionaries()


def to_files(table: pa.Table) -> pa.Table:
    """`table` with exactly the ledger's columns, texts as plain strings."""
    return pa.table([table.column(field.name).cast(field.type) for field in IN_FILES], schema=IN_FILES)
