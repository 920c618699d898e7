from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.acls import Acl, Pattern
from twinlog.model.failback import STEPS, Damage, FailbackProgress, Step, StrandedSpan, damaged, stranded
from twinlog.model.flow_state import FlowRecord, Holder, Lease, State, from_records, to_records
from twinlog.model.offsets import PartitionPair, Span
from twinlog.model.plan import Partitions
from twinlog.model.positions import Position

SOURCE, OTHER, TARGET = UUID(int=1), UUID(int=2), UUID(int=3)


def found(
    position: int | None, start: int, end: int, source: UUID = SOURCE, returned: Sequence[Span] = ()
) -> Partitions:
    pair = PartitionPair("orders", source, "nyc.orders", TARGET, 0)
    kept = None if position is None else Position(position, SOURCE, TARGET, 0, 40, position)
    return Partitions([pair], [kept], [start], [end], [40], [1.0], [returned])


def test_what_lies_beyond_the_position_is_stranded() -> None:
    (span,) = stranded(found(8, 0, 10))
    assert (span.start, span.end, span.offsets, span.expired) == (8, 10, 2, 0)
    assert list(damaged(found(8, 0, 10))) == []
    assert list(stranded(found(10, 0, 10))) == []
    assert list(stranded(found(None, 0, 10))) == [], "it was never mirrored"


def test_what_expired_before_it_crossed_is_counted() -> None:
    (span,) = stranded(found(8, 9, 10))
    assert (span.start, span.end, span.expired) == (9, 10, 1)
    (span,) = stranded(found(8, 12, 12))
    assert (span.start, span.end, span.expired) == (12, 12, 4)


def test_what_came_from_the_target_is_no_stranded_part() -> None:
    (span,) = stranded(found(8, 0, 30, returned=[Span(10, 12), Span(20, 25)]))
    pieces = [(8, 10, False), (10, 12, True), (12, 20, False), (20, 25, True), (25, 30, False)]
    assert [(*piece, came_back) for piece, came_back in span.pieces] == pieces
    assert list(span.up_to(11).pieces) == [(Span(8, 10), False), (Span(10, 11), True)]
    assert list(span.up_to(3).pieces) == []
    (span,) = stranded(found(8, 22, 30, returned=[Span(10, 12), Span(20, 25)]))
    assert span.expired == 10, "of 14 that retention removed, four had come from the target"
    assert list(span.pieces) == [(Span(22, 25), True), (Span(25, 30), False)]


@given(st.lists(st.integers(0, 40), max_size=8, unique=True), st.integers(0, 40), st.integers(0, 40))
def test_pieces_are_the_whole_span_in_order(edges: list[int], start: int, end: int) -> None:
    edges.sort()
    returned = [Span(*both) for both in zip(edges[::2], edges[1::2], strict=False)]
    span = StrandedSpan(PartitionPair("orders", SOURCE, "nyc.orders", TARGET, 0), start, end, 0, tuple(returned))
    seen = [(offset, came_back) for piece, came_back in span.pieces for offset in range(*piece)]
    came = {offset for one in returned for offset in range(*one)}
    assert seen == [(offset, offset in came) for offset in range(start, end)]


def test_a_topic_made_anew_or_cut_is_damaged_and_strands_nothing() -> None:
    (anew,) = damaged(found(8, 0, 10, OTHER))
    assert anew.damage is Damage.RECREATED
    (cut,) = damaged(found(8, 0, 7))
    assert (cut.damage, cut.expected, cut.found) == (
        Damage.TRUNCATED,
        "up to offset 8",
        "the same log up to offset 7",
    )
    assert list(stranded(found(8, 0, 10, OTHER))) == list(stranded(found(8, 0, 7))) == []


def test_progress_goes_step_by_step_and_never_back() -> None:
    progress = FailbackProgress("f1")
    assert progress.left == STEPS
    later = progress.after(Step.SETTLE)
    assert later.left[0] is Step.DELETE
    assert later.after(Step.BEGIN) == later
    assert later.after(Step.HOOKS).left == ()


def test_whoever_had_the_lease_before_does_not_have_it_while_the_flow_fails_back() -> None:
    holder = Holder("r", "o")
    record = FlowRecord(State.FAILED_OVER, lanes=2, lease=Lease("r", "o", 2**60))
    back = record.moved_to(State.FAILING_BACK, "f")
    assert back.reason_to_stop(holder, "f") is not None
    assert back.leased_by(Lease("r", "o", 2**60), 0) is not None
    leased = back.leased_by(Lease("r", "o", 2**60), 0)
    assert leased is not None
    assert leased.moved_to(State.FAILING_BACK, "f").reason_to_stop(holder, "f") is None


def test_the_record_keeps_it() -> None:
    denial = Acl("topic", "nyc.orders", Pattern.LITERAL, "User:alice", "*", "WRITE", "DENY")
    record = FlowRecord(State.FAILING_BACK, lanes=2, failback=FailbackProgress("f1", 3, 0, (denial,)), came_home=True)
    assert from_records(to_records(record), "here") == record
