"""In which order a backfill takes its topics, and when it will be done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from twinlog.errors import SettingError
from twinlog.model.blackouts import MINUTE_MS, WEEK, Blackouts

_WEEK_S = WEEK * MINUTE_MS / 1000


class Priorities:
    """Patterns of topics, the most urgent first; as in a flow's `topics`, a pattern means the whole name."""

    def __init__(self, patterns: Sequence[str]) -> None:
        try:
            self._patterns = [re.compile(pattern) for pattern in patterns]
        except re.error as wrong:
            raise SettingError(f'"{wrong.pattern!s}" is no pattern of topics: {wrong}') from wrong

    def ranks(self, topics: Iterable[str]) -> list[list[str]]:
        """The topics of each rank, in order; those that no pattern names come last. A rank without topics is none."""
        found: list[list[str]] = [[] for _ in range(len(self._patterns) + 1)]
        for topic in sorted(topics):
            matching = (rank for rank, pattern in enumerate(self._patterns) if pattern.fullmatch(topic))
            found[next(matching, len(self._patterns))].append(topic)
        return [rank for rank in found if rank]


def seconds_until_done(
    now_ms: int, left_bytes: float, bytes_per_s: float, gained_bytes_per_s: float, blackouts: Blackouts
) -> float | None:
    """How long until nothing is left, at these rates: the source gains all the time, and in a blackout nothing is
    copied. None where it would never come to that."""
    if left_bytes <= 0:
        return 0.0
    fall = _of_a_week(now_ms, bytes_per_s, gained_bytes_per_s, blackouts)
    # Whole weeks that can't be the last, even with the most that a part of the next one brings.
    weeks = 0 if fall.whole <= 0 else max(0, int((left_bytes - fall.most) / fall.whole))
    left, passed_s = left_bytes - weeks * fall.whole, weeks * _WEEK_S
    ends_s = passed_s + (2 * _WEEK_S if fall.whole > 0 else _WEEK_S)
    for stretch in blackouts.stretches(now_ms):
        seconds = (stretch.end_ms - stretch.start_ms) / 1000
        rate = (bytes_per_s if stretch.open else 0.0) - gained_bytes_per_s
        if rate > 0 and left <= rate * seconds:
            return passed_s + left / rate
        left -= rate * seconds
        passed_s += seconds
        if passed_s > ends_s:
            return None
    return None


class _Fall(NamedTuple):
    """By how much a week lessens what is left: at its end, and at the lowest point within."""

    whole: float
    most: float


def _of_a_week(now_ms: int, bytes_per_s: float, gained_bytes_per_s: float, blackouts: Blackouts) -> _Fall:
    fallen, most, passed_s = 0.0, 0.0, 0.0
    for stretch in blackouts.stretches(now_ms):
        seconds = min((stretch.end_ms - stretch.start_ms) / 1000, _WEEK_S - passed_s)
        fallen += ((bytes_per_s if stretch.open else 0.0) - gained_bytes_per_s) * seconds
        most = max(most, fallen)
        passed_s += seconds
        if passed_s >= _WEEK_S:
            break
    return _Fall(fallen, most)
