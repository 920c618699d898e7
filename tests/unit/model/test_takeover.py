from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import ConfigurationError
from twinlog.model.acls import Acl, Pattern
from twinlog.model.takeover import (
    GroupLeftOut,
    GroupStart,
    Kind,
    Request,
    Strategy,
    TakeoverPlan,
    TopicLoss,
    reset_csv,
)
from twinlog.model.takeover_progress import Step, Takeover
from twinlog.model.twin_settings import SettingChange

COUNTS = st.integers(0, 2**53)
MAYBE = st.none() | COUNTS
STARTS = st.builds(
    GroupStart, st.text(), st.text(), COUNTS, COUNTS, st.text(), MAYBE, COUNTS, st.booleans(), MAYBE, st.text()
)
LEFT_OUT = st.builds(GroupLeftOut, st.text(), st.text(), st.none() | st.text(), MAYBE, MAYBE)
LOSSES = st.builds(TopicLoss, st.text(), st.text(), MAYBE, st.none() | st.floats(0, 1e9))
CHANGES = st.builds(SettingChange, st.text(), st.text(), st.none() | st.text(), st.none() | st.text())
ACLS = st.builds(Acl, st.text(), st.text(), st.sampled_from(Pattern), st.text(), st.text(), st.text(), st.text())
OVERRIDES = st.lists(st.tuples(st.just("a.*"), st.sampled_from(Strategy)), max_size=2).map(tuple)
REQUESTS = st.builds(Request, st.just(Strategy.TIMESTAMP), OVERRIDES, COUNTS, COUNTS, st.none() | st.just("b"))


@given(
    st.builds(
        TakeoverPlan,
        st.text(),
        st.sampled_from(Kind),
        st.text(),
        st.text(),
        st.text(),
        COUNTS,
        REQUESTS,
        rows=st.lists(STARTS, max_size=3).map(tuple),
        left_out=st.lists(LEFT_OUT, max_size=3).map(tuple),
        losses=st.lists(LOSSES, max_size=3).map(tuple),
        lost_records=MAYBE,
        topics=st.dictionaries(st.text(), st.text(), max_size=2),
        settings=st.lists(CHANGES, max_size=2).map(tuple),
        acls=st.lists(ACLS, max_size=2).map(tuple),
        provisional=st.none() | st.text(),
    )
)
def test_a_plan_is_read_back_as_it_was_kept(plan: TakeoverPlan) -> None:
    assert TakeoverPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_newer_plan_is_not_guessed() -> None:
    with pytest.raises(ConfigurationError, match="version 2"):
        TakeoverPlan.from_json({"version": 2, "id": "x"})


def test_groups_get_the_first_strategy_that_is_theirs() -> None:
    asked = Request(overrides=(("a.*", Strategy.EARLIEST), (".*b", Strategy.LATEST)), groups="[ab]+|c")
    assert [asked.strategy_of(name) for name in ("ab", "bb", "c")] == [
        Strategy.EARLIEST,
        Strategy.LATEST,
        Strategy.TRANSLATED,
    ]
    assert [asked.takes(name) for name in ("ab", "c", "cc")] == [True, True, False]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"groups": "("}, "no pattern"),
        ({"overrides": (("[", Strategy.LATEST),)}, "no pattern"),
        ({"strategy": Strategy.TIMESTAMP}, "needs a time"),
        ({"overrides": (("a", Strategy.TIMESTAMP),)}, "needs a time"),
        ({"at_ms": 5}, "is for the strategy timestamp"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Request(**wrong)  # type: ignore[arg-type]


def test_the_margin_lies_before_the_time() -> None:
    assert Request(Strategy.TIMESTAMP, at_ms=5_000, margin_ms=2_000).from_ms == 3_000
    assert Request(Strategy.TIMESTAMP, at_ms=5_000, margin_ms=9_000).from_ms == 0


def test_names_are_quoted_where_a_csv_needs_it() -> None:
    rows = [GroupStart('odd, "name"', "orders", 0, 5, "copied"), GroupStart("b", "orders", 1, 7, "end")]
    assert reset_csv(rows, with_group=True) == '"odd, ""name""",orders,0,5\nb,orders,1,7\n'
    assert reset_csv(rows[1:], with_group=False) == "orders,1,7\n"


def test_steps_are_whole_one_after_the_other() -> None:
    begun = Takeover("plan", Kind.FAILOVER, 1_000)
    assert not begun.ended
    assert begun.after(Step.GROUPS, 2_000).after(Step.STOP, 3_000).done == Step.GROUPS
    ended = begun.after(Step.ANNOUNCE, 4_000)
    assert (ended.ended, ended.ended_at_ms) == (True, 4_000)
    assert ended.after(Step.ANNOUNCE, 9_000).ended_at_ms == 4_000
    assert Takeover.from_json(json.loads(json.dumps(ended.to_json()))) == ended
