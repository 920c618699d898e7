"""The failback of a flow, as values: what is asked for, what is found on the cluster that has returned, how far it is.

nyc   a a a a | s s            s stranded: written before nyc went, and not mirrored
lon   a a a a | w w w w        w written since lon took over
              ^ the position

resume      nyc   a a a a s s w w w w      the stranded as was chosen, then what was written on lon goes home
rebuild     nyc   a a a a w w w w          everything comes from lon, into topics made anew
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from enum import StrEnum
from typing import Any

from twinlog.model.acls import Acl, acl_of
from twinlog.model.offsets import PartitionPair, Span, offsets_among
from twinlog.model.plan import Partitions
from twinlog.model.positions import Position


class Mode(StrEnum):
    """What is taken for granted of the returned cluster's data."""

    RESUME = "resume"
    """It is intact."""
    REBUILD = "rebuild"
    """It is lost, or not to be trusted: the flow's topics there are deleted and filled anew."""


class Stranded(StrEnum):
    """What becomes of records that were written on the source and never crossed."""

    LEAVE = "leave"
    """They stay on the source, and the target never gets them: a counted gap."""
    TOPIC = "topic"
    """They go to a topic of their own on the target, and are a counted gap in the twin."""
    APPEND = "append"
    """They are mirrored now, behind what was written on the target since: in another order than on the source."""


class Step(StrEnum):
    """What a failback does, in this order. Each may be done again, and one that is recorded as done is not."""

    BEGIN = "begin"
    """The flow is failing back: nothing else runs it, and its writers are fenced."""
    EXPORT = "export"
    """The stranded records are kept as Parquet beside the ledger."""
    SETTLE = "settle"
    """The flow's positions move past the stranded records, as was chosen."""
    DELETE = "delete"
    """Topics that are to be rebuilt are deleted on the returned cluster, and made anew."""
    HOME = "home"
    """What was written on the target goes home, while it is still being written to."""
    SEAM = "seam"
    """Nobody writes on the target any more, and the last of it is home."""
    OVER = "over"
    """The flow passes over what came home, and has nothing left to copy."""
    GROUPS = "groups"
    """Consumer groups go on, on the source, where they stopped on the target."""
    PROVE = "prove"
    """Both logs are compared."""
    RESUME = "resume"
    """The flow is active again."""
    HOOKS = "hooks"
    """Whoever is to be told is told."""


STEPS = tuple(Step)


@dataclass(frozen=True, slots=True)
class FailbackProgress:
    """How far one failback has come; its plan lies beside the ledger under its id."""

    id: str
    done: int = 0
    """How many of STEPS."""
    ended_at_ms: int = 0
    """0 while it is under way."""
    blocked: tuple[Acl, ...] = ()
    """What was denied on the target so that the last of it could go home; kept there, since the source may go again."""

    def after(self, step: Step) -> FailbackProgress:
        return replace(self, done=max(self.done, STEPS.index(step) + 1))

    @property
    def left(self) -> tuple[Step, ...]:
        return STEPS[self.done :]

    @property
    def under_way(self) -> bool:
        return self.ended_at_ms == 0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "blocked": [list(astuple(acl)) for acl in self.blocked]}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> FailbackProgress:
        return cls(**{**said, "blocked": tuple(acl_of(words) for words in said.get("blocked", ()))})


class Damage(StrEnum):
    """Why a topic of the returned cluster can't simply go on."""

    MISSING = "missing"
    RECREATED = "recreated"
    """It is another topic of the same name."""
    TRUNCATED = "truncated"
    """It has lost records that had been mirrored."""
    REPLACED = "replaced"
    """Its twin is another topic of the same name, made since: what the two hold has nothing to do with each other."""


@dataclass(frozen=True, slots=True)
class DamagedPartition:
    """One partition of the returned cluster, with what it should have and does not."""

    topic: str
    partition: int
    damage: Damage
    expected: str
    found: str

    @property
    def message(self) -> str:
        says = {
            Damage.MISSING: "is not there",
            Damage.RECREATED: "was deleted and created again",
            Damage.TRUNCATED: "has lost records that had been mirrored",
            Damage.REPLACED: "has a twin that was deleted and created again",
        }
        return (
            f"{self.topic}-{self.partition} {says[self.damage]}: {self.expected} was mirrored, {self.found} is there; "
            "it has to be rebuilt"
        )


@dataclass(frozen=True, slots=True)
class StrandedSpan:
    """Offsets `[start, end)` of a returned partition that lie beyond its position.

    start                                        end
      s s s | b b b b | s s | b b b b b |         s never crossed; b came home from the target, and is not stranded
    """

    pair: PartitionPair
    start: int
    end: int
    expired: int = 0
    """Offsets right before `start` that retention removed before anybody could copy them."""
    returned: tuple[Span, ...] = ()
    """What came from the target, from the position on, in order."""

    @property
    def offsets(self) -> int:
        return self.end - self.start

    @property
    def pieces(self) -> Iterator[tuple[Span, bool]]:
        """All of it in order, each piece with whether it came from the target."""
        at = self.start
        for span in self.returned:
            begin, end = max(span.start, at), min(span.end, self.end)
            if begin >= end:
                continue
            if at < begin:
                yield Span(at, begin), False
            yield Span(begin, end), True
            at = end
        if at < self.end:
            yield Span(at, self.end), False

    def up_to(self, end: int) -> StrandedSpan:
        """The same without what lies at or beyond `end`."""
        return replace(self, end=max(self.start, min(self.end, end)))


def damaged(found: Partitions) -> Iterator[DamagedPartition]:
    """The partitions whose position does not fit what the returned cluster has; last stable offsets are cut to where
    the log is known to be that of before."""
    for pair, position, end in zip(found.pairs, found.positions, found.last_stable, strict=True):
        if position is None:
            continue
        if position.source_topic_id != pair.source_topic_id:
            was, now = f"topic {position.source_topic_id}", f"topic {pair.source_topic_id}"
            yield DamagedPartition(pair.source_topic, pair.partition, Damage.RECREATED, was, now)
        elif end < position.offset:
            was, now = f"up to offset {position.offset}", f"the same log up to offset {end}"
            yield DamagedPartition(pair.source_topic, pair.partition, Damage.TRUNCATED, was, now)


def stranded(found: Partitions) -> Iterator[StrandedSpan]:
    """What each undamaged partition has beyond its position, what has expired there included."""
    columns = zip(found.pairs, found.positions, found.log_starts, found.last_stable, found.returned, strict=True)
    for pair, position, log_start, end, returned in columns:
        if position is None or not _fits(pair, position) or end < position.offset:
            continue
        start = max(position.offset, log_start)
        if start < end or start > position.offset:
            came_back = offsets_among(returned, position.offset, start)
            expired = start - position.offset - came_back
            yield StrandedSpan(pair, start, max(end, start), expired, tuple(returned))


def _fits(pair: PartitionPair, position: Position) -> bool:
    return position.source_topic_id == pair.source_topic_id
