from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.offsets import Span
from twinlog.model.reconciliation import Difference, Kind
from twinlog.model.repair import Moved, harms, less_recovered, merged, moved, source_of

spans = st.lists(st.builds(lambda start, size: Span(start, start + size), st.integers(0, 60), st.integers(1, 12)))


def offsets(found: list[Span]) -> set[int]:
    return {offset for span in found for offset in range(span.start, span.end)}


@given(spans)
def test_merged_spans_are_the_same_offsets_in_order_and_apart(given_spans: list[Span]) -> None:
    found = list(merged(given_spans))
    assert offsets(found) == offsets(given_spans)
    assert all(first.end < second.start for first, second in pairwise(found))


@given(spans, st.integers(0, 60), st.integers(1, 30), st.one_of(st.none(), st.integers(0, 100)))
def test_what_is_recovered_is_taken_out_and_nothing_else(
    given_spans: list[Span], start: int, count: int, target: int | None
) -> None:
    recovered = list(merged(given_spans))
    missing = Difference(Kind.MISSING, "orders", 3, start, target, "gone", count)
    found = list(less_recovered(missing, recovered))
    left = [offset for one in found for offset in range(one.source_offset or 0, (one.source_offset or 0) + one.count)]
    assert left == sorted(set(range(start, start + count)) - offsets(recovered))
    for one in found:
        assert (one.kind, one.topic, one.partition, one.detail) == (Kind.MISSING, "orders", 3, "gone")
        shift = (one.source_offset or 0) - start
        assert one.target_offset == (None if target is None else target + shift)


def test_harm_is_told_by_topic_and_what_the_source_has_is_recoverable() -> None:
    found = harms(
        [
            Difference(Kind.MISSING, "orders", 0, 3, 3, count=2),
            Difference(Kind.ALTERED, "orders", 0, 5, 5),
            Difference(Kind.MISPLACED, "orders", 0, 6, 5, count=4),
            Difference(Kind.FOREIGN, "orders", 1, None, 11, count=2),
            Difference(Kind.EXTRA, "payments", 0, None, 7),
            Difference(Kind.SETTING, "payments"),
            Difference(Kind.HOLE, None, 0, 0, 0),
        ]
    )
    assert found["orders"].lacking == {0: [Span(3, 6)]}
    assert found["orders"].lacks == 3
    assert found["orders"].words == "1 altered, 2 foreign, 4 misplaced, 2 missing"
    assert found["payments"].lacks == 0
    assert found.keys() == {"orders", "payments"}


def test_where_a_moved_record_came_from() -> None:
    moves = moved(
        [
            Difference(Kind.MISPLACED, "orders", 0, 14, 13, "-1 offsets", 6),
            Difference(Kind.OUT_OF_ORDER, "orders", 1, 6, 7),
            Difference(Kind.MISPLACED, "payments", 0, 1, 2),
        ],
        "orders",
    )
    assert moves == [Moved(0, 14, 13, 6), Moved(1, 6, 7, 1)]
    assert [source_of(offset, 0, moves) for offset in (12, 13, 18, 19)] == [None, 14, 19, None]
    assert source_of(7, 1, moves) == 6
