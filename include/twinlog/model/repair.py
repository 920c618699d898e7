"""What a reconciliation has found, sorted by what can be done about it.

settings, partitions, permissions   put right by a sync
rows of the ledger, holes in it     the ledger rebuilt from the journal
checkpoints                         written anew
records                             the topic copied again into a fresh one, which then takes the twin's place; or
                                    what is missing appended to `<twin>.recovered`, where order can't be restored
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from twinlog.model.offsets import Span
from twinlog.model.reconciliation import Difference, Kind

RECOVERED_TOPIC = ".recovered"


class Records(StrEnum):
    """What is to become of topics whose records differ."""

    RECOPY = "recopy"
    """Copied again into a fresh topic, which takes the twin's place; recovered where that can't be."""
    RECOVER = "recover"
    """What is missing or altered goes to a topic of its own beside the twin, which stays as it is."""
    LEAVE = "leave"


class Remedy(StrEnum):
    """A step of a repair, in their order."""

    SETTINGS = "settings"
    LEDGER = "ledger"
    RECOVER = "recover"
    RECOPY = "recopy"
    CHECKPOINTS = "checkpoints"


SETTLED_BY_SYNC = frozenset({Kind.SETTING, Kind.PARTITIONS, Kind.PERMISSION})
OF_LEDGER = frozenset({Kind.LEDGER, Kind.HOLE})
OF_RECORDS = frozenset(
    {Kind.MISSING, Kind.EXTRA, Kind.ALTERED, Kind.OUT_OF_ORDER, Kind.MISPLACED, Kind.DOUBLED, Kind.FOREIGN}
)
BESIDE_RECORDS = SETTLED_BY_SYNC | {Kind.GROUP}
RECOVERABLE = frozenset({Kind.MISSING, Kind.ALTERED})
"""Of which the source has a record that the target lacks."""
_MOVED = frozenset({Kind.MISPLACED, Kind.OUT_OF_ORDER})


@dataclass(frozen=True)
class Harm:
    """What is wrong with one topic's records."""

    topic: str
    kinds: dict[str, int] = field(default_factory=dict)
    """How many records, by what was found of them."""
    lacking: dict[int, list[Span]] = field(default_factory=dict)
    """Source offsets of what the target lacks, by partition."""

    @property
    def lacks(self) -> int:
        return sum(span.end - span.start for spans in self.lacking.values() for span in spans)

    @property
    def words(self) -> str:
        return ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.kinds.items()))


def harms(differences: Iterable[Difference]) -> dict[str, Harm]:
    """By topic, what is wrong with its records."""
    found: dict[str, Harm] = {}
    for one in differences:
        if one.topic is None or one.kind not in OF_RECORDS:
            continue
        harm = found.setdefault(one.topic, Harm(one.topic))
        harm.kinds[one.kind.value] = harm.kinds.get(one.kind.value, 0) + one.count
        if one.kind in RECOVERABLE and one.partition is not None and one.source_offset is not None:
            span = Span(one.source_offset, one.source_offset + one.count)
            harm.lacking.setdefault(one.partition, []).append(span)
    for harm in found.values():
        for partition, spans in harm.lacking.items():
            harm.lacking[partition] = list(merged(spans))
    return found


def merged(spans: Iterable[Span]) -> Iterator[Span]:
    """The same offsets as few spans, in order."""
    current: Span | None = None
    for span in sorted(spans):
        if current is not None and span.start <= current.end:
            current = Span(current.start, max(current.end, span.end))
            continue
        if current is not None:
            yield current
        current = span
    if current is not None:
        yield current


def less_recovered(missing: Difference, recovered: Iterable[Span]) -> Iterator[Difference]:
    """What of missing records is in no topic of its own; `recovered` are source offsets in order, apart."""
    at = missing.source_offset
    if at is None:
        yield missing
        return
    end = at + missing.count
    for span in (*recovered, Span(end, end)):
        start = min(max(span.start, at), end)
        if start > at:
            yield _part(missing, at, start)
        at = max(at, min(span.end, end))


def _part(missing: Difference, start: int, end: int) -> Difference:
    moved_by = start - (missing.source_offset or 0)
    target = None if missing.target_offset is None else missing.target_offset + moved_by
    return replace(missing, source_offset=start, target_offset=target, count=end - start)


@dataclass(frozen=True, slots=True)
class Moved:
    """Records that are not where the ledger says: `count` from these offsets on, one by one on both sides."""

    partition: int
    source: int
    target: int
    count: int


def moved(differences: Iterable[Difference], topic: str) -> list[Moved]:
    """What of a topic the ledger would translate wrongly."""
    return [
        Moved(one.partition, one.source_offset, one.target_offset, one.count)
        for one in differences
        if one.topic == topic
        and one.kind in _MOVED
        and one.partition is not None
        and one.source_offset is not None
        and one.target_offset is not None
    ]


def source_of(target_offset: int, partition: int, moves: Iterable[Moved]) -> int | None:
    """The source's offset of the record at an offset of the target, where it is one that moved."""
    for one in moves:
        if one.partition == partition and one.target <= target_offset < one.target + one.count:
            return one.source + target_offset - one.target
    return None
