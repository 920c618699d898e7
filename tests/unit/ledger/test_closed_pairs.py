"""The row that closes the account of a source topic which was deleted and created again, among the others."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from support.histories import FLOW, history, rows, some_id
from twinlog.ledger.answers import Twin
from twinlog.ledger.compact import Floor, Retention, compact_rows
from twinlog.ledger.translate import Translator
from twinlog.model.offsets import GapKind, JournalEntry, PartitionPair
from twinlog.model.segment_builder import gaps_only

LOST = 40
LONG_AGO_MS = 1_000_000


@pytest.mark.parametrize("seed", range(20))
def test_translation_and_compaction_take_it_for_what_it_is(seed: int) -> None:
    random = Random(seed)
    pair = PartitionPair("t", some_id(random), "nyc.t", some_id(random), 0)
    earlier = history(random, replace(pair, source_topic_id=some_id(random)))
    current = history(random, pair)
    closing = JournalEntry(
        FLOW,
        "run",
        LONG_AGO_MS - 1,
        gaps_only(earlier.pair, {GapKind.RECREATED: LOST}, earlier.position + LOST, earlier.target_end),
    )
    without, table = rows(current.entries), rows([*earlier.entries, closing, *current.entries])
    twins = [Twin(pair, current.position, current.target_start, current.target_end)]

    bare, among = Translator(without, twins), Translator(table, twins)
    for offset in range(current.position + LOST + 2):
        assert among.forward(pair.source, offset) == bare.forward(pair.source, offset)
        assert among.reverse(pair.target, offset) == bare.reverse(pair.target, offset)

    gone = Floor(earlier.pair, 2**62, 2**62)
    kept = compact_rows(table, Retention([gone], LONG_AGO_MS)).to_pylist()
    old = [row for row in kept if row["source_topic_id"] == str(earlier.pair.source_topic_id)]
    # What was copied last, where there is any, and the last word.
    assert [row["gap_recreated"] for row in old] == [0, LOST][1 - bool(earlier.copied) :]
    assert old[-1]["source_start"] == earlier.position + LOST
