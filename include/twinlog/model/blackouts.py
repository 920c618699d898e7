"""Times of the week at which nothing is backfilled, in UTC.

    08:00-18:00                every day
    mon-fri 08:00-18:00        on these days; also mon,wed and sat
    22:00-06:00                over midnight: it ends on the next day
    fri 18:00-mon 06:00        from one day to another

A week is a circle of minutes that begins on Monday. Windows that touch are one window; what they leave open is when
copying may go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from twinlog.errors import SettingError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTE_MS = 60_000
DAY = 24 * 60
WEEK = 7 * DAY
_THURSDAY = 3 * DAY
"""The day of the week on which time began."""

_DAY = "|".join(DAYS)
_TIME = r"(\d{1,2}):(\d{2})"
_DAILY = re.compile(rf"(?:((?:{_DAY})(?:[-,](?:{_DAY}))*)\s+)?{_TIME}\s*-\s*{_TIME}")
_ACROSS = re.compile(rf"({_DAY})\s+{_TIME}\s*-\s*({_DAY})\s+{_TIME}")


class Window(NamedTuple):
    """Minutes `[start, end)` of the week; one that ends before it starts goes on into the next week."""

    start: int
    end: int


class Stretch(NamedTuple):
    """Some time in a row that is open, or is not."""

    start_ms: int
    end_ms: int
    open: bool


@dataclass(frozen=True, slots=True)
class Blackouts:
    """All windows, merged, in the order of the week, none over its end."""

    windows: tuple[Window, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Blackouts:
        """SettingError, with a sentence, for a text that is none, or where no time would be left."""
        found = cls(tuple(_merged(window for text in texts for window in _windows(text))))
        if sum(window.end - window.start for window in found.windows) >= WEEK:
            raise SettingError("the blackout windows leave no time of the week to copy in")
        return found

    def ends_at_ms(self, now_ms: int) -> int | None:
        """When the window that `now_ms` lies in ends; None where it lies in none."""
        stretch = next(self.stretches(now_ms))
        return None if stretch.open else stretch.end_ms

    def next_at_ms(self, now_ms: int) -> int | None:
        """When the next window begins, or the one that holds began, which is no later than now; None without any."""
        if not self.windows:
            return None
        stretch = next(self.stretches(now_ms))
        return stretch.end_ms if stretch.open else now_ms

    def stretches(self, now_ms: int) -> Iterator[Stretch]:
        """From now on, without end: open and closed in turn. Without a window, open a week at a time."""
        at_ms = now_ms
        while True:
            monday_ms = at_ms - _since_monday_ms(at_ms)
            for window in self.windows:
                start_ms, end_ms = (monday_ms + minute * MINUTE_MS for minute in window)
                if at_ms < start_ms:
                    yield Stretch(at_ms, start_ms, open=True)
                    at_ms = start_ms
                if at_ms < end_ms:
                    if end_ms == monday_ms + WEEK * MINUTE_MS and self.windows[0].start == 0:
                        end_ms += self.windows[0].end * MINUTE_MS
                    yield Stretch(at_ms, end_ms, open=False)
                    at_ms = end_ms
            first = self.windows[0].start if self.windows else 0
            next_ms = monday_ms + (WEEK + first) * MINUTE_MS
            if at_ms < next_ms:
                yield Stretch(at_ms, next_ms, open=True)
                at_ms = next_ms


def _since_monday_ms(at_ms: int) -> int:
    return (at_ms + _THURSDAY * MINUTE_MS) % (WEEK * MINUTE_MS)


def _windows(text: str) -> Iterator[Window]:
    said = text.strip().lower()
    if across := _ACROSS.fullmatch(said):
        first, hour, minute, last, end_hour, end_minute = across.groups()
        yield Window(
            _at(text, DAYS.index(first), hour, minute), _at(text, DAYS.index(last), end_hour, end_minute) % WEEK
        )
        return
    daily = _DAILY.fullmatch(said)
    if daily is None:
        raise _wrong(text)
    days, *times = daily.groups()
    for day in _days(days):
        start, end = _at(text, day, *times[:2]), _at(text, day, *times[2:])
        yield Window(start, (end + DAY if end <= start else end) % WEEK)


def _days(said: str | None) -> Iterator[int]:
    if said is None:
        yield from range(len(DAYS))
        return
    for part in said.split(","):
        first, *more = (DAYS.index(day) for day in part.split("-"))
        last = more[-1] if more else first
        yield from (day % len(DAYS) for day in range(first, last + 1 if last >= first else last + 1 + len(DAYS)))


def _at(text: str, day: int, hour: str, minute: str) -> int:
    minutes = int(hour) * 60 + int(minute)
    if int(minute) > 59 or minutes > DAY:
        raise _wrong(text)
    return day * DAY + minutes


def _wrong(text: str) -> SettingError:
    return SettingError(
        f'"{text}" is no blackout window: expected times of the day in UTC such as 08:00-18:00 or mon-fri 08:00-18:00, '
        "or fri 18:00-mon 06:00"
    )


def _merged(windows: Iterable[Window]) -> Iterator[Window]:
    """In order, without those that touch, and cut where the week ends."""
    cut: list[Window] = []
    for start, end in windows:
        start %= WEEK  # noqa: PLW2901 - 24:00 on a Sunday
        if start < end:
            cut.append(Window(start, end))
        else:
            cut += [Window(start, WEEK), Window(0, end)]
    open_one: Window | None = None
    for window in sorted(one for one in cut if one.start < one.end):
        if open_one is not None and window.start <= open_one.end:
            open_one = Window(open_one.start, max(open_one.end, window.end))
            continue
        if open_one is not None:
            yield open_one
        open_one = window
    if open_one is not None:
        yield open_one
