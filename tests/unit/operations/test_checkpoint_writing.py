"""What is committed, what is left out at the last moment, and what the records say afterwards."""

from __future__ import annotations

import pytest

from twinlog.cluster.checkpoint_store import CheckpointNote
from twinlog.cluster.group_offsets import CommitOutcome, Offsets
from twinlog.cluster.refusals import Refusal
from twinlog.model.checkpoints import Checkpoint, Commit, Decision, Reason
from twinlog.model.offsets import TopicPartition
from twinlog.operations.checkpoint_writing import as_seen, commits_of, settled, with_outcome
from twinlog.operations.standings import Standing

TARGET = TopicPartition("nyc.orders", 0)
CHECKPOINT = Checkpoint(100, 50)
OURS = Commit(80)
DENIED = Refusal("GroupAuthorizationFailed", "", not_allowed=True)


def row(there: Commit | None = OURS) -> Standing:
    """A rewind from 80, which is ours, to 50."""
    kept = frozenset[int]() if there is None else frozenset({there.offset})
    decision = Decision(True, True, 50, kept=kept, ours=kept | {50})
    return Standing(
        "billing",
        TopicPartition("orders", 0),
        Commit(100),
        TARGET,
        "copied",
        CHECKPOINT,
        50,
        None,
        None,
        0,
        there,
        decision,
    )


def offsets(commit: Commit | None) -> Offsets:
    return Offsets({"billing": {} if commit is None else {TARGET: commit}})


def ours_after(after: Standing) -> frozenset[int] | None:
    """What is written once the outcome is known; None where the intent says it already."""
    notes = dict(settled([after]))
    return notes[after.place].ours if after.place in notes else None


@pytest.mark.parametrize("there", [None, Commit(80)])
def test_what_is_as_it_was_is_committed_and_confirmed(there: Commit | None) -> None:
    looked = as_seen(row(there), offsets(there))
    after = with_outcome(looked, CommitOutcome())

    assert commits_of([looked]) == {"billing": {TARGET: Commit(50)}}
    assert (after.ready, after.offset, after.reason) == (True, 50, None)
    assert ours_after(after) == (None if there is None else {50})


def test_the_confirmation_is_the_checkpoint_again() -> None:
    after = with_outcome(as_seen(row(), offsets(Commit(80))), CommitOutcome())
    assert list(dict(settled([after])).values()) == [CheckpointNote(CHECKPOINT, frozenset({50}))]


@pytest.mark.parametrize(
    ("now", "reason", "ready"),
    [
        (Commit(90), Reason.OWN_POSITION, True),
        (Commit(80, 3), Reason.OWN_POSITION, True),
        (Commit(20), Reason.MOVED, False),
        (None, Reason.MOVED, False),
    ],
    ids=["further", "read by a consumer", "set back by hand", "deleted"],
)
def test_what_has_changed_since_it_was_looked_at_is_left_alone(now: Commit | None, reason: Reason, ready: bool) -> None:
    looked = as_seen(row(), offsets(now))

    assert commits_of([looked]) == {}
    assert (looked.reason, looked.ready) == (reason, ready)
    assert ours_after(with_outcome(looked, None)) == frozenset()


def test_a_group_that_came_to_life_is_where_it_was() -> None:
    after = with_outcome(row(), CommitOutcome(active=True))
    assert (after.reason, after.offset, after.ready) == (Reason.ACTIVE, 80, True)
    assert ours_after(after) == {80}
    assert not with_outcome(row(None), CommitOutcome(active=True)).ready


@pytest.mark.parametrize("late", [True, False])
def test_what_was_refused_is_not_named_as_ours(late: bool) -> None:
    if late:
        after = with_outcome(row(), CommitOutcome(refused={TARGET: DENIED}))
    else:
        after = as_seen(row(), Offsets(refused={"billing": DENIED}))
    assert (after.reason, after.ready) == (Reason.NOT_AUTHORIZED, False)
    assert ours_after(after) == {80}
