"""The longest wait between two starts of a schedule."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.schedule import longest_gap_s

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [
        ("@continuous", 0),
        ("* * * * *", MINUTE),
        ("*/5 * * * *", 5 * MINUTE),
        # Steps that do not divide the hour: 0, 7, ... 56, then 0 again.
        ("*/7 * * * *", 7 * MINUTE),
        ("*/45 * * * *", 45 * MINUTE),
        ("5/20 * * * *", 20 * MINUTE),
        ("0,10 * * * *", 50 * MINUTE),
        ("0 * * * *", HOUR),
        ("@hourly", HOUR),
        ("30 */6 * * *", 6 * HOUR),
        ("@daily", DAY),
        ("@midnight", DAY),
        ("*/15 8-18 * * *", 13 * HOUR + 15 * MINUTE),
        ("* 8-17 * * mon-fri", 2 * DAY + 14 * HOUR + MINUTE),
        ("0 0 * * 0", 7 * DAY),
        ("0 0 * * 7", 7 * DAY),
        ("@weekly", 7 * DAY),
        ("@monthly", 31 * DAY),
        ("@quarterly", 92 * DAY),
        ("@yearly", 366 * DAY),
        # Both day fields restrict: either will do, so never more than a week.
        ("0 0 1 * sun", 7 * DAY),
        # A leap day, the eight years around 2100 included.
        ("0 0 29 2 *", (8 * 365 + 1) * DAY),
        ("0 0 1 JAN *", 366 * DAY),
    ],
)
def test_longest_gap(schedule: str, seconds: int) -> None:
    assert longest_gap_s(schedule) == seconds


@pytest.mark.parametrize("schedule", ["@once", "none", ""])
def test_nothing_starts_by_itself(schedule: str) -> None:
    assert longest_gap_s(schedule) is None


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("* * * *", "expected five cron fields"),
        ("@fortnightly", "expected five cron fields"),
        ("60 * * * *", "'60' is not within 0 to 59, the minute field's range"),
        ("* 24 * * *", "hour field's range"),
        ("* * 0 * *", "day of month field's range"),
        ("9-3 * * * *", "minute field's range"),
        ("*/0 * * * *", "step must be at least 1"),
        ("x * * * *", "'x' is not a value of the minute field"),
        ("1, * * * *", "'' is not a value of the minute field"),
        ("0 0 30 2 *", "names no day that exists"),
    ],
)
def test_wrong_schedules_say_which_field(schedule: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        longest_gap_s(schedule)


@given(st.sets(st.integers(0, 59), min_size=1), st.sets(st.integers(0, 23), min_size=1))
def test_gap_agrees_with_walking_through_two_days(minutes: set[int], hours: set[int]) -> None:
    schedule = f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * *"
    starts = [t for t in range(2 * 1440) if t % 60 in minutes and t // 60 % 24 in hours]
    expected = max((b - a for a, b in itertools.pairwise(starts)), default=0)
    assert longest_gap_s(schedule) == expected * 60
