from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from twinlog.errors import SettingError
from twinlog.model.backfill import Priorities, seconds_until_done
from twinlog.model.blackouts import Blackouts

NAMES = st.lists(st.text("abc.", min_size=1, max_size=4), max_size=20, unique=True)
PATTERNS = st.lists(st.sampled_from(("a.*", "b.*", ".*c", "abc", ".*", "[ab]+")), max_size=4)
WINDOWS = st.lists(
    st.sampled_from(
        ("08:00-18:00", "mon-fri 22:00-06:00", "sat 00:00-24:00", "fri 18:00-sun 12:00", "wed 10:00-10:01")
    ),
    max_size=3,
)


@given(NAMES, PATTERNS)
def test_every_topic_has_the_rank_of_the_first_pattern_that_names_it(names: list[str], patterns: list[str]) -> None:
    ranks = Priorities(patterns).ranks(names)

    def place(name: str) -> int:
        return next((at for at, pattern in enumerate(patterns) if re.fullmatch(pattern, name)), len(patterns))

    ordered = [name for rank in ranks for name in rank]
    assert sorted(ordered) == sorted(names)
    assert [place(name) for name in ordered] == sorted(place(name) for name in names)
    assert all(len({place(name) for name in rank}) == 1 for rank in ranks)


def test_a_wrong_pattern_is_told() -> None:
    with pytest.raises(SettingError, match="is no pattern of topics"):
        Priorities(["a("])


@given(
    st.integers(0, 2**41),
    st.floats(1, 1e15),
    st.floats(1, 1e9),
    st.floats(0, 1e9),
    WINDOWS,
)
def test_when_it_is_done_as_much_was_copied_as_was_there_and_came(
    now_ms: int, left: float, rate: float, gained: float, said: list[str]
) -> None:
    blackouts = Blackouts.parse(said)
    found = seconds_until_done(now_ms, left, rate, gained, blackouts)
    if found is None:
        assert gained > 0
        return
    assume(found < 3e9)
    copied, passed = 0.0, 0.0
    for stretch in blackouts.stretches(now_ms):
        seconds = min((stretch.end_ms - stretch.start_ms) / 1000, found - passed)
        copied += rate * seconds if stretch.open else 0.0
        passed += seconds
        if passed >= found:
            break
    assert copied == pytest.approx(left + gained * found, rel=1e-6, abs=1.0)


def test_what_gains_as_much_as_is_copied_is_never_done() -> None:
    assert seconds_until_done(0, 1.0, 10.0, 10.0, Blackouts()) is None
    assert seconds_until_done(0, 0.0, 10.0, 10.0, Blackouts()) == 0.0
    # In the open half of the day it gets ahead, over the whole of it never.
    assert seconds_until_done(0, 1e9, 10.0, 6.0, Blackouts.parse(["12:00-24:00"])) is None
    assert seconds_until_done(0, 4.0, 10.0, 6.0, Blackouts.parse(["12:00-24:00"])) == 1.0
