from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.offsets import GapKind, Gaps, PartitionPair, Segment
from twinlog.model.segment_builder import Copied, SegmentBuilder

PAIR = PartitionPair("orders", UUID(int=1), "nyc.orders", UUID(int=2), 0)


def copied(source: int, target: int, count: int, gaps: Gaps | None = None, digest: int = 7) -> Copied:
    return Copied(source, target, count, source * 10, source * 10 + 9, count * 100, digest, gaps or {})


def built(
    batches: list[Copied], trailing: Gaps | None = None, source_end: int = 0, target_end: int = 0
) -> list[Segment]:
    builder = SegmentBuilder(PAIR, lambda before, piece: before * 31 + piece)
    for batch in batches:
        builder.add(batch)
    return list(builder.finish(trailing or {}, source_end, target_end))


def spans(segments: list[Segment]) -> list[tuple[int, int, int]]:
    return [(one.source_start, one.target_start, one.count) for one in segments]


def test_a_segment_runs_on_while_both_sides_do() -> None:
    (segment,) = built([copied(10, 40, 10, digest=1), copied(20, 50, 5, digest=2)])
    assert (segment.source_start, segment.target_start, segment.count, segment.bytes) == (10, 40, 15, 1500)
    assert (segment.first_timestamp_ms, segment.last_timestamp_ms) == (100, 209)
    assert segment.digest == 1 * 31 + 2


def test_a_gap_on_the_source_begins_a_new_one() -> None:
    segments = built([copied(10, 40, 10), copied(22, 50, 4, {GapKind.CONTROL: 1, GapKind.ABORTED: 1})])
    assert spans(segments) == [(10, 40, 10), (22, 50, 4)]
    assert segments[1].gaps == {GapKind.CONTROL: 1, GapKind.ABORTED: 1}
    assert segments[1].span_start == segments[0].source_end


def test_a_jump_on_the_target_begins_a_new_one() -> None:
    assert spans(built([copied(10, 40, 10), copied(20, 51, 4)])) == [(10, 40, 10), (20, 51, 4)]


def test_offsets_passed_over_at_the_end_have_a_segment_without_records() -> None:
    segments = built([copied(10, 40, 5)], {GapKind.CONTROL: 2}, source_end=17, target_end=45)
    assert spans(segments) == [(10, 40, 5), (17, 45, 0)]
    assert segments[1].span_start == 15
    assert built([], {}) == []


def test_a_finished_builder_begins_anew() -> None:
    builder = SegmentBuilder(PAIR, lambda _, piece: piece)
    builder.add(copied(10, 40, 5))
    assert spans(list(builder.finish({}, 15, 45))) == [(10, 40, 5)]
    builder.add(copied(15, 46, 5))
    assert spans(list(builder.finish({}, 20, 51))) == [(15, 46, 5)]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 3)), max_size=40), st.integers(0, 5))
def test_every_offset_is_accounted_for_once(batches: list[tuple[int, int, int]], trailing: int) -> None:
    source, target, feed, mapping = 100, 1_000, [], {}
    for count, gap, jump in batches:
        source, target = source + gap, target + jump
        feed.append(copied(source, target, count, {GapKind.COMPACTED: gap}))
        mapping.update({source + one: target + one for one in range(count)})
        source, target = source + count, target + count
    segments = built(feed, {GapKind.CONTROL: trailing}, source + trailing, target)
    assert {
        one.source_start + step: one.target_start + step for one in segments for step in range(one.count)
    } == mapping
    reached = 100
    for segment in segments:
        assert segment.span_start == reached
        reached = segment.source_end
    assert reached == source + trailing
