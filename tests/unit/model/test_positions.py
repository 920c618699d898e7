from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import PositionFormatError
from twinlog.model.positions import Position, parse

OFFSETS = st.integers(0, 2**63 - 1)
SPANS = st.tuples(OFFSETS, OFFSETS).map(sorted)


@given(SPANS, st.uuids(), st.uuids(), st.integers(-1, 2**31 - 1), OFFSETS)
def test_a_position_is_read_back_as_it_was_written(
    span: list[int], source: UUID, target: UUID, epoch: int, end: int
) -> None:
    offset, seen_end = span
    position = Position(offset, source, target, epoch, end, seen_end)
    assert parse(offset, position.metadata(), "here") == position
    # Kafka's default for offset.metadata.max.bytes
    assert len(position.metadata().encode()) < 4096


def test_of_an_older_position_nothing_is_known_to_be_ready() -> None:
    older = f"1 {UUID(int=1)} {UUID(int=2)} 3 4"
    assert parse(5, older, "here") == Position(5, UUID(int=1), UUID(int=2), 3, 4, seen_end=5)


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ("", "is not a position"),
        ("written by an application", "is not a position"),
        (f"3 {UUID(int=1)} {UUID(int=2)} 3 4 5", "newer twinlog"),
        (f"1 {UUID(int=1)} {UUID(int=2)} 3", "is not a position"),
        (f"1 {UUID(int=1)} {UUID(int=2)} 3 4 5", "is not a position"),
        (f"2 {UUID(int=1)} {UUID(int=2)} 3 4", "is not a position"),
        (f"2 {UUID(int=1)} no-uuid 3 4 5", "damaged position"),
        (f"2 {UUID(int=1)} {UUID(int=2)} x 4 5", "damaged position"),
        (f"2 {UUID(int=1)} {UUID(int=2)} 3 4 4", "damaged position"),
    ],
)
def test_what_is_no_position_says_where_it_was_found(metadata: str, says: str) -> None:
    with pytest.raises(PositionFormatError, match=says) as raised:
        parse(5, metadata, "cluster lon: group twinlog.nyc->lon, nyc.orders-0")
    assert "nyc.orders-0" in str(raised.value)
