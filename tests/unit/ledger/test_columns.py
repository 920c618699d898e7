from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.histories import history, some_id
from twinlog.errors import JournalFormatError
from twinlog.ledger.columns import RawEntry, to_table
from twinlog.ledger.schema import GAP_COLUMNS, IN_MEMORY
from twinlog.model.offsets import GapKind, JournalEntry, PartitionPair, Segment
from twinlog.wire import digest, journal


def raw(entry: JournalEntry) -> RawEntry:
    return RawEntry(*journal.encode(entry), "journal", 0, 5)


def row(entry: JournalEntry) -> dict[str, object]:
    segment, pair = entry.segment, entry.segment.pair
    return {
        "flow": entry.flow,
        "run": entry.run,
        "source_topic": pair.source_topic,
        "source_topic_id": str(pair.source_topic_id),
        "target_topic": pair.target_topic,
        "target_topic_id": str(pair.target_topic_id),
        "partition": pair.partition,
        "source_start": segment.source_start,
        "target_start": segment.target_start,
        "count": segment.count,
        "first_timestamp_ms": segment.first_timestamp_ms,
        "last_timestamp_ms": segment.last_timestamp_ms,
        "bytes": segment.bytes,
        "digest": digest.text(segment.digest),
        "copied_at_ms": entry.copied_at_ms,
        **{name: segment.gaps.get(kind, 0) for kind, name in GAP_COLUMNS.items()},
    }


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_columns_say_what_the_journals_own_decoder_says(seed: int) -> None:
    random = Random(seed)
    entries = []
    for number in range(3):
        pair = PartitionPair(f"t{number % 2}", some_id(random), f"nyc.t{number}", some_id(random), number)
        entries += history(random, pair).entries
    table = to_table([raw(entry) for entry in entries])
    assert table.schema == IN_MEMORY
    assert table.to_pylist() == [row(entry) for entry in entries]


@pytest.mark.parametrize("kind", GapKind)
def test_each_kind_of_gap_has_its_column(kind: GapKind) -> None:
    pair = PartitionPair("t", UUID(int=1), "nyc.t", UUID(int=2), 0)
    entry = JournalEntry("f", "r", 1, Segment(pair, 9, 0, 1, 1, 1, 1, 2**64 - 1, {kind: 4}))
    assert to_table([raw(entry)]).to_pylist() == [row(entry)]


@pytest.mark.parametrize("length", [0, 10, 58, 70])
def test_a_damaged_entry_is_named(length: int) -> None:
    pair = PartitionPair("t", UUID(int=1), "nyc.t", UUID(int=2), 0)
    whole = raw(JournalEntry("f", "r", 1, Segment(pair, 9, 0, 1, 1, 1, 1, 1, {GapKind.CONTROL: 4})))
    with pytest.raises(JournalFormatError, match="journal-0@5"):
        to_table([whole, whole._replace(value=whole.value[:length])])


def test_nothing_gives_no_rows() -> None:
    assert to_table([]).schema == IN_MEMORY
