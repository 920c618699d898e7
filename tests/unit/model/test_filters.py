"""Include and exclude patterns."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.filters import PatternFilter, config_filter, group_filter, literal_names, topic_filter
from twinlog.model.flow import Flow


def test_a_pattern_matches_the_whole_name() -> None:
    names = PatternFilter(["orders", r"prod\..*"], [r".*\.tmp"])
    accepted = [name for name in ("orders", "orders2", "prod.a", "xprod.a", "prod.a.tmp") if names.accepts(name)]
    assert accepted == ["orders", "prod.a"]


def test_an_alternation_stays_inside_its_pattern() -> None:
    assert not PatternFilter(["a|b", "c"], []).accepts("ac")


def test_nothing_included_is_nothing_accepted() -> None:
    assert not PatternFilter([], []).accepts("orders")


def test_defaults_are_mirrormaker_2s() -> None:
    flow = Flow("a", "b")
    assert not topic_filter(flow).accepts("orders.replica")
    assert not group_filter(flow).accepts("console-consumer-1")
    assert group_filter(flow).accepts("billing")
    assert config_filter(flow).accepts("retention.ms")
    assert not config_filter(flow).accepts("min.insync.replicas")


@given(st.lists(st.from_regex(r"[a-z._-]{1,10}", fullmatch=True), min_size=1))
def test_names_are_told_from_patterns(names: list[str]) -> None:
    assert literal_names([re.escape(name) for name in names]) == frozenset(names)
    assert literal_names([*names, "x.*"]) is None
