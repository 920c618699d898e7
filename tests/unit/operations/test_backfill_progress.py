from __future__ import annotations

from dataclasses import replace

import pytest

from twinlog.model.blackouts import Blackouts
from twinlog.operations.backfill_progress import Clock, Left
from twinlog.operations.mirror_result import MirrorResult, RecordedRun
from twinlog.operations.progress import Progress

MB = 1_000_000
NOON_ON_A_WEDNESDAY_MS = (6 * 24 + 12) * 3600 * 1000
RAN = MirrorResult("nyc->lon", "r", seconds=10.0, recorded=replace(RecordedRun(), records=100, bytes=50 * MB))


def test_a_run_is_shown_as_a_part_of_all() -> None:
    clock = Clock(bytes_before=1_000 * MB)
    clock.begin(Left(400, 200.0 * MB))

    seen = clock.total(Progress(100, 200, 50 * MB, 100 * MB, 10.0), NOON_ON_A_WEDNESDAY_MS, Blackouts())

    assert (seen.records, seen.all_records) == (100, 400)
    assert (seen.bytes, seen.all_bytes) == (1_050 * MB, 1_200 * MB)
    # What was copied before an interruption says nothing of how fast it goes now.
    assert seen.bytes_per_s == pytest.approx(5 * MB)
    assert seen.left_s == pytest.approx(30.0)


def test_blackouts_are_waited_for() -> None:
    clock = Clock(0)
    clock.begin(Left(400, 200.0 * MB))
    look = Progress(0, 200, 50 * MB, 100 * MB, 10.0)

    seen = clock.total(look, NOON_ON_A_WEDNESDAY_MS, Blackouts.parse(["wed 12:00-wed 13:00"]))

    assert seen.left_s == pytest.approx(3_630.0)


def test_the_last_run_s_rate_holds_until_the_next_one_has_copied_something() -> None:
    clock = Clock(0)
    assert clock.total(Progress(0, 9, 0, 9, 0.0), 0, Blackouts()).left_s is None
    clock.begin(Left(400, 200.0 * MB))
    clock.end(RAN)
    clock.begin(Left(300, 150.0 * MB))

    seen = clock.total(Progress(0, 300, 0, 150 * MB, 0.5), 0, Blackouts())

    assert clock.rate == pytest.approx(5 * MB)
    assert (seen.records, seen.all_records, seen.bytes) == (100, 400, 50 * MB)
    assert seen.left_s == pytest.approx(30.0)
