from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from support.histories import history, rows, some_id
from twinlog.ledger.chain import Mark
from twinlog.ledger.compact import Retention, compact_rows
from twinlog.ledger.last_positions import last_positions
from twinlog.ledger.schema import SOURCE_COLUMNS
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import GapKind, JournalEntry, PartitionPair, Segment
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.model.segment_builder import gaps_only


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path / "ledger"), "nyc", "lon")


@pytest.mark.parametrize("seed", range(20))
def test_the_last_segment_ends_at_the_position(ledger: Ledger, seed: int) -> None:
    random = Random(seed)
    source, target = some_id(random), some_id(random)
    pasts = [history(random, PartitionPair("t", source, "nyc.t", target, number)) for number in range(4)]
    entries = [entry for past in pasts for entry in past.entries]
    random.shuffle(entries)
    ledger.append(rows(entries), Mark(), Mark("journal", {0: 10}))

    found = last_positions(ledger, [past.pair for past in pasts])

    assert {partition: position.offset for partition, position in found.items()} == {
        past.pair.target: past.position for past in pasts if past.entries
    }
    for past in pasts:
        if past.last_copied is not None:
            assert past.last_copied < found[past.pair.target].target_end <= past.target_end


def test_what_the_position_knew_of_the_source_is_known_again(ledger: Ledger) -> None:
    random = Random(1)
    pair = PartitionPair("t", some_id(random), "nyc.t", some_id(random), 0)
    entries = [
        JournalEntry(
            "nyc->lon", "run", 7, Segment(pair, 10 * number, 11 * number, 10, 0, 0, 0, 0), seen_end, 4 + number
        )
        for number, seen_end in enumerate((50, 50, 90))
    ]
    ledger.append(compact_rows(rows(entries), Retention()), Mark(), Mark("journal", {0: 10}))

    (position,) = last_positions(ledger, [pair]).values()

    assert position == Position(30, pair.source_topic_id, pair.target_topic_id, 6, 32, seen_end=90)


def test_rows_that_were_joined_know_what_the_last_of_them_knew() -> None:
    random = Random(1)
    pair = PartitionPair("t", some_id(random), "nyc.t", some_id(random), 0)
    entries = [
        JournalEntry("nyc->lon", "run", 7, Segment(pair, 10 * number, 10 * number, 10, 0, 0, 0, 0), seen_end, number)
        for number, seen_end in enumerate((50, 90))
    ]
    (joined,) = compact_rows(rows(entries), Retention()).to_pylist()
    assert (joined["count"], joined["source_seen_end"], joined["source_epoch"]) == (20, 90, 1)


def test_a_file_of_the_version_before_is_read_as_saying_nothing_of_the_source(ledger: Ledger) -> None:
    random = Random(1)
    pair = PartitionPair("t", some_id(random), "nyc.t", some_id(random), 0)
    entry = JournalEntry("nyc->lon", "run", 7, Segment(pair, 0, 0, 10, 0, 0, 0, 0), 50, 4)
    link = ledger.append(rows([entry]), Mark(), Mark("journal", {0: 10}))
    file = ledger.folder.file_path(link.name)
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns(list(SOURCE_COLUMNS)), file)

    (position,) = last_positions(ledger, [pair]).values()

    assert (position.seen_end, position.leader_epoch) == (10, NO_LEADER_EPOCH)
    assert ledger.read().num_rows == 1


def test_a_topic_made_anew_on_the_target_has_none(ledger: Ledger) -> None:
    random = Random(1)
    past = history(random, PartitionPair("t", some_id(random), "nyc.t", some_id(random), 0))
    ledger.append(rows(past.entries), Mark(), Mark("journal", {0: 10}))

    assert last_positions(ledger, [replace(past.pair, target_topic_id=some_id(random))]) == {}


def test_the_position_names_the_source_topic_that_was_copied(ledger: Ledger) -> None:
    random = Random(1)
    past = history(random, PartitionPair("t", some_id(random), "nyc.t", some_id(random), 0))
    ledger.append(rows(past.entries), Mark(), Mark("journal", {0: 10}))
    made_anew = replace(past.pair, source_topic_id=some_id(random))

    (position,) = last_positions(ledger, [made_anew]).values()

    assert position.source_topic_id == past.pair.source_topic_id


def test_the_row_that_closes_a_source_topic_comes_before_those_of_its_successor(ledger: Ledger) -> None:
    random = Random(1)
    earlier = PartitionPair("t", some_id(random), "nyc.t", some_id(random), 0)
    current = replace(earlier, source_topic_id=some_id(random))
    # Of one transaction: what went with the earlier topic, and markers at the beginning of the current one.
    written = [
        gaps_only(earlier, {GapKind.RECREATED: 90}, 100, 11),
        gaps_only(current, {GapKind.CONTROL: 3}, 3, 11),
    ]
    entries = [JournalEntry("nyc->lon", "run", 7, segment) for segment in written]
    ledger.append(rows(entries), Mark(), Mark("journal", {0: 10}))

    (position,) = last_positions(ledger, [current]).values()

    assert (position.offset, position.source_topic_id, position.seen_end) == (3, current.source_topic_id, 3)


def test_nothing_is_read_where_nothing_is_asked(ledger: Ledger) -> None:
    assert last_positions(ledger, []) == {}
