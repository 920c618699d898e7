"""One name mirrored both ways: no unread record is ever skipped, and what is read again is counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from support.histories import rows, some_id
from twinlog.ledger.answers import How, Twin
from twinlog.ledger.translate import Translator
from twinlog.ledger.two_way import TwoWayTranslator
from twinlog.model.offsets import GapKind, JournalEntry, PartitionPair, Segment

NAME = "orders"


@dataclass
class Side:
    """One cluster's log of the topic: each place holds a record's own name, or None for a marker."""

    log: list[str | None] = field(default_factory=list)
    position: int = 0
    """How far the other side has mirrored it."""
    entries: list[JournalEntry] = field(default_factory=list)
    """Of the flow that reads this side."""


def mirror(here: Side, there: Side, pair: PartitionPair, letter: str, upto: int) -> None:
    """Copy what was written here, as records of one transaction; what came from there is passed over."""
    copied = False
    passed = 0
    while here.position < upto:
        record = here.log[here.position]
        if record is not None and record.startswith(letter):
            gaps = {GapKind.FILTERED: passed} if passed else {}
            segment = Segment(pair, here.position, len(there.log), 1, 0, 0, 1, 1, gaps)
            here.entries.append(JournalEntry("flow", "run", 0, segment))
            there.log.append(record)
            copied, passed = True, 0
        else:
            passed += 1
        here.position += 1
    if passed:
        segment = Segment(pair, upto, len(there.log), 0, -1, -1, 0, 0, {GapKind.FILTERED: passed})
        here.entries.append(JournalEntry("flow", "run", 0, segment))
    if copied:
        there.log.append(None)


@dataclass
class Both:
    """The two sides, a flow each way, and whatever happened so far."""

    onward: PartitionPair
    back: PartitionPair
    nyc: Side = field(default_factory=Side)
    lon: Side = field(default_factory=Side)
    written: int = 0
    lon_start: int = 0
    """Where retention has left the log's start."""

    @classmethod
    def of(cls, random: Random) -> Both:
        here, there = some_id(random), some_id(random)
        return cls(PartitionPair(NAME, here, NAME, there, 0), PartitionPair(NAME, there, NAME, here, 0))

    def write(self, side: Side, letter: str, count: int) -> None:
        side.log += [f"{letter}{self.written + each}" for each in range(count)]
        self.written += count

    def mirror_onward(self, upto: int) -> None:
        mirror(self.nyc, self.lon, self.onward, "n", upto)

    def mirror_back(self, upto: int) -> None:
        mirror(self.lon, self.nyc, self.back, "l", upto)

    def answers(self) -> list[dict[str, Any]]:
        """The translation of every offset of nyc, from 0 to the position."""
        onward = Translator(
            rows(self.nyc.entries), [Twin(self.onward, self.nyc.position, self.lon_start, len(self.lon.log))]
        )
        # A way back that never ran knows no partition.
        begun = [Twin(self.back, self.lon.position, 0, len(self.nyc.log))] if self.lon.entries else []
        offsets = list(range(self.nyc.position + 1))
        asked = pa.table({"topic": [NAME] * len(offsets), "partition": [0] * len(offsets), "offset": offsets})
        both_ways = TwoWayTranslator(onward, Translator(rows(self.lon.entries), begun))
        return both_ways.table(asked).to_pylist()


@given(st.integers(0, 2**32))
def test_nothing_unread_lies_before_the_answer_and_what_is_read_again_is_counted(seed: int) -> None:
    random = Random(seed)
    both = Both.of(random)
    nyc, lon = both.nyc, both.lon
    for _ in range(random.randrange(1, 25)):
        act = random.randrange(4)
        if act == 0:
            both.write(nyc, "n", random.randrange(1, 4))
        elif act == 1:
            both.write(lon, "l", random.randrange(1, 4))
        elif act == 2:
            both.mirror_onward(random.randint(nyc.position, len(nyc.log)))
        else:
            both.mirror_back(random.randint(lon.position, len(lon.log)))
    for row in both.answers():
        read = {record for record in nyc.log[: row["offset"]] if record is not None}
        answer = row["to_offset"]
        assert not [record for record in lon.log[:answer] if record is not None and record not in read], row
        assert row["read_again"] == len([record for record in lon.log[answer:] if record in read]), row


@given(st.integers(0, 2**32))
def test_where_all_is_mirrored_the_answer_is_the_first_unread_record(seed: int) -> None:
    random = Random(seed)
    both = Both.of(random)
    for _ in range(random.randrange(1, 4)):
        both.write(both.nyc, "n", random.randrange(1, 4))
        both.write(both.lon, "l", random.randrange(1, 4))
        both.mirror_onward(len(both.nyc.log))
        both.mirror_back(len(both.lon.log))
    both.mirror_onward(len(both.nyc.log))
    for row in both.answers():
        read = set(both.nyc.log[: row["offset"]])
        unread = [place for place, record in enumerate(both.lon.log) if record is not None and record not in read]
        if unread:
            assert row["to_offset"] == unread[0]


def test_the_drawing_in_the_documentation() -> None:
    both = Both.of(Random(1))
    nyc, lon = both.nyc, both.lon
    nyc.log, lon.log = ["na", "nb", "lx", "nc", "ly"], ["lx", "na", "ly", "nb", "nc"]
    for pair, side, places in ((both.onward, nyc, [(0, 1), (1, 3), (3, 4)]), (both.back, lon, [(0, 2), (2, 4)])):
        at = 0
        for source, target in places:
            gaps = {GapKind.FILTERED: source - at} if source > at else {}
            segment = Segment(pair, source, target, 1, 0, 0, 1, 1, gaps)
            side.entries.append(JournalEntry("flow", "run", 0, segment))
            at = source + 1
        side.position = 5
    answer = both.answers()[3]
    assert (answer["to_offset"], answer["how"], answer["read_again"]) == (2, How.FIRST_UNREAD, 1)


def test_an_unread_record_that_retention_took_is_answered_with_the_logs_start() -> None:
    both = Both.of(Random(2))
    both.write(both.lon, "l", 5)
    both.mirror_back(5)
    both.write(both.nyc, "n", 1)
    both.mirror_onward(len(both.nyc.log))
    both.lon_start = 3
    answers = both.answers()
    assert [(row["to_offset"], row["how"]) for row in answers[:5]] == [
        (3, How.EXPIRED),
        (3, How.EXPIRED),
        (3, How.EXPIRED),
        (3, How.FIRST_UNREAD),
        (4, How.FIRST_UNREAD),
    ]
