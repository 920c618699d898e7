from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.log_matching import Matching, SourceLog, SourceRecord, Trouble
from twinlog.model.offsets import GapKind


def source(values: list[str], *, start: int = 0, markers: frozenset[int] = frozenset()) -> list[SourceRecord]:
    """Records in order, with a marker before those at these places."""
    records, offset = [], start
    for place, value in enumerate(values):
        marked = place in markers
        offset += marked
        records.append(SourceRecord(offset, value, {GapKind.CONTROL: 1} if marked else {}))
        offset += 1
    return records


def matching(records: list[SourceRecord], *, compacts: bool = False, most: int = 50) -> Matching:
    def read(offset: int) -> Iterator[SourceRecord]:
        return (record for record in records if record.offset >= offset)

    return Matching(SourceLog(read, 0, most), compacts)


def one_to_one(found: Matching, target: list[str]) -> list[tuple[int, int]]:
    """The pairs of offsets up to the end of the target."""
    pairs: list[tuple[int, int]] = []
    for offset, value in enumerate(target):
        match = found.match(offset, value)
        if match is not None:
            pairs = [*([] if match.restarts else pairs), (match.offset, offset)]
    return pairs


LETTERS = [f"record {number}" for number in range(20)]


def test_logs_that_are_alike_are_one_to_one_with_what_lies_between_counted() -> None:
    found = matching(source(LETTERS, start=100, markers=frozenset({3, 7})))

    matches = [found.match(offset, value) for offset, value in enumerate(LETTERS)]

    assert [match.offset for match in matches if match] == [
        record.offset for record in source(LETTERS, start=100, markers=frozenset({3, 7}))
    ]
    assert [place for place, match in enumerate(matches) if match and match.gaps] == [3, 7]
    assert (found.issues, found.older, found.unmatched, found.certain) == ([], 0, 0, True)


def test_what_was_written_twice_leaves_what_follows_its_second_copy() -> None:
    found = matching(source(LETTERS))

    pairs = one_to_one(found, [*LETTERS[:12], *LETTERS[9:]])

    assert pairs == [(place, place + 3) for place in range(9, 20)]
    assert [(issue.trouble, issue.source) for issue in found.issues] == [(Trouble.DOUBLED, 9)]


def test_what_is_missing_and_what_is_somebody_else_s_is_told_with_its_place() -> None:
    found = matching(source(LETTERS))

    pairs = one_to_one(found, [*LETTERS[:5], *LETTERS[7:10], "strange", "stranger", *LETTERS[10:]])

    assert pairs == [(place, place) for place in range(10, 20)]
    assert [(issue.trouble, issue.records) for issue in found.issues] == [(Trouble.MISSING, 2), (Trouble.FOREIGN, 2)]


def test_records_that_the_source_has_no_longer_are_counted_and_in_nobody_s_way() -> None:
    found = matching(source(LETTERS[8:], start=8))

    assert one_to_one(found, LETTERS) == [(place, place) for place in range(8, 20)]
    assert (found.older, found.issues) == (8, [])


def test_a_target_whose_last_records_are_strange_is_told_by_their_number() -> None:
    found = matching(source(LETTERS))
    one_to_one(found, [*LETTERS, "strange", "stranger"])
    assert found.unmatched == 2


def test_what_is_like_everything_else_is_not_certain() -> None:
    found = matching(source(["same"] * 20))
    assert one_to_one(found, ["same"] * 5)
    assert not found.certain


@given(
    st.sets(st.integers(0, 39)),
    st.sets(st.integers(0, 39)),
    st.sets(st.integers(0, 39)),
    st.integers(0, 30),
)
def test_where_cleaners_took_from_both_sides_what_both_have_is_paired_and_every_offset_accounted_for(
    gone_here: set[int], gone_there: set[int], markers: set[int], most: int
) -> None:
    values = [f"record {number}" for number in range(40)]
    every = source(values, start=7, markers=frozenset(markers))
    # The last is never taken.
    here = [record for place, record in enumerate(every) if place not in gone_here - {39}]
    here = [
        SourceRecord(record.offset, record.value, {GapKind.COMPACTED: record.offset - before - 1})
        for before, record in zip([6, *(one.offset for one in here)], here, strict=False)
    ]
    there = {offset: value for offset, value in enumerate(values) if offset not in gone_there - {39}}
    found = matching(here, compacts=True, most=most + 45)

    matches = {offset: found.match(offset, value) for offset, value in there.items()}

    known = {record.value: record.offset for record in here}
    assert {offset: match.offset if match else None for offset, match in matches.items()} == {
        offset: known.get(value) for offset, value in there.items()
    }
    paired = [match for match in matches.values() if match is not None]
    for before, match in pairwise(paired):
        assert not match.restarts
        assert match.offset - sum(match.gaps.values()) == before.offset + 1
    assert found.issues == []


@given(st.lists(st.integers(1, 8), max_size=6), st.integers(1, 10))
def test_whatever_was_written_twice_the_end_is_one_to_one(rewinds: list[int], step: int) -> None:
    values = [f"record {number}" for number in range(60)]
    target: list[str] = []
    at = 0
    for rewind in rewinds:
        target += values[at : at + step]
        at = max(min(at + step, len(values)) - rewind, 0)
    target += values[at:]
    found = matching(source(values))

    pairs = one_to_one(found, target)

    assert pairs[-1] == (59, len(target) - 1)
    assert all(target[there] == values[here] for here, there in pairs)
    assert [there - here for here, there in pairs] == [pairs[0][1] - pairs[0][0]] * len(pairs)
    assert found.unmatched == 0
