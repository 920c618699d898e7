from __future__ import annotations

from pathlib import Path
from uuid import UUID

from twinlog.ledger.chain import Mark
from twinlog.ledger.columns import RawEntry, to_table
from twinlog.ledger.returned import TargetPartition, mirrored_in
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import JournalEntry, PartitionPair, Segment, Span
from twinlog.wire import journal

HERE, THERE, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)


def ledger_of(folder: Path, *segments: Segment) -> Ledger:
    ledger = Ledger(str(folder), "lon", "nyc")
    entries = [
        RawEntry(*journal.encode(JournalEntry("lon->nyc", "run", 0, segment)), "journal", 0, number)
        for number, segment in enumerate(segments)
    ]
    ledger.append(to_table(entries), Mark(), Mark("journal", {0: len(entries)}))
    return ledger


def segment(target: UUID, partition: int, target_start: int, count: int) -> Segment:
    pair = PartitionPair("orders", THERE, "orders", target, partition)
    return Segment(pair, target_start * 10, target_start, count, 0, 0, 0, 0)


def test_spans_are_those_of_the_topics_asked_for_joined_and_in_order(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        segment(HERE, 0, 15, 5),
        segment(HERE, 0, 10, 5),
        segment(HERE, 0, 30, 1),
        segment(HERE, 1, 20, 2),
        segment(HERE, 1, 40, 0),
        segment(OTHER, 0, 10, 5),
    )
    assert mirrored_in(ledger, {TargetPartition(str(HERE), number): 0 for number in (0, 1)}) == {
        (str(HERE), 0): [Span(10, 20), Span(30, 31)],
        (str(HERE), 1): [Span(20, 22)],
    }


def test_spans_of_another_source_are_left_out_where_one_is_named(tmp_path: Path) -> None:
    again = PartitionPair("orders", OTHER, "orders", HERE, 0)
    ledger = ledger_of(tmp_path, segment(HERE, 0, 0, 5), Segment(again, 0, 6, 2, 0, 0, 0, 0))
    place = TargetPartition(str(HERE), 0)

    assert mirrored_in(ledger, {place: 0}) == {place: [Span(0, 5), Span(6, 8)]}
    assert mirrored_in(ledger, {place: 0}, {place: str(THERE)}) == {place: [Span(0, 5)]}
    assert mirrored_in(ledger, {place: 0}, {place: str(OTHER)}) == {place: [Span(6, 8)]}
    assert mirrored_in(ledger, {place: 7}, {place: str(THERE)}) == {}


def test_nothing_mirrored_in_gives_no_spans(tmp_path: Path) -> None:
    assert mirrored_in(ledger_of(tmp_path, segment(OTHER, 0, 1, 1)), {TargetPartition(str(HERE), 0): 0}) == {}
