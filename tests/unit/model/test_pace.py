"""What a source gains against what a flow copies, and whether retention is faster than both."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.pace import WINDOW_S, PartitionPace, Retention, catch_up_s, earliest, summed

DAY_S = 86_400.0


def pace(
    waiting: int = 0, age_s: float | None = 0.0, size: float | None = 100.0, gained: int | None = 0
) -> PartitionPace:
    return PartitionPace(waiting, age_s, size, gained)


@pytest.mark.parametrize(
    ("policy", "milliseconds", "size", "expected"),
    [
        ("delete", 86_400_000, -1, Retention(DAY_S, None)),
        ("compact,delete", -1, 1_000, Retention(None, 1_000)),
        ("compact", 86_400_000, 1_000, Retention()),
        ("delete", 0, 0, Retention(0.0, 0)),
    ],
)
def test_retention_is_kafkas(policy: str, milliseconds: int, size: int, expected: Retention) -> None:
    assert Retention.of(policy, milliseconds, size) == expected


def test_the_age_of_the_next_record_decides() -> None:
    assert pace(5, DAY_S - 60).until_expiry_s(Retention(DAY_S)) == 60
    assert pace(5, DAY_S + 60).until_expiry_s(Retention(DAY_S)) == -60, "due, and its segment not deleted yet"


def test_so_does_the_size_of_what_waits_at_the_rate_of_the_source() -> None:
    growing = pace(waiting=10, age_s=0.0, gained=int(WINDOW_S))  # one record of 100 bytes a second
    assert growing.until_expiry_s(Retention(None, 3_000)) == pytest.approx(20)
    assert growing.until_expiry_s(Retention(5.0, 3_000)) == 5, "whichever is first"


@pytest.mark.parametrize(
    ("partition", "retention"),
    [
        (pace(0), Retention(DAY_S, 10)),
        (pace(5), Retention()),
        (pace(5, None), Retention(DAY_S)),
        (pace(5, gained=0), Retention(None, 10_000)),
        (pace(5, size=None, gained=9), Retention(None, 10_000)),
        (PartitionPace(), Retention(DAY_S, 10)),
    ],
)
def test_nothing_is_said_where_nothing_expires_or_is_known(partition: PartitionPace, retention: Retention) -> None:
    assert partition.until_expiry_s(retention) is None


def test_sizes_that_are_not_known_make_no_sum_and_nothing_weighs_nothing() -> None:
    assert pace(5, size=None).waiting_bytes is None
    assert pace(0, size=None).waiting_bytes == 0
    assert PartitionPace().waiting_bytes is None
    assert summed([1.0, None]) is None
    assert summed([]) == 0
    assert earliest([None, 3.0, 2.0]) == 2.0
    assert earliest([None]) is None


RATES = st.just(0.0) | st.floats(1e-3, 1e9)
"""Bytes a second: a rate that is not 0 is not next to nothing, or the time would be larger than any number."""


@given(st.floats(1, 1e12), RATES, RATES)
def test_at_the_end_of_that_time_all_is_copied(waiting: float, capacity: float, rate: float) -> None:
    found = catch_up_s(waiting, capacity, rate)
    assert found is not None
    if capacity <= rate:
        assert found == math.inf
    else:
        assert waiting + rate * found == pytest.approx(capacity * found)


def test_who_has_nothing_to_catch_up_with_needs_no_time() -> None:
    assert catch_up_s(0, None, None) == 0
    assert catch_up_s(5, None, 1) is None
    assert catch_up_s(5, 1, None) is None
    assert catch_up_s(None, 1, 1) is None
