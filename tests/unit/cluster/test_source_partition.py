"""How far a partition has been read: what the other direction mirrored in is passed over, and failures are counted."""

from __future__ import annotations

from collections import deque
from uuid import UUID

import pytest

from twinlog.cluster.source_partition import Parcel, Patience, SourcePartitionState
from twinlog.model.offsets import PartitionPair, Span
from twinlog.model.positions import NO_LEADER_EPOCH
from twinlog.wire.outgoing import Gaps

PAIR = PartitionPair("orders", UUID(int=1), "orders", UUID(int=2), 0)


def state(at: int, end: int, *spans: tuple[int, int]) -> SourcePartitionState:
    return SourcePartitionState(PAIR, at, end, 1_000_000, 3, returned=deque(Span(*span) for span in spans))


def passed(end: int, offsets: int) -> Parcel:
    return Parcel(None, end, NO_LEADER_EPOCH, Gaps(filtered=offsets))


def test_fetching_stops_before_a_span_and_goes_on_behind_it() -> None:
    reading = state(0, 100, (10, 20), (30, 35))
    assert (reading.at, reading.stop) == (0, 10)
    reading.read_to(10, 3)
    assert (reading.at, reading.stop, list(reading.parcels)) == (20, 30, [passed(20, 10)])
    reading.read_to(30, 3)
    reading.read_to(100, 3)
    assert reading.exhausted
    assert list(reading.parcels) == [passed(20, 10), passed(35, 5)]


@pytest.mark.parametrize(
    ("at", "end", "span", "after", "parcels"),
    [
        (12, 100, (10, 20), 20, [passed(20, 8)]),
        (25, 100, (10, 20), 25, []),
        (10, 15, (10, 20), 15, [passed(15, 5)]),
        (10, 10, (10, 20), 10, []),
    ],
    ids=["begins inside", "begins behind", "the range ends inside", "nothing to read"],
)
def test_where_a_range_begins_or_ends_in_a_span(
    at: int, end: int, span: tuple[int, int], after: int, parcels: list[Parcel]
) -> None:
    reading = state(at, end, span)
    assert (reading.at, list(reading.parcels)) == (after, parcels)


def test_neighbouring_spans_are_passed_over_together() -> None:
    reading = state(5, 50, (5, 10), (10, 20))
    assert (reading.at, [parcel.end for parcel in reading.parcels]) == (20, [10, 20])


def test_waits_grow_up_to_the_longest() -> None:
    patience = Patience(retries=5, backoff_s=0.1, backoff_max_s=1.0)

    assert [patience.pause_s(failures) for failures in (0, 1, 2, 4, 5, 10_000)] == [0.1, 0.1, 0.2, 0.8, 1.0, 1.0]


def test_failures_are_counted_until_something_is_read() -> None:
    reading = state(0, 10)
    reading.broker = 1
    reading.lose_broker()
    reading.lose_broker()
    assert (reading.broker, reading.failures) == (None, 2)

    reading.read_to(5, 0)

    assert reading.failures == 0
