"""How far a backfill has come over all of its runs, and when it will be done."""

from __future__ import annotations

import time
from dataclasses import dataclass

from twinlog.model.backfill import seconds_until_done
from twinlog.model.blackouts import Blackouts
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.progress import Progress

SMALL_LAG_S = 60.0
"""Once what is left is copied in so long, ordinary runs take over."""


@dataclass(frozen=True, slots=True)
class Left:
    """What of the source's topics is not copied yet; bytes are estimated."""

    records: int
    bytes: float

    def over(self, rate: float | None) -> bool:
        """Whether it is worth another large run at this rate."""
        return self.records > 0 and (rate is None or self.bytes > rate * SMALL_LAG_S)


@dataclass(frozen=True, slots=True)
class TotalProgress(Progress):
    """One look at the whole of a backfill, over its runs."""

    expected_s: float | None = None
    """Until all is copied, blackouts and what the source gains meanwhile included."""
    rate: float | None = None
    """Bytes a second of the run that is under way, or of the last one."""

    @property
    def bytes_per_s(self) -> float:
        # What a backfill copied before it was interrupted took time that nobody has counted.
        return self.rate or 0.0

    @property
    def left_s(self) -> float | None:
        return self.expected_s


class Clock:
    """Rates over the runs of one backfill."""

    def __init__(self, bytes_before: int) -> None:
        self._before = bytes_before
        self._done = Left(0, 0.0)
        self._left = Left(0, 0.0)
        self._first_total: float | None = None
        self._began = time.monotonic()
        self.rate: float | None = None
        """Bytes a second in the last run that copied any."""

    def begin(self, left: Left) -> None:
        """A run begins, with so much left for all."""
        self._left = left
        if self._first_total is None:
            self._first_total = self._done.bytes + left.bytes

    def end(self, ran: MirrorResult) -> None:
        copied = ran.recorded
        self._done = Left(self._done.records + copied.records, self._done.bytes + copied.bytes)
        if copied.bytes and ran.seconds > 0:
            self.rate = copied.bytes / ran.seconds

    def total(self, run: Progress, now_ms: int, blackouts: Blackouts) -> TotalProgress:
        """A look at one run as a look at all."""
        seconds = time.monotonic() - self._began
        rate = run.bytes_per_s or self.rate
        left = max(self._left.bytes - run.bytes, 0.0)
        expected_s = None if not rate else seconds_until_done(now_ms, left, rate, self._gained_per_s(), blackouts)
        records, size = self._done.records + run.records, self._before + self._done.bytes + run.bytes
        all_records = self._done.records + max(self._left.records, run.records)
        return TotalProgress(records, all_records, int(size), int(size + left), seconds, expected_s, rate)

    def _gained_per_s(self) -> float:
        seconds = time.monotonic() - self._began
        if self._first_total is None or seconds < SMALL_LAG_S:
            return 0.0
        return max(self._done.bytes + self._left.bytes - self._first_total, 0.0) / seconds
