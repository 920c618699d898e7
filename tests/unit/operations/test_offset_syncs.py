from __future__ import annotations

import pyarrow as pa

from twinlog.ledger.schema import TEXT
from twinlog.model.offsets import TopicPartition
from twinlog.operations.offset_syncs import last_copied
from twinlog.wire.mirror_maker import OffsetSync

SCHEMA = pa.schema(
    [
        ("count", pa.int64()),
        ("source_topic", TEXT),
        ("partition", pa.int32()),
        ("source_start", pa.int64()),
        ("target_start", pa.int64()),
        ("copied_at_ms", pa.int64()),
    ]
)


def rows(*written: tuple[str, int, int, int, int, int]) -> pa.Table:
    """Rows of topic, partition, source start, target start, count and time."""
    names = ("source_topic", "partition", "source_start", "target_start", "count", "copied_at_ms")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in written], schema=SCHEMA)


def test_the_last_record_of_each_partition_on_both_sides() -> None:
    found = last_copied(
        rows(
            ("orders", 1, 30, 40, 5, 2), ("orders", 1, 10, 10, 20, 1), ("orders", 0, 7, 3, 1, 1), ("pay", 1, 0, 0, 2, 1)
        )
    )

    assert sorted(found, key=lambda sync: sync.source) == [
        OffsetSync(TopicPartition("orders", 0), 7, 3),
        OffsetSync(TopicPartition("orders", 1), 34, 44),
        OffsetSync(TopicPartition("pay", 1), 1, 1),
    ]


def test_segments_of_gaps_only_have_no_record() -> None:
    assert last_copied(rows(("orders", 0, 5, 5, 5, 1), ("orders", 0, 20, 11, 0, 1))) == [
        OffsetSync(TopicPartition("orders", 0), 9, 9)
    ]
    assert last_copied(rows(("orders", 0, 20, 11, 0, 1))) == []
    assert last_copied(rows()) == []


def test_a_topic_made_anew_during_the_run_counts_from_its_new_beginning() -> None:
    assert last_copied(rows(("orders", 0, 100, 90, 5, 1), ("orders", 0, 0, 96, 2, 2))) == [
        OffsetSync(TopicPartition("orders", 0), 1, 97)
    ]
