"""When a flow's runs start, and so how old its copy may grow: the longest wait between two starts.

Reads what Airflow reads: standard five-field cron expressions (lists, ranges, steps, month and day names;
where both day fields are restricted a day counts that matches either) and the presets, `@continuous` among
them. Time is UTC without daylight saving, as Airflow's default is.

    minute  hour  day of month  month  day of week        "*/15 8-18 * * mon-fri"
"""

from __future__ import annotations

import calendar
import itertools
from dataclasses import dataclass
from datetime import date, timedelta

_PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_MINUTES_A_DAY = 24 * 60
# The Gregorian calendar, weekdays included, repeats after 400 years.
_CYCLE_START, _CYCLE_DAYS = date(2000, 1, 1), 146_097


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: dict[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),
)


def longest_gap_s(schedule: str) -> int | None:
    """The longest time between two starts; 0 for `@continuous`, `None` where nothing starts by itself.

    `ValueError`, with a sentence, where the text is no schedule.
    """
    text = schedule.strip().lower()
    if text == "@continuous":
        return 0
    if text in ("@once", "none", ""):
        return None
    minutes, hours, month_days, months, week_days = _fields(_PRESETS.get(text, text), schedule)
    starts = sorted(hour * 60 + minute for hour in hours[0] for minute in minutes[0])
    within = max((b - a for a, b in itertools.pairwise(starts)), default=0)
    overnight = _longest_day_gap(month_days, months[0], week_days, schedule) * _MINUTES_A_DAY
    return max(within, overnight - starts[-1] + starts[0]) * 60


_Values = tuple[frozenset[int], bool]
"""A field's values, and whether it restricts anything (does not begin with a star)."""


def _fields(text: str, schedule: str) -> list[_Values]:
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(
            f"{schedule!r} is not a schedule: expected five cron fields (minute, hour, day of month, month, "
            f"day of week), @continuous, or a preset such as @hourly"
        )
    return [
        (frozenset(_values(part, field, schedule)), not part.startswith("*"))
        for part, field in zip(parts, _FIELDS, strict=True)
    ]


def _values(part: str, field: _Field, schedule: str) -> set[int]:
    result: set[int] = set()
    for item in part.split(","):
        span, slash, step_text = item.partition("/")
        step = _number(step_text, field, schedule) if slash else 1
        if step < 1:
            raise ValueError(f"{schedule!r}: the {field.name} field's step must be at least 1")
        if span == "*":
            low, high = field.low, field.high
        else:
            first, dash, last = span.partition("-")
            low = _number(first, field, schedule)
            # "5/10" means from 5 on, every 10.
            high = _number(last, field, schedule) if dash else (field.high if slash else low)
        if not field.low <= low <= high <= field.high:
            raise ValueError(
                f"{schedule!r}: {item!r} is not within {field.low} to {field.high}, the {field.name} field's range"
            )
        result.update(range(low, high + 1, step))
    return result


def _number(text: str, field: _Field, schedule: str) -> int:
    if text in field.names:
        return field.names[text]
    if text.isascii() and text.isdigit():
        return int(text)
    raise ValueError(f"{schedule!r}: {text!r} is not a value of the {field.name} field")


def _longest_day_gap(month_days: _Values, months: frozenset[int], week_days: _Values, schedule: str) -> int:
    """The most days from one day with a start to the next, over the whole calendar."""
    sundays_as_zero = frozenset(day % 7 for day in week_days[0])
    if not month_days[1] and month_days[0] == frozenset(range(1, 32)) and len(months) == 12:
        days = [day for day in range(14) if day % 7 in sundays_as_zero]
        return max(b - a for a, b in itertools.pairwise(days))

    def starts_on(day: date) -> bool:
        if day.month not in months:
            return False
        by_month, by_week = day.day in month_days[0], day.isoweekday() % 7 in sundays_as_zero
        both_restrict = month_days[1] and week_days[1]
        return (by_month or by_week) if both_restrict else (by_month and by_week)

    longest, first, previous = 0, None, None
    for number in range(_CYCLE_DAYS):
        if not starts_on(_CYCLE_START + timedelta(number)):
            continue
        if first is None or previous is None:
            first = number
        else:
            longest = max(longest, number - previous)
        previous = number
    if first is None or previous is None:
        raise ValueError(f"{schedule!r} names no day that exists")
    return max(longest, first + _CYCLE_DAYS - previous)
