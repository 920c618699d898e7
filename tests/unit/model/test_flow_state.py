from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import FlowStateError
from twinlog.model.acls import Acl, Pattern
from twinlog.model.flow_state import ALLOWED, FlowRecord, Holder, Lease, State, from_records, to_records
from twinlog.model.migration import Migration, Phase
from twinlog.model.takeover import Kind
from twinlog.model.takeover_progress import Takeover

LEASES = st.none() | st.builds(Lease, st.text(), st.text(), st.integers(0, 2**53))
TAKEOVERS = st.none() | st.builds(Takeover, st.text(), st.sampled_from(Kind), st.integers(0), st.integers(0, 5))
MIGRATIONS = st.none() | st.builds(
    Migration, st.text(), st.sampled_from(Phase), from_offsets=st.just((("orders", 1, 7),))
)
RECORDS = st.builds(
    FlowRecord,
    st.sampled_from(State),
    st.integers(0, 1000),
    LEASES,
    st.integers(0, 10**12),
    takeover=TAKEOVERS,
    write_block=st.just((Acl("topic", "orders", Pattern.LITERAL, "User:a", "*", "WRITE", "DENY"),)) | st.just(()),
    migration=MIGRATIONS,
)


@given(RECORDS)
def test_a_record_is_read_back_as_it_was_written(record: FlowRecord) -> None:
    assert from_records(to_records(record), "here") == record


def test_a_flow_that_was_never_run_is_active() -> None:
    assert from_records({}, "here") == FlowRecord(State.ACTIVE, 0, None, 0)


def test_what_a_newer_twinlog_added_is_left_alone() -> None:
    assert from_records({**to_records(FlowRecord(lanes=4)), "colour": b'"blue"'}, "here") == FlowRecord(lanes=4)


@pytest.mark.parametrize(
    "values",
    [{"state": b'"asleep"'}, {"state": b"{"}, {"lanes": b'"many"'}, {"lease": b'{"run": "r"}'}, {"lease": b"7"}],
)
def test_a_state_that_cannot_be_read_is_not_guessed(values: dict[str, bytes]) -> None:
    with pytest.raises(FlowStateError, match=r"cluster lon.*newer twinlog"):
        from_records(values, "cluster lon")


@pytest.mark.parametrize(("before", "after"), list(product(State, State)))
def test_only_changes_that_make_sense_are_made(before: State, after: State) -> None:
    record = FlowRecord(before, lanes=3)
    if after is before or after in ALLOWED[before]:
        assert record.moved_to(after, "nyc->lon") == FlowRecord(after, lanes=3)
    else:
        with pytest.raises(FlowStateError, match=f"nyc->lon is {before} and can't become {after}"):
            record.moved_to(after, "nyc->lon")


def test_of_two_runs_one_gets_the_lease() -> None:
    first, second = Lease("one", "host", 1_000), Lease("two", "host", 2_000)
    held = FlowRecord().leased_by(first, now_ms=0)
    assert held is not None
    assert held.leased_by(second, now_ms=999) is None
    assert held.leased_by(first, now_ms=999) == held
    taken_over = held.leased_by(second, now_ms=1_000)
    assert taken_over is not None
    assert taken_over.lease == second


def test_a_lease_is_given_back_only_by_its_holder() -> None:
    held = FlowRecord(lease=Lease("one", "host", 1_000))
    for other in (Holder("two", "host"), Holder("one", "another host")):
        assert held.released_by(other) == held
    assert held.released_by(Holder("one", "host")).lease is None
    assert FlowRecord().released_by(Holder("one", "host")) == FlowRecord()


def test_an_earlier_try_of_the_run_that_holds_the_lease_is_to_stop() -> None:
    held = FlowRecord(lease=Lease("one", "second try", 1_000))
    assert held.reason_to_stop(Holder("one", "second try"), "nyc->lon") is None
    assert held.reason_to_stop(Holder("one", "first try"), "nyc->lon") == (
        "the lease of nyc->lon is held by run one of second try, not by run one of first try"
    )
    assert FlowRecord().reason_to_stop(Holder("one", "host"), "nyc->lon") == (
        "the lease of nyc->lon is held by nobody, not by run one of host"
    )
    paused = FlowRecord(State.PAUSED, lease=held.lease)
    assert paused.reason_to_stop(Holder("one", "second try"), "nyc->lon") == "nyc->lon is paused"


def test_lanes_of_an_older_layout_are_noted_until_they_are_fenced() -> None:
    first = FlowRecord().laid_out(4)
    assert (first.lanes, first.retiring_lanes) == (4, 0)
    assert first.laid_out(4) == first
    fewer = first.laid_out(2)
    assert (fewer.lanes, fewer.retiring_lanes) == (2, 4)
    # Nobody has fenced lanes 2 and 3 yet, so they must not be forgotten at the next change.
    more = fewer.laid_out(3)
    assert (more.lanes, more.retiring_lanes) == (3, 4)
    assert more.laid_out(3) == more


@pytest.mark.parametrize("phase", Phase)
def test_while_a_migration_fills_the_target_only_its_own_runs_do_not_wait(phase: Phase) -> None:
    record = FlowRecord(migration=Migration("m", phase))

    waits = record.reason_to_wait("nyc->lon", None)

    assert (waits is not None) == (phase in (Phase.SETTINGS, Phase.BACKFILL))
    assert record.reason_to_wait("nyc->lon", "m") is None
    assert FlowRecord().reason_to_wait("nyc->lon", None) is None
