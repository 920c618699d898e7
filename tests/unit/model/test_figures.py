"""The figures of a run: added up over lanes, and what they say limits it."""

from __future__ import annotations

import pytest

from twinlog.model.figures import Figures, Limit, total


def test_figures_of_lanes_add_up() -> None:
    one = Figures(records=10, bytes=1_000, batches=2, fetches=1, fetched_bytes=4_000, produces=2, in_flight_sum=3)
    other = Figures(records=5, bytes=500, batches=1, fetches=3, fetched_bytes=4_000, produces=2, in_flight_sum=7)
    both = total([one, other])
    assert (both.records, both.bytes, both.batches) == (15, 1_500, 3)
    assert (both.mean_batch_bytes, both.mean_fetch_bytes, both.mean_in_flight) == (500, 2_000, 2.5)


def test_nothing_done_has_means_of_nothing_and_no_limit() -> None:
    idle = total([])
    assert (idle.mean_batch_bytes, idle.mean_fetch_bytes, idle.mean_in_flight, idle.limited_by) == (0, 0, 0, None)


@pytest.mark.parametrize(
    ("figures", "limit"),
    [
        (Figures(seconds=10, waited_source_s=6, waited_target_s=1), Limit.SOURCE),
        (Figures(seconds=10, waited_source_s=1, waited_target_s=6), Limit.TARGET),
        (Figures(seconds=10, throttled_s=2, quota_s=3, waited_source_s=4), Limit.THROTTLE),
        (Figures(seconds=10, waited_source_s=2, waited_target_s=2), Limit.COPIER),
    ],
)
def test_what_takes_most_of_the_time_is_the_limit(figures: Figures, limit: Limit) -> None:
    assert figures.limited_by is limit
