"""What is written for a group on the target, and what is left as the group made it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.checkpoints import Checkpoint, Commit, Decision, Reason, Written, decide, is_position_group

WANTED = Checkpoint(100, 50, "words")
EPOCH = 3
OFFSETS = st.integers(0, 20)


def written(*downstreams: int, upstream: int = 0, metadata: str = "", at_ms: int = 1_000) -> Written:
    first, *others = (Checkpoint(upstream, downstream, metadata) for downstream in downstreams)
    found = Written(first, at_ms, frozenset({first.downstream}))
    for other in others:
        found = found.followed_by(other, at_ms)
    return found


def decided(there: Commit | None, known: Written | None, *, active: bool = False, renew_before_ms: int = 0) -> Decision:
    return decide(WANTED, known, there, active=active, renew_before_ms=renew_before_ms)


def test_the_first_checkpoint_is_recorded_and_committed() -> None:
    assert decided(None, None) == Decision(record=True, commit=True, offset=50)


def test_what_is_there_already_is_not_written_again() -> None:
    known = written(50, upstream=100, metadata="words")
    assert decided(Commit(50, metadata="words"), known) == Decision(record=False, commit=False, offset=50)


@pytest.mark.parametrize("there", [10, 80])
def test_ours_follows_the_source_forward_and_back(there: int) -> None:
    assert decided(Commit(there), written(there)) == Decision(record=True, commit=True, offset=50)


def test_ours_is_recognised_after_a_crash_between_record_and_commit() -> None:
    known = written(80, 50).followed_by(WANTED, 1_000)
    assert decided(Commit(80), known) == Decision(record=False, commit=True, offset=50)


@pytest.mark.parametrize(
    "there",
    [Commit(80), Commit(70, EPOCH)],
    ids=["an offset that we never wrote", "one that a reader committed with its epoch"],
)
def test_the_groups_own_newer_position_stays(there: Commit) -> None:
    assert decided(there, written(70)) == Decision(True, False, there.offset, Reason.OWN_POSITION)


def test_the_groups_own_older_position_is_moved_forward() -> None:
    assert decided(Commit(10, EPOCH), written(70)) == Decision(record=True, commit=True, offset=50)


def test_the_groups_own_equal_position_needs_nothing() -> None:
    known = written(50, upstream=100, metadata="words")
    assert decided(Commit(50, EPOCH), known) == Decision(record=False, commit=False, offset=50)


def test_an_active_group_is_recorded_and_not_touched() -> None:
    assert decided(Commit(10), written(10), active=True) == Decision(True, False, 10, Reason.ACTIVE)


def test_old_ones_are_written_again() -> None:
    known = written(50, upstream=100, metadata="words", at_ms=1_000)
    assert decided(Commit(50, metadata="words"), known, renew_before_ms=1_001) == Decision(True, True, 50)


def test_other_words_alone_are_written() -> None:
    known = written(50, upstream=100, metadata="older words")
    assert decided(Commit(50, metadata="older words"), known) == Decision(True, True, 50)


@given(
    downstream=OFFSETS, there=OFFSETS, epoch=st.sampled_from([-1, EPOCH]), known=st.lists(OFFSETS), active=st.booleans()
)
def test_a_commit_that_is_not_ours_never_goes_back(
    downstream: int, there: int, epoch: int, known: list[int], active: bool
) -> None:
    history = written(*known) if known else None
    decision = decide(Checkpoint(0, downstream), history, Commit(there, epoch), active=active, renew_before_ms=2_000)
    ours = epoch == -1 and there in known
    assert not (decision.commit and active)
    if decision.commit and not ours:
        assert downstream > there
    if not decision.commit:
        assert decision.offset == there


@pytest.mark.parametrize(("group", "own"), [("twinlog.nyc->lon", True), ("twinlog.readers", False), ("a->b", False)])
def test_the_groups_that_hold_positions_are_known_by_name(group: str, own: bool) -> None:
    assert is_position_group(group) is own
