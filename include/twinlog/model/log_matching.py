"""Which record of one log became which of another, found by the records alone.

    source   10  11  12 (marker) 14  15      read ahead, and remembered for a while
    target    4   5   6  5'       7   8      5' was written twice
             10  11  12  11     ...          so the one-to-one part begins at its second copy

A target that somebody filled in order holds the source's records one after the other, so most of the time the next
record is the expected one. Where it is not, the record is looked for among those just passed (it was written again)
and those to come (something is missing on the target). Whatever breaks the order is noted, and what is one to one
begins anew behind it. Always: what was matched since then rises by at least one on both sides from record to record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from twinlog.model.offsets import GapKind

MOST_RECORDS = 50_000
"""Read ahead, and remembered: what lies further apart is not found again."""

Gaps = Mapping[GapKind, int]


class SourceRecord(NamedTuple):
    """A record of the source; `gaps` are the offsets right before it that hold none."""

    offset: int
    value: Hashable
    gaps: Gaps


class Match(NamedTuple):
    """The source's record that one of the target's is; `restarts` where what is one to one begins with it."""

    offset: int
    gaps: Gaps
    restarts: bool


class Trouble(StrEnum):
    """What keeps a part of a log from being one to one."""

    DOUBLED = "written more than once"
    MISSING = "missing on the target"
    FOREIGN = "not on the source"


@dataclass(frozen=True, slots=True)
class Issue:
    """One place where the order breaks."""

    trouble: Trouble
    source: int
    target: int
    records: int

    @property
    def sentence(self) -> str:
        if self.trouble is Trouble.MISSING:
            return f"{self.records:,} records from source offset {self.source} on are {self.trouble}"
        return f"{self.records:,} records from target offset {self.target} on are {self.trouble}"


class SourceLog:
    """The source's records in order, with those just passed and those to come at hand."""

    def __init__(self, read: Callable[[int], Iterator[SourceRecord]], start: int, most: int = MOST_RECORDS) -> None:
        """`read` answers all records from an offset on."""
        self._read = read
        self._most = most
        self._passed: deque[tuple[int, Hashable]] = deque()
        self._ahead: deque[SourceRecord] = deque()
        self._places: dict[int, list[int]] = {}
        self._records = read(start)

    def peek(self) -> SourceRecord | None:
        self._fill()
        return self._ahead[0] if self._ahead else None

    def take(self) -> SourceRecord:
        self._fill()
        record = self._ahead.popleft()
        self._passed.append((record.offset, record.value))
        if len(self._passed) > self._most:
            offset, value = self._passed.popleft()
            self._forget(offset, value)
        return record

    def places(self, value: Hashable) -> list[int]:
        """The offsets of the records like this one that are at hand, in order."""
        self._fill()
        return self._places.get(hash(value), [])

    def go_back(self, offset: int) -> None:
        """Go on at `offset`, which was passed."""
        self._passed.clear()
        self._ahead.clear()
        self._places.clear()
        self._records = self._read(offset)

    def _fill(self) -> None:
        # In portions, so that most takes cost nothing.
        if len(self._ahead) > self._most // 2:
            return
        for record in self._records:
            self._ahead.append(record)
            self._places.setdefault(hash(record.value), []).append(record.offset)
            if len(self._ahead) >= self._most:
                break

    def _forget(self, offset: int, value: Hashable) -> None:
        known = self._places[hash(value)]
        known.remove(offset)
        if not known:
            del self._places[hash(value)]


@dataclass(slots=True)
class Matching:
    """Follows a target's log along its source's."""

    log: SourceLog
    compacts: bool = False
    """The topic's cleaner may have removed records from either side, each at its own time."""
    issues: list[Issue] = field(default_factory=list)
    older: int = 0
    """Records at the target's beginning that the source has no longer, or never had."""
    unmatched: int = 0
    """Records since the last match that the source does not have."""
    superseded: int = 0
    """Those among a compacted topic's records that only the target still has."""
    certain: bool = False
    """Since what is one to one began there was a record that is like no other at hand."""
    _begun: bool = False
    _broken: bool = False

    def match(self, target_offset: int, value: Hashable) -> Match | None:
        """What the target's next record is on the source; None where that can't be told."""
        here = self.log.peek()
        if here is not None and here.value == value:
            return self._matched(self.log.take(), {})
        places = self.log.places(value)
        passed = [] if here is None else [offset for offset in places if offset < here.offset]
        if here is None:
            passed = places
        ahead = places[len(passed) :]
        if ahead and (not passed or self.compacts):
            return self._skip_to(ahead[0], target_offset, value)
        if passed:
            return self._again(passed[-1], target_offset, value)
        self._unknown(target_offset)
        return None

    def _skip_to(self, offset: int, target_offset: int, value: Hashable) -> Match | None:
        start = self.log.peek()
        records, gaps = 0, dict[GapKind, int]()
        while (record := self.log.peek()) is not None and record.offset < offset:
            gaps = _sum(gaps, self.log.take().gaps)
            records += 1
        if record is None or record.value != value:
            self._unknown(target_offset)
            return None
        if self._begun and self.compacts:
            gaps = _sum(gaps, {GapKind.COMPACTED: records})
        elif self._begun:
            self._note(Trouble.MISSING, 0 if start is None else start.offset, target_offset, records)
        return self._matched(self.log.take(), gaps)

    def _again(self, offset: int, target_offset: int, value: Hashable) -> Match | None:
        self.log.go_back(offset)
        record = self.log.peek()
        if record is None or record.value != value:
            self._unknown(target_offset)
            return None
        self._note(Trouble.DOUBLED, offset, target_offset, 1)
        return self._matched(self.log.take(), {})

    def _unknown(self, target_offset: int) -> None:
        if not self._begun:
            self.older += 1
            return
        self.unmatched += 1
        if self.compacts:
            self.superseded += 1
        elif self.unmatched == 1:
            self._note(Trouble.FOREIGN, 0, target_offset, 1)
        else:
            last = self.issues[-1]
            self.issues[-1] = Issue(last.trouble, last.source, last.target, last.records + 1)

    def _note(self, trouble: Trouble, source: int, target: int, records: int) -> None:
        self.issues.append(Issue(trouble, source, target, records))
        self._broken = True

    def _matched(self, record: SourceRecord, before: Gaps) -> Match:
        restarts = self._broken or not self._begun
        self._begun, self._broken, self.unmatched = True, False, 0
        unique = len(self.log.places(record.value)) == 1
        self.certain = unique or (self.certain and not restarts)
        return Match(record.offset, {} if restarts else _sum(before, record.gaps), restarts)


def _sum(one: Gaps, other: Gaps) -> dict[GapKind, int]:
    return {kind: one.get(kind, 0) + other.get(kind, 0) for kind in (*one, *other)}
