from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.errors import JournalFormatError
from twinlog.model.offsets import GapKind, JournalEntry, PartitionPair, Segment
from twinlog.wire import journal

IDS = st.uuids()
NAMES = st.text(max_size=40)
OFFSETS = st.integers(0, 2**63 - 1)
TIMES = st.integers(-1, 2**62)

PAIRS = st.builds(PartitionPair, NAMES, IDS, NAMES, IDS, st.integers(0, 2**31 - 1))
SEGMENTS = st.builds(
    Segment,
    PAIRS,
    # The gaps lie before the start, so it can't be less than all of them.
    st.integers(len(GapKind) * 2**40, 2**63 - 1),
    OFFSETS,
    OFFSETS,
    TIMES,
    TIMES,
    OFFSETS,
    st.integers(0, 2**64 - 1),
    st.dictionaries(st.sampled_from(GapKind), st.integers(0, 2**40)),
)
ENTRIES = st.builds(JournalEntry, NAMES, NAMES, TIMES, SEGMENTS, OFFSETS, st.integers(-1, 2**31 - 1))


@settings(deadline=None)
@given(ENTRIES)
def test_what_is_encoded_is_decoded(entry: JournalEntry) -> None:
    assert journal.decode(*journal.encode(entry), "here") == entry


@settings(deadline=None)
@given(ENTRIES, st.data())
def test_a_cut_value_is_damage_that_names_the_place(entry: JournalEntry, data: st.DataObject) -> None:
    key, value = journal.encode(entry)
    length = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(JournalFormatError, match="journal-1@7"):
        journal.decode(key, value[:length], "journal-1@7")


def test_a_newer_version_is_not_taken_for_damage() -> None:
    pair = PartitionPair("t", UUID(int=1), "nyc.t", UUID(int=2), 0)
    key, value = journal.encode(JournalEntry("f", "r", 1, Segment(pair, 0, 0, 1, 1, 1, 1, 1)))
    with pytest.raises(JournalFormatError, match="use a newer twinlog"):
        journal.decode(key, b"\x03" + value[1:], "here")


def test_gaps_at_a_ranges_end_are_not_replaced_by_the_records_that_follow() -> None:
    pair = PartitionPair("t", UUID(int=1), "nyc.t", UUID(int=2), 0)
    trailing = Segment(pair, 10, 5, 0, -1, -1, 0, 0, {GapKind.ABORTED: 2})
    following = Segment(pair, 10, 6, 3, 1, 1, 1, 1)
    assert journal.encode_key(trailing) != journal.encode_key(following)
