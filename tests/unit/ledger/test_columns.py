from __future__ import annotations

from dataclasses import replace
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.histories import history, some_id
from twinlog.errors import JournalFormatError
from twinlog.ledger.columns import RawEntry, to_table
from twinlog.ledger.schema import GAP_COLUMNS, IN_MEMORY
from twinlog.model.offsets import UNKNOWN, GapKind, JournalEntry, PartitionPair, Segment
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
        "source_seen_end": entry.source_seen_end,
        "source_epoch": entry.source_epoch,
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
    entry = JournalEntry("f", "r", 1, Segment(pair, 9, 0, 1, 1, 1, 1, 2**64 - 1, {kind: 4}), 17, 3)
    assert to_table([raw(entry)]).to_pylist() == [row(entry)]


def test_entries_of_the_version_before_say_nothing_of_the_source() -> None:
    pair = PartitionPair("t", UUID(int=1), "nyc.t", UUID(int=2), 0)
    known = JournalEntry("f", "r", 1, Segment(pair, 9, 0, 1, 1, 1, 1, 5, {GapKind.CONTROL: 4}), 17, 3)
    unknown = replace(known, source_seen_end=UNKNOWN, source_epoch=UNKNOWN)
    now = raw(known)
    # All but the 16 bytes behind the head that they share.
    before = now._replace(value=b"\x01" + now.value[1:57] + now.value[73:])
    assert journal.decode(before.key, before.value, "here") == unknown
    assert to_table([before, now]).to_pylist() == [row(unknown), row(known)]
    with pytest.raises(JournalFormatError, match="journal-0@5"):
        to_table([before._replace(value=before.value[:50])])


@pytest.mark.parametrize("length", [0, 10, 58, 74, 80])
def test_a_damaged_entry_is_named(length: int) -> None:
    pair = PartitionPair("t", UUID(int=1), "nyc.t", UUID(int=2), 0)
    whole = raw(JournalEntry("f", "r", 1, Segment(pair, 9, 0, 1, 1, 1, 1, 1, {GapKind.CONTROL: 4})))
    with pytest.raises(JournalFormatError, match="journal-0@5"):
        to_table([whole, whole._replace(value=whole.value[:length])])


def test_nothing_gives_no_rows() -> None:
    assert to_table([]).schema == IN_MEMORY
