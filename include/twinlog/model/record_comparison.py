"""Two sequences of records, the source's and the target's, and the verdict on each of their records.

    source   10 a   11 b   12 c   13 d   14 e
    target   40 a   41 C   42 e   43 e   44 x        the ledger: 10..14 -> 40..44

    a equal   c altered? no: 41 is where b belongs, and shares b's key -> b altered   d missing   e misplaced, doubled
    x extra inside a span of the ledger, foreign outside of all

Always: each record of either side gets exactly one verdict, and a record that is where the ledger says and as it was is
equal whatever happened around it. What is missing or extra here may still have a good reason (see `absence`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from twinlog.model.reconciliation import Kind

_NO_ROW = "the ledger has no row for it"


class RecordFact(NamedTuple):
    """A record as far as comparing needs it: short values as they are, long ones as their digests."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: bytes


class MappedSpan(NamedTuple):
    """The ledger's word: these source offsets became those target offsets, one by one."""

    source: int
    target: int
    records: int


class Judged(NamedTuple):
    """The verdict on a record; on a pair of them where it has both offsets."""

    kind: Kind
    source: RecordFact | None
    target: RecordFact | None
    detail: str = ""


@dataclass
class Compared:
    """All verdicts; equal records are only counted."""

    equal: int = 0
    gone: list[MappedSpan] = field(default_factory=list)
    """What the ledger maps and neither side has."""
    judged: list[Judged] = field(default_factory=list)


class _Pair(NamedTuple):
    """Places in the two sequences."""

    here: int
    there: int


def compare(source: Sequence[RecordFact], target: Sequence[RecordFact], spans: Sequence[MappedSpan]) -> Compared:
    """Judge every record of both sequences, each in the order of its offsets; `spans` are in order too."""
    return _Comparing(source, target, spans).run()


class _Comparing:
    def __init__(self, source: Sequence[RecordFact], target: Sequence[RecordFact], spans: Sequence[MappedSpan]) -> None:
        self.source = source
        self.target = target
        self.spans = spans
        self._starts = [span.source for span in spans]
        self._images = sorted((span.target, span.records) for span in spans)
        self._image_starts = [start for start, _ in self._images]

    def run(self) -> Compared:
        place = {fact.offset: number for number, fact in enumerate(self.target)}
        images = [self._image(fact.offset) for fact in self.source]
        held = [
            _Pair(number, place[image])
            for number, (fact, image) in enumerate(zip(self.source, images, strict=True))
            if image in place and fact[1:] == self.target[place[image]][1:]
        ]
        result = Compared(equal=len(held))
        if sum(span.records for span in self.spans) > len(held):
            result.gone = list(self._gone(place))
        if len(held) == len(self.source) == len(self.target):
            return result
        here = sorted({*range(len(self.source))} - {pair.here for pair in held})
        there = sorted({*range(len(self.target))} - {pair.there for pair in held})
        moved, here, there = self._moved(here, there)
        in_order = self._in_order(held, moved)
        for pair in moved:
            kind = Kind.MISPLACED if pair in in_order else Kind.OUT_OF_ORDER
            result.judged.append(self._judged(kind, pair, self._where(images[pair.here], pair)))
        altered, here, there = self._altered(here, there, images, sorted([*held, *in_order]))
        result.judged += [self._judged(Kind.ALTERED, pair, self._what(pair)) for pair in altered]
        result.judged += self._alone(here, there, images)
        result.judged.sort(key=_by_offset)
        return result

    def _image(self, offset: int) -> int | None:
        number = bisect_right(self._starts, offset) - 1
        if number < 0 or offset >= self.spans[number].source + self.spans[number].records:
            return None
        return self.spans[number].target + offset - self.spans[number].source

    def _is_mapped(self, offset: int) -> bool:
        number = bisect_right(self._image_starts, offset) - 1
        return number >= 0 and offset < self._images[number][0] + self._images[number][1]

    def _gone(self, place: Mapping[int, int]) -> Iterator[MappedSpan]:
        """The stretches of the ledger's spans that have a record on neither side."""
        sources = {fact.offset for fact in self.source}
        for source, target, records in self.spans:
            begun = None
            for step in range(records + 1):
                gone = step < records and source + step not in sources and target + step not in place
                if gone and begun is None:
                    begun = step
                elif not gone and begun is not None:
                    yield MappedSpan(source + begun, target + begun, step - begun)
                    begun = None

    def _moved(self, here: list[int], there: list[int]) -> tuple[list[_Pair], list[int], list[int]]:
        """Equal records at other places, the first with the first; and what is left of both sides."""
        waiting: dict[object, deque[int]] = defaultdict(deque)
        for number in there:
            waiting[self.target[number][1:]].append(number)
        pairs, alone = [], []
        for number in here:
            same = waiting.get(self.source[number][1:])
            if same:
                pairs.append(_Pair(number, same.popleft()))
            else:
                alone.append(number)
        return pairs, alone, sorted(number for left in waiting.values() for number in left)

    @staticmethod
    def _in_order(held: Sequence[_Pair], moved: Sequence[_Pair]) -> set[_Pair]:
        """The moved that kept their order among the records that stayed, as many of them as can be."""
        here, there = [pair.here for pair in held], [pair.there for pair in held]
        steady = [pair for pair in moved if bisect_left(here, pair.here) == bisect_left(there, pair.there)]
        return set(_longest_rising(steady))

    def _altered(
        self, here: list[int], there: list[int], images: Sequence[int | None], anchors: Sequence[_Pair]
    ) -> tuple[list[_Pair], list[int], list[int]]:
        """Pairs of records of which one became the other: at the same place, or alone between the same neighbours."""
        by_offset = {self.target[number].offset: number for number in there}
        pairs: list[_Pair] = []
        for number in here:
            image = images[number]
            other = None if image is None else by_offset.get(image)
            if other is not None and _akin(self.source[number], self.target[other]):
                pairs.append(_Pair(number, other))
        taken_here, taken_there = {pair.here for pair in pairs}, {pair.there for pair in pairs}
        here = [number for number in here if number not in taken_here]
        there = [number for number in there if number not in taken_there]
        between = list(self._between(here, there, sorted([*anchors, *pairs])))
        pairs += between
        found_here, found_there = {pair.here for pair in between}, {pair.there for pair in between}
        return pairs, [n for n in here if n not in found_here], [n for n in there if n not in found_there]

    def _between(self, here: Sequence[int], there: Sequence[int], anchors: Sequence[_Pair]) -> Iterator[_Pair]:
        steady = _longest_rising(anchors)
        gaps: dict[int, deque[int]] = defaultdict(deque)
        bounds_there = [pair.there for pair in steady]
        for number in there:
            gaps[bisect_left(bounds_there, number)].append(number)
        bounds_here = [pair.here for pair in steady]
        for number in here:
            waiting = gaps.get(bisect_left(bounds_here, number))
            if waiting and _akin(self.source[number], self.target[waiting[0]]):
                yield _Pair(number, waiting.popleft())

    def _alone(self, here: Sequence[int], there: Sequence[int], images: Sequence[int | None]) -> Iterator[Judged]:
        """What has no counterpart at all."""
        originals: dict[object, RecordFact] = {}
        if there:
            originals = {fact[1:]: fact for fact in reversed(self.source)}
        for number in here:
            unknown = _NO_ROW if images[number] is None else ""
            yield Judged(Kind.MISSING, self.source[number], None, unknown)
        for number in there:
            fact = self.target[number]
            original = originals.get(fact[1:])
            if original is not None:
                yield Judged(Kind.DOUBLED, original, fact)
            else:
                yield Judged(Kind.EXTRA if self._is_mapped(fact.offset) else Kind.FOREIGN, None, fact)

    def _judged(self, kind: Kind, pair: _Pair, detail: str) -> Judged:
        return Judged(kind, self.source[pair.here], self.target[pair.there], detail)

    def _where(self, image: int | None, pair: _Pair) -> str:
        if image is None:
            return _NO_ROW
        # As a distance, so that records which moved together are told together.
        return f"{self.target[pair.there].offset - image:+} offsets from where the ledger says"

    def _what(self, pair: _Pair) -> str:
        source, target = self.source[pair.here], self.target[pair.there]
        parts = {
            "key": source.key != target.key,
            "value": source.value != target.value,
            "headers": source.headers != target.headers,
            "timestamp": source.timestamp_ms != target.timestamp_ms,
        }
        return ", ".join(name for name, differs in parts.items() if differs)


def _akin(source: RecordFact, target: RecordFact) -> bool:
    """Whether one may have become the other: they share a key, a value or a time."""
    return (
        (source.key is not None and source.key == target.key)
        or (bool(source.value) and source.value == target.value)
        or (source.timestamp_ms >= 0 and source.timestamp_ms == target.timestamp_ms)
    )


def _longest_rising(pairs: Sequence[_Pair]) -> list[_Pair]:
    """The longest part of `pairs`, which rise on the one side, that rises on the other side too."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, pair in enumerate(pairs):
        place = bisect_left(tails, pair.there)
        before.append(ends[place - 1] if place else -1)
        if place == len(tails):
            tails.append(pair.there)
            ends.append(number)
        else:
            tails[place], ends[place] = pair.there, number
    chosen = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chosen.append(pairs[at])
        at = before[at]
    return chosen[::-1]


def _by_offset(judged: Judged) -> tuple[int, int, int]:
    if judged.target is not None and judged.kind in (Kind.DOUBLED, Kind.EXTRA, Kind.FOREIGN):
        return 1, judged.target.offset, 0
    return 0, 0 if judged.source is None else judged.source.offset, 0
