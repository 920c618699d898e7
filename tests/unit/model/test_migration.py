from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import FlowStateError, SettingError
from twinlog.model.migration import ALLOWED, Migration, Phase, from_json, named_beginning, to_value
from twinlog.model.offsets import TopicPartition

TEXTS = st.lists(st.text(), max_size=3).map(tuple)
MIGRATIONS = st.builds(
    Migration,
    id=st.text(),
    phase=st.sampled_from(Phase),
    started_at_ms=st.integers(0, 2**53),
    from_ms=st.none() | st.integers(0, 2**53),
    from_offsets=st.lists(st.tuples(st.text(), st.integers(0, 99), st.integers(0, 2**60)), max_size=3).map(tuple),
    priority=TEXTS,
    blackouts=TEXTS,
    adopts=st.none() | st.text(),
    holding=st.booleans(),
    positioned=st.booleans(),
    bytes=st.integers(0, 2**60),
    found=TEXTS,
)


@given(MIGRATIONS)
def test_a_migration_is_read_back_as_it_was_written(migration: Migration) -> None:
    assert from_json(json.loads(to_value(migration))) == migration


def test_what_a_newer_twinlog_added_is_left_alone() -> None:
    assert from_json({"id": "m", "phase": "live", "colour": "blue"}) == Migration("m", Phase.LIVE)


@pytest.mark.parametrize(("before", "after"), list(product(Phase, Phase)))
def test_only_phases_that_may_follow_do(before: Phase, after: Phase) -> None:
    migration = Migration("m", before)
    if after is before or after in ALLOWED[before]:
        assert migration.moved_to(after, "nyc->lon").phase is after
    else:
        with pytest.raises(FlowStateError, match=rf"migration of nyc->lon is at its {before}"):
            migration.moved_to(after, "nyc->lon")


@given(st.lists(st.sampled_from(Phase), max_size=30))
def test_nothing_is_cut_over_that_was_not_proven_and_then_planned(steps: list[Phase]) -> None:
    migration, seen = Migration("m"), [Phase.SETTINGS]
    for step in steps:
        if step in ALLOWED[migration.phase]:
            migration = migration.moved_to(step, "flow")
            seen.append(step)
    for place, phase in enumerate(seen):
        if phase is Phase.CLEAN_UP:
            assert seen[place - 2 : place] == [Phase.CUT_OVER, Phase.SWITCHOVER]
            assert Phase.PROOF in seen[:place]


def test_where_a_partition_begins_is_read_as_people_write_it() -> None:
    assert named_beginning("orders:0:1200") == (TopicPartition("orders", 0), 1200)
    for wrong in ("orders", "orders:0", "orders:a:1", "orders:0:-1", ":0:1", "orders:0:1:2"):
        with pytest.raises(SettingError, match="expected TOPIC:PARTITION:OFFSET"):
            named_beginning(wrong)


def test_what_was_begun_at_named_offsets_is_found_by_partition() -> None:
    assert Migration("m", from_offsets=(("a", 1, 7),)).begins() == {TopicPartition("a", 1): 7}
