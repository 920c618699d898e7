from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import SettingError
from twinlog.model.blackouts import DAYS, MINUTE_MS, WEEK, Blackouts

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)

HOURS = st.integers(0, 23)
MINUTES = st.sampled_from((0, 15, 59))


@st.composite
def texts(draw: st.DrawFn) -> str:
    start, end = f"{draw(HOURS):02}:{draw(MINUTES):02}", f"{draw(HOURS):02}:{draw(MINUTES):02}"
    first, last = draw(st.sampled_from(DAYS)), draw(st.sampled_from(DAYS))
    form = draw(st.sampled_from(("{s}-{e}", "{a} {s}-{e}", "{a}-{z} {s}-{e}", "{a},{z} {s}-{e}", "{a} {s}-{z} {e}")))
    return form.format(a=first, z=last, s=start, e=end)


def ms(day: str, time: str, week: int = 0) -> int:
    hour, minute = time.split(":")
    at = MONDAY + timedelta(weeks=week, days=DAYS.index(day), hours=int(hour), minutes=int(minute))
    return int(at.timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "day", "time", "ends"),
    [
        ("08:00-18:00", "sun", "09:30", ("sun", "18:00")),
        ("mon-fri 08:00-18:00", "wed", "08:00", ("wed", "18:00")),
        ("mon-fri 08:00-18:00", "sat", "09:00", None),
        ("mon-fri 08:00-18:00", "wed", "18:00", None),
        ("22:00-06:00", "tue", "01:00", ("tue", "06:00")),
        ("sat,mon 00:00-24:00", "sat", "12:00", ("sun", "00:00")),
        ("Fri 18:00-Mon 06:00", "sun", "12:00", ("mon", "06:00", 1)),
        ("fri-mon 10:00-11:00", "mon", "10:30", ("mon", "11:00")),
        ("fri-mon 10:00-11:00", "tue", "10:30", None),
    ],
)
def test_a_window_ends_when_it_says(text: str, day: str, time: str, ends: tuple[str, ...] | None) -> None:
    found = Blackouts.parse([text]).ends_at_ms(ms(day, time))
    assert found == (None if ends is None else ms(ends[0], ends[1], int(ends[2]) if len(ends) > 2 else 0))


def test_windows_that_touch_are_one() -> None:
    both = Blackouts.parse(["08:00-12:00", "12:00-18:00"])
    assert both.ends_at_ms(ms("tue", "09:00")) == ms("tue", "18:00")
    assert both.next_at_ms(ms("tue", "18:00")) == ms("wed", "08:00")


@pytest.mark.parametrize(
    "text", ["", "8-18", "monday 08:00-18:00", "25:00-26:00", "08:60-09:00", "08:00", "24:30-01:00"]
)
def test_what_is_no_window_is_told_with_an_example(text: str) -> None:
    with pytest.raises(SettingError, match="expected times of the day in UTC such as"):
        Blackouts.parse([text])


def test_some_time_must_be_left() -> None:
    with pytest.raises(SettingError, match="no time of the week"):
        Blackouts.parse(["00:00-12:00", "12:00-24:00"])


@given(st.lists(texts(), max_size=4), st.integers(0, 2**41))
def test_stretches_follow_each_other_open_and_closed_in_turn(said: list[str], now_ms: int) -> None:
    try:
        blackouts = Blackouts.parse(said)
    except SettingError:
        return
    found = list(islice(blackouts.stretches(now_ms), 40))
    assert found[0].start_ms == now_ms
    for before, after in pairwise(found):
        assert before.start_ms < before.end_ms == after.start_ms
        assert before.open is not after.open or not said
    # Every minute of a week, by each window alone.
    alone = [Blackouts.parse([one]) for one in said]
    for stretch in found:
        middle = (stretch.start_ms + stretch.end_ms) // 2
        for at_ms in (stretch.start_ms, middle, stretch.end_ms - 1):
            closed = any(one.ends_at_ms(at_ms) is not None for one in alone)
            assert closed is not stretch.open
            assert (blackouts.ends_at_ms(at_ms) is None) is stretch.open


@given(st.lists(texts(), min_size=1, max_size=3), st.integers(0, 2**41))
def test_the_next_window_begins_within_a_week(said: list[str], now_ms: int) -> None:
    try:
        blackouts = Blackouts.parse(said)
    except SettingError:
        return
    begins_ms = blackouts.next_at_ms(now_ms)
    assert begins_ms is not None
    assert now_ms <= begins_ms <= now_ms + WEEK * MINUTE_MS
    assert blackouts.ends_at_ms(begins_ms) is not None
