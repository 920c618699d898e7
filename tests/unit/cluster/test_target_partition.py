from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from twinlog.cluster.source_partition import Parcel
from twinlog.cluster.target_partition import TargetPartition
from twinlog.errors import PartitionRefusedError
from twinlog.model.findings import FindingKind
from twinlog.model.offsets import GapKind, PartitionPair
from twinlog.model.segment_builder import gaps_only
from twinlog.wire.outgoing import NO_GAPS, Gaps, OutgoingBatch, Run

PAIR = PartitionPair("orders", UUID(int=1), "nyc.orders", UUID(int=2), 0)


def parcel(start: int, count: int, gaps: Gaps = NO_GAPS, epoch: int = 4) -> Parcel:
    run = Run(start, count, gaps, 100, 0, 0, 7)
    return Parcel(OutgoingBatch(0, 0, 0, count, b"", (run,)), start + count, epoch)


def partition(position: int = 10, target_end: int = 50, expected: int = 51) -> TargetPartition:
    return TargetPartition(PAIR, position, 3, target_end, 20, expected, leader=0)


def spans(state: TargetPartition) -> list[tuple[int, int, int]]:
    return [(one.source_start, one.target_start, one.count) for one in state.segments()]


def test_what_lands_where_it_is_expected_raises_no_suspicion() -> None:
    state = partition()
    for start, base in ((10, 51), (15, 56)):
        state.sent()
        state.acknowledge(parcel(start, 5), base, "lon")
    assert spans(state) == [(10, 51, 10)]
    state.committed()
    # Our own marker took 61.
    state.sent()
    state.acknowledge(parcel(20, 5), 62, "lon")
    assert state.suspicion is None
    position = state.new_position()
    assert (position.offset, position.leader_epoch, position.target_end) == (25, 4, 67)
    # A batch that straddled what was seen brought it further.
    assert position.seen_end == 25


def test_a_jump_inside_a_transaction_is_suspected() -> None:
    state = partition()
    state.acknowledge(parcel(10, 5), 51, "lon")
    state.acknowledge(parcel(15, 5), 59, "lon")
    state.acknowledge(parcel(20, 5), 70, "lon")
    assert state.suspicion is not None
    assert (state.suspicion.start, state.suspicion.end) == (56, 70)
    assert spans(state) == [(10, 51, 5), (15, 59, 5), (20, 70, 5)]


def test_a_transaction_that_wrote_nothing_here_leaves_no_marker() -> None:
    state = partition()
    state.pass_over(Parcel(None, 14, 5, Gaps(control=4)))
    assert spans(state) == [(14, 50, 0)]
    state.committed()
    assert (state.expected, state.new_position().offset, state.new_position().leader_epoch) == (51, 14, 5)


def test_gaps_are_carried_to_the_next_record() -> None:
    state = partition()
    state.pass_over(Parcel(None, 12, 3, Gaps(aborted=2)))
    state.acknowledge(parcel(14, 1, Gaps(aborted=1, compacted=1)), 51, "lon")
    (segment,) = state.segments()
    assert segment.gaps == {GapKind.ABORTED: 3, GapKind.COMPACTED: 1}
    assert segment.span_start == 10
    assert state.new_position().seen_end == 20


def test_the_last_word_on_an_earlier_source_topic_is_said_once() -> None:
    state = partition()
    state.closing = gaps_only(replace(PAIR, source_topic_id=UUID(int=9)), {GapKind.RECREATED: 4}, 12, 50)
    state.acknowledge(parcel(10, 5), 51, "lon")
    assert spans(state) == [(12, 50, 0), (10, 51, 5)]
    state.acknowledge(parcel(15, 5), 57, "lon")
    assert spans(state) == [(15, 57, 5)]


def test_a_log_that_went_back_is_not_the_one_we_knew() -> None:
    with pytest.raises(PartitionRefusedError, match="took a record at offset 3, below 50") as refused:
        partition().acknowledge(parcel(10, 5), 3, "lon")
    assert refused.value.kind == FindingKind.TARGET_REPLACED
