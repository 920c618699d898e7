from __future__ import annotations

import io
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from support.counted_ledger import CountedLedger
from support.histories import rows
from twinlog.ledger import store
from twinlog.ledger.chain import Mark
from twinlog.ledger.compact import Retention, compact
from twinlog.ledger.last_positions import last_positions
from twinlog.ledger.returned import TargetPartition, mirrored_in
from twinlog.ledger.row_groups import Bounds, needed_groups
from twinlog.model.offsets import JournalEntry, PartitionPair, Segment, Span
from twinlog.model.plan import Partitions
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.operations.started_anew import started_anew

TOPICS = 10
SEGMENTS = 100
GROUP = 50


def pair(topic: int) -> PartitionPair:
    return PartitionPair(f"t{topic}", UUID(int=topic), f"nyc.t{topic}", UUID(int=1000 + topic), 0)


def entry(topic: int, number: int) -> JournalEntry:
    """Ten records, and a marker on the target after them."""
    return JournalEntry("nyc->lon", "run", number, Segment(pair(topic), 10 * number, 11 * number, 10, 0, 0, 0, 0))


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountedLedger:
    """Ten topics of a hundred rows each, recorded in turns and merged into one file, fifty rows a group."""
    monkeypatch.setattr(store, "ROWS_A_GROUP", GROUP)
    ledger = CountedLedger(str(tmp_path), "nyc", "lon")
    before = Mark()
    for recording in range(4):
        numbers = range(recording * SEGMENTS // 4, (recording + 1) * SEGMENTS // 4)
        table = rows([entry(topic, number) for number in numbers for topic in range(TOPICS)])
        after = Mark("journal", {0: table.num_rows * (recording + 1)})
        ledger.append(table, before, after)
        before = after
    compact(ledger, Retention())
    ledger.rows_read = 0
    return ledger


def found(topic: int, position: Position | None, last_stable: int) -> Partitions:
    return Partitions([pair(topic)], [position], [0], [last_stable], [0], [1.0])


def test_forgotten_positions_are_found_by_reading_their_topics_only(ledger: CountedLedger) -> None:
    (position,) = last_positions(ledger, [pair(3)]).values()
    assert position.offset == 10 * SEGMENTS
    assert ledger.rows_read == SEGMENTS


def test_an_earlier_twin_is_looked_for_in_its_topics_rows_and_only_where_there_may_be_one(
    ledger: CountedLedger,
) -> None:
    made_anew = PartitionPair("t3", UUID(int=3), "nyc.t3", UUID(int=5), 0)
    (finding,) = started_anew(ledger, Partitions([made_anew], [None], [0], [7], [0], [1.0]))
    assert finding.partition == made_anew.source
    assert ledger.rows_read == SEGMENTS

    position = Position(10, UUID(int=3), UUID(int=1003), NO_LEADER_EPOCH, 10, seen_end=10)
    ledger.reads = 0
    assert started_anew(ledger, found(3, position, 1000)) == []
    assert started_anew(ledger, found(3, None, 0)) == []
    assert ledger.reads == 0


def test_what_lies_before_the_positions_is_not_read_again(ledger: CountedLedger) -> None:
    last = SEGMENTS - 1
    place = TargetPartition(str(UUID(int=1003)), 0)
    assert mirrored_in(ledger, {place: 11 * last + 4}) == {place: [Span(11 * last, 11 * last + 10)]}
    assert ledger.rows_read == GROUP

    ledger.rows_read = 0
    assert mirrored_in(ledger, {place: 11 * last + 10}) == {}
    assert ledger.rows_read == 0
    ledger.reads = 0
    assert mirrored_in(ledger, {}) == {}
    assert ledger.reads == 0


def test_a_file_that_does_not_say_its_bounds_is_read_whole() -> None:
    content = io.BytesIO()
    pq.write_table(pa.table({"n": [1, 2, 3]}), content, write_statistics=False, row_group_size=1)
    metadata = pq.read_metadata(content)
    assert needed_groups(metadata, lambda bounds: bounds.may_hold("n", [9])) == [0, 1, 2]


@pytest.mark.parametrize(("values", "held"), [([1], False), ([3], True), ([1, 4], True), ([1, 6], False), ([], False)])
def test_a_group_may_hold_what_lies_within_its_bounds(values: list[int], held: bool) -> None:
    content = io.BytesIO()
    pq.write_table(pa.table({"n": [3, 5]}), content)
    bounds = Bounds(pq.read_metadata(content).row_group(0))
    assert bounds.of("n") == (3, 5)
    assert bounds.may_hold("n", values) is held
