from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from twinlog.cluster import refilling
from twinlog.cluster.refilling import stretches, transactions
from twinlog.model.offsets import PartitionPair, Segment

PAIR = PartitionPair("orders", uuid.uuid4(), "fresh", uuid.uuid4(), 0)


@st.composite
def fresh_rows(draw: st.DrawFn) -> list[Segment]:
    """What a copier journals: rows that follow on in the fresh topic, or behind a marker; some of gaps only."""
    rows, source, target = [], 0, 0
    for count, gap, marker in draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.booleans()))):
        source += gap
        target += marker
        size = count * 8 * 1024 * 1024
        rows.append(Segment(PAIR, source, target, count, 0, 0, size, 1))
        source += count
        target += count
    return rows


@given(fresh_rows())
def test_stretches_are_all_records_once_in_order(rows: list[Segment]) -> None:
    found = [offset for span in stretches(rows) for offset in range(span.start, span.end)]
    assert found == [offset for row in rows for offset in range(row.target_start, row.target_end)]


@given(fresh_rows())
def test_a_transaction_never_ends_within_a_batch_of_the_fresh_copy(rows: list[Segment]) -> None:
    parts = list(transactions(rows))
    assert [row for part in parts for row in part] == rows
    whole = list(stretches(rows))
    assert [span for part in parts for span in stretches(part)] == whole
    for part in parts[:-1]:
        assert sum(row.bytes for row in part) >= refilling.BYTES_A_TRANSACTION
