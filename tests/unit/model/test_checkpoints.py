"""What is written for a group on the target, and what is left as the group made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.model.checkpoints import Checkpoint, Commit, Decision, Reason, Written, decide, is_position_group

WANTED = Checkpoint(100, 50, "words")
EPOCH = 3
OFFSETS = st.integers(0, 6)


def written(
    downstream: int, *ours: int, upstream: int = 0, metadata: str = "", at_ms: int = 1_000, nothing: bool = False
) -> Written:
    """A record; without `ours`, a confirmed one."""
    named = frozenset() if nothing else frozenset(ours or {downstream})
    return Written(Checkpoint(upstream, downstream, metadata), at_ms, named)


def decided(
    there: Commit | None,
    known: Written | None,
    *,
    active: bool = False,
    renew_before_ms: int = 0,
    sync: bool = True,
) -> tuple[bool, bool, int | None, Reason | None]:
    found = decide(WANTED, known, there, active=active, renew_before_ms=renew_before_ms, sync=sync)
    return found.record, found.commit, found.offset, found.reason


def test_the_first_checkpoint_is_recorded_and_committed() -> None:
    assert decide(WANTED, None, None, active=False, renew_before_ms=0) == Decision(
        record=True, commit=True, offset=50, ours=frozenset({50})
    )


def test_what_is_there_already_is_not_written_again() -> None:
    known = written(50, upstream=100, metadata="words")
    assert decided(Commit(50, metadata="words"), known) == (False, False, 50, None)


@pytest.mark.parametrize("there", [10, 80])
def test_ours_follows_the_source_forward_and_back(there: int) -> None:
    found = decide(WANTED, written(there), Commit(there), active=False, renew_before_ms=0)
    assert found == Decision(True, True, 50, None, kept=frozenset({there}), ours=frozenset({there, 50}))


@pytest.mark.parametrize("there", [80, 50], ids=["before the commit", "after the commit"])
def test_ours_is_recognised_after_a_crash(there: int) -> None:
    intent = Written(WANTED, 1_000, frozenset({80, 50}))
    words = "words" if there == 50 else ""
    record, commit, offset, _ = decided(Commit(there, metadata=words), intent)
    assert (record, commit, offset) == (there == 50, there == 80, 50)


def test_what_was_ours_before_is_not_ours_any_more() -> None:
    """Checkpoint 80, a rewind to 50 that is confirmed; the group then reads up to 80 on the target."""
    confirmed = Written(WANTED, 1_000, frozenset({50}))
    assert decided(Commit(80), confirmed) == (True, False, 80, Reason.OWN_POSITION)


@pytest.mark.parametrize("sync", [True, False])
def test_what_is_only_recorded_is_not_ours(sync: bool) -> None:
    found = decide(WANTED, None, None, active=sync, renew_before_ms=0, sync=sync)
    assert (found.record, found.ours) == (True, frozenset())
    assert decided(Commit(80), written(80, nothing=True)) == (True, False, 80, Reason.OWN_POSITION)


@pytest.mark.parametrize(
    "there",
    [Commit(80), Commit(70, EPOCH)],
    ids=["an offset that we never wrote", "one that a reader committed with its epoch"],
)
def test_the_groups_own_newer_position_stays(there: Commit) -> None:
    assert decided(there, written(70)) == (True, False, there.offset, Reason.OWN_POSITION)


def test_the_groups_own_older_position_is_moved_forward() -> None:
    assert decided(Commit(10, EPOCH), written(70)) == (True, True, 50, None)


def test_the_groups_own_equal_position_needs_nothing() -> None:
    known = written(50, upstream=100, metadata="words", nothing=True)
    assert decided(Commit(50, EPOCH), known) == (False, False, 50, None)


def test_an_active_group_is_recorded_and_not_touched() -> None:
    assert decided(Commit(10), written(10), active=True) == (True, False, 10, Reason.ACTIVE)


def test_where_an_active_group_starts_that_has_committed_nothing_is_not_known() -> None:
    assert decided(None, written(10), active=True) == (True, False, None, Reason.ACTIVE)


def test_old_ones_are_written_again() -> None:
    known = written(50, upstream=100, metadata="words", at_ms=1_000)
    assert decided(Commit(50, metadata="words"), known, renew_before_ms=1_001) == (True, True, 50, None)


def test_other_words_alone_are_written() -> None:
    known = written(50, upstream=100, metadata="older words")
    assert decided(Commit(50, metadata="older words"), known) == (True, True, 50, None)


Ends = Literal["well", "after the record", "after the commit"]


@dataclass
class History:
    """A group on the target and our passes over it; who committed last is known here by watching, not by offsets."""

    there: Commit | None = None
    made_by_group: bool = False
    topic: Written | None = None
    left: int | None = None
    """What was there, of ours, when a pass last looked."""
    unconfirmed: int | None = None
    """What it was about to commit then, if it has died since."""

    def group_commits(self, offset: int, epoch: int) -> None:
        """Without an epoch, and exactly where we left it or were about to put it, nobody can tell whose it is."""
        told_apart = epoch != -1 or offset not in {self.left, self.unconfirmed}
        self.there, self.made_by_group = Commit(offset, epoch), told_apart

    def pass_over(self, wanted: int, ends: Ends, *, active: bool) -> None:
        before, checkpoint = self.there, Checkpoint(0, wanted)
        found = decide(checkpoint, self.topic, before, active=active, renew_before_ms=0)
        assert not (found.commit and active)
        if found.record:
            self.topic = Written(checkpoint, 1_000, found.ours)
        self._leave(wanted if found.commit else None)
        if ends == "after the record":
            return
        if found.commit:
            if self.made_by_group and before is not None:
                assert wanted > before.offset, "the group's own position was moved back"
            self.there, self.made_by_group = Commit(wanted), False
        if ends == "after the commit":
            return
        if found.commit:
            self.topic = Written(checkpoint, 1_000, frozenset({wanted}))
        self._leave(None)
        if not active and not self.made_by_group:
            assert self.there is not None
            assert self.there.offset == wanted, "the source was not followed"

    def _leave(self, unconfirmed: int | None) -> None:
        self.left = None if self.made_by_group or self.there is None else self.there.offset
        self.unconfirmed = unconfirmed


EVENTS = st.one_of(
    st.tuples(st.just("group"), OFFSETS, st.sampled_from([-1, -1, EPOCH])),
    st.tuples(
        st.just("pass"),
        OFFSETS,
        st.sampled_from(["well", "well", "after the record", "after the commit"]),
        st.booleans(),
    ),
)


@settings(max_examples=500)
@given(st.lists(EVENTS, max_size=25))
def test_the_groups_own_position_never_goes_back_and_ours_follows_the_source(events: list[Any]) -> None:
    history = History()
    for event in events:
        if event[0] == "group":
            history.group_commits(event[1], event[2])
        else:
            history.pass_over(event[1], event[2], active=event[3])


@pytest.mark.parametrize(("group", "own"), [("twinlog.nyc->lon", True), ("twinlog.readers", False), ("a->b", False)])
def test_the_groups_that_hold_positions_are_known_by_name(group: str, own: bool) -> None:
    assert is_position_group(group) is own
