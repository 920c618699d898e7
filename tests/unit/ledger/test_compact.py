from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from support.histories import History, history, rows, some_id
from twinlog.ledger.answers import Twin
from twinlog.ledger.chain import Mark
from twinlog.ledger.compact import Floor, Retention, choose, compact, compact_rows, kept_rows
from twinlog.ledger.schema import GAP_COLUMNS
from twinlog.ledger.store import Ledger
from twinlog.ledger.translate import Translator
from twinlog.model.offsets import GapKind, JournalEntry, PartitionPair, Segment

PAIR = PartitionPair("t", some_id(Random(1)), "nyc.t", some_id(Random(2)), 0)
SEEDS = st.integers(0, 2**32)


def row(source: int, target: int, count: int, run: str = "r", gaps: dict[GapKind, int] | None = None) -> JournalEntry:
    return JournalEntry(
        "nyc->lon", run, 100 + source, Segment(PAIR, source, target, count, source, source + 1, 7, source, gaps or {})
    )


def spans(table: pa.Table) -> list[tuple[int, int, int]]:
    return [(line["source_start"], line["target_start"], line["count"]) for line in table.to_pylist()]


def test_rows_that_run_on_on_both_sides_become_one() -> None:
    joined = compact_rows(rows([row(5, 15, 2), row(0, 10, 5), row(7, 17, 1)]), Retention())
    assert spans(joined) == [(0, 10, 8)]
    line = joined.to_pylist()[0]
    assert (line["bytes"], line["first_timestamp_ms"], line["last_timestamp_ms"], line["copied_at_ms"]) == (
        21,
        0,
        8,
        107,
    )
    assert line["digest"] == "5:0000000000000000 2:0000000000000005 1:0000000000000007"
    again = compact_rows(pa.concat_tables([joined, rows([row(8, 18, 1)])]), Retention())
    assert again["digest"].to_pylist() == [f"{line['digest']} 1:0000000000000008"]


def test_rows_that_do_not_run_on_stay_apart() -> None:
    apart = [
        row(0, 10, 5),
        row(5, 16, 5),
        row(11, 21, 5, gaps={GapKind.CONTROL: 1}),
        row(16, 26, 4, run="another"),
        row(20, 30, 0, gaps={GapKind.ABORTED: 0}),
        row(20, 30, 3),
    ]
    assert spans(compact_rows(rows(apart), Retention())) == [
        (entry.segment.source_start, entry.segment.target_start, entry.segment.count) for entry in apart
    ]


def test_rows_below_both_logs_go_after_their_time_but_never_the_last() -> None:
    table = rows([row(0, 0, 5), row(5, 6, 5), row(10, 12, 5)])
    floors = [Floor(PAIR, 10, 12)]
    assert spans(compact_rows(table, Retention(floors, 10_000))) == [(10, 12, 5)]
    assert spans(compact_rows(table, Retention(floors, 102))) == [(5, 6, 5), (10, 12, 5)]
    assert len(spans(compact_rows(table, Retention([Floor(PAIR, 10, 5)], 10_000)))) == 2
    assert len(spans(compact_rows(table, Retention([], 10_000)))) == 3
    assert spans(compact_rows(table, Retention([Floor(PAIR, 99, 99)], 10_000))) == [(10, 12, 5)]


def test_the_last_row_with_records_outlives_gaps_after_it() -> None:
    table = rows([row(0, 0, 5), row(5, 6, 5), row(12, 12, 0, gaps={GapKind.ABORTED: 2})])
    kept = compact_rows(table, Retention([Floor(PAIR, 99, 99)], 10_000))
    assert spans(kept) == [(5, 6, 5), (12, 12, 0)]


def pasts(seed: int) -> list[History]:
    random = Random(seed)
    source, target = some_id(random), some_id(random)
    return [history(random, PartitionPair("t", source, "nyc.t", target, number)) for number in range(3)]


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_compaction_changes_no_answer_and_no_sum(seed: int) -> None:
    mirrored = pasts(seed)
    table = rows([entry for past in mirrored for entry in past.entries])
    merged = compact_rows(table, Retention())
    twins = [Twin(past.pair, past.position, past.target_start, past.target_end) for past in mirrored]
    asked = pa.table(
        {
            "topic": ["t" for past in mirrored for _ in range(past.position + 2)],
            "partition": [past.pair.partition for past in mirrored for _ in range(past.position + 2)],
            "offset": [offset for past in mirrored for offset in range(past.position + 2)],
        }
    )
    assert Translator(merged, twins).table(asked).equals(Translator(table, twins).table(asked))
    for name in ("count", "bytes", *GAP_COLUMNS.values()):
        assert sum(merged[name].to_pylist()) == sum(table[name].to_pylist())
    assert compact_rows(merged, Retention()).equals(merged)


def test_small_neighbours_are_merged_and_large_files_left(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "nyc", "lon")
    before = Mark()
    for number in range(4):
        after = Mark("journal", {0: number + 1})
        ledger.append(rows([row(10 * number, 10 * number, 10)]), before, after)
        before = after
    assert len(choose(ledger.files())) == 4
    assert choose(ledger.files(), least=5) == []
    done = compact(ledger, Retention())
    assert (done.files, done.rows_before, done.rows_after) == (4, 4, 1)
    assert [file.link.name for file in ledger.files()] == [done.file]
    assert ledger.mark() == before
    assert compact(ledger, Retention()).file is None
    assert compact(ledger, Retention(), everything=True).file == done.file


def test_a_lone_file_is_written_anew_only_where_something_goes(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "nyc", "lon")
    ledger.append(rows([row(0, 0, 5), row(5, 6, 5), row(10, 12, 5)]), Mark(), Mark("journal", {0: 3}))
    assert compact(ledger, Retention(), least=1).file is None
    done = compact(ledger, Retention([Floor(PAIR, 10, 12)], 10_000), least=1)
    assert (done.files, done.rows_before, done.rows_after) == (1, 3, 1)
    assert spans(ledger.read()) == [(10, 12, 5)]


def test_rows_are_judged_alike_in_any_order() -> None:
    table = rows([row(10, 12, 5), row(0, 0, 5), row(5, 6, 5)])
    assert kept_rows(table, Retention([Floor(PAIR, 10, 12)], 10_000)).tolist() == [True, False, False]
    assert kept_rows(table.slice(0, 0), Retention()).tolist() == []
