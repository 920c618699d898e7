"""Which twins are missing, have too few partitions, or have lost their source; pure, from what both sides say.

A topic is deleted only if Twinlog created it and it is still that one, by its id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from twinlog.model.made import MadeTopic
from twinlog.model.twin_settings import WantedSettings


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as its cluster describes it."""

    name: str
    topic_id: UUID | None
    partitions: int
    replicas: int


@dataclass(frozen=True, slots=True)
class NewTwin:
    """A topic to create, with the settings it needs from its first moment on."""

    name: str
    source: TopicFacts
    replication_factor: int
    """-1 where the target's default holds and is not known."""
    wanted: WantedSettings

    @property
    def partitions(self) -> int:
        return self.source.partitions


@dataclass(frozen=True, slots=True)
class Growth:
    """A topic whose source has more partitions."""

    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Deletion:
    """A twin whose source is gone."""

    name: str
    topic_id: UUID
    source: str
    due_at_ms: int
    """When the grace period ends."""


class ReportKind(StrEnum):
    """What sync can only tell."""

    SHRUNK = "shrunk"
    RECREATED = "recreated"
    SOURCE_REPLACED = "source replaced"
    TWO_LEADERS = "two leaders"


@dataclass(frozen=True, slots=True)
class Report:
    """Something that a person must decide; the message is a whole sentence."""

    kind: ReportKind
    topic: str
    message: str


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What to do about the topics themselves."""

    missing: tuple[str, ...]
    """Names on the target."""
    grow: tuple[Growth, ...]
    reports: tuple[Report, ...]
    gone_at_home: tuple[str, ...] = ()
    """Topics that came from the target and are there no longer; somebody deleted them, so they stay deleted."""


def plan_topics(
    sources: Mapping[str, TopicFacts],
    targets: Mapping[str, TopicFacts],
    known: Mapping[str, UUID],
    came_back: Collection[str] = frozenset(),
) -> TopicPlan:
    """`sources` are the mirrored topics by the name of their twin; `targets` and `known` are by name.

    `known` says which topic of the source each twin was the twin of when it was last looked at; `came_back` are those
    of the sources that were made from a topic of the target.
    """
    missing: list[str] = []
    gone_at_home: list[str] = []
    grow: list[Growth] = []
    reports: list[Report] = []
    for name, source in sorted(sources.items()):
        twin = targets.get(name)
        if twin is None:
            (gone_at_home if name in came_back else missing).append(name)
        elif twin.partitions < source.partitions:
            grow.append(Growth(name, twin.partitions, source.partitions))
        elif twin.partitions > source.partitions:
            reports.append(Report(ReportKind.SHRUNK, source.name, _shrunk(source, twin, known.get(name))))
        if name in known and source.topic_id is not None and known[name] != source.topic_id:
            message = (
                f"topic {source.name} was deleted and created again on the source since {name} became its twin; "
                f"{name} holds the old topic's records"
            )
            reports.append(Report(ReportKind.RECREATED, source.name, message))
    return TopicPlan(tuple(missing), tuple(grow), tuple(reports), tuple(gone_at_home))


def _shrunk(source: TopicFacts, twin: TopicFacts, known: UUID | None) -> str:
    found = (
        f"topic {source.name} has {source.partitions} partitions on the source and {twin.name} has {twin.partitions} "
        "on the target"
    )
    if known is not None and known == source.topic_id:
        return f"{found}, where somebody has added some; they stay empty until {source.name} has as many"
    return (
        f"{found}; Kafka can't take partitions away, so if {source.name} was created again, delete {twin.name} and let "
        "it be mirrored anew"
    )


@dataclass(frozen=True, slots=True)
class DeletionRules:
    """When a twin may follow its source into deletion."""

    source_cluster: str | None
    """The id of the cluster that is the source now."""
    now_ms: int
    grace_ms: int


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """Twins without a source, and those that are kept although theirs is gone."""

    deletions: tuple[Deletion, ...] = ()
    reports: tuple[Report, ...] = ()


def plan_deletions(
    gone: Iterable[str], targets: Mapping[str, TopicFacts], made: Mapping[str, MadeTopic], rules: DeletionRules
) -> DeletionPlan:
    """The twins that Twinlog made of topics in `gone`, the source's names that no longer exist there.

    A source that is another cluster now may simply not have its topics yet: nothing is deleted for that.
    """
    lost = set(gone)
    deletions: list[Deletion] = []
    kept: list[str] = []
    for name, topic in sorted(made.items()):
        if topic.source not in lost or name not in targets or targets[name].topic_id != topic.target_id:
            continue
        if topic.source_cluster != rules.source_cluster:
            kept.append(name)
        else:
            due_at_ms = (topic.gone_since_ms or rules.now_ms) + rules.grace_ms
            deletions.append(Deletion(name, topic.target_id, topic.source, due_at_ms))
    if not kept:
        return DeletionPlan(tuple(deletions))
    message = (
        f"the source is another cluster than the one that {kept[0]} and {len(kept) - 1} more topics were mirrored "
        f"from; their sources are not on it, and they are kept"
    )
    return DeletionPlan(tuple(deletions), (Report(ReportKind.SOURCE_REPLACED, made[kept[0]].source, message),))


def replication_factor(said: int | str, source: TopicFacts, brokers: int, target_default: int | None) -> int:
    """As the flow says: a number, `source` or `target`; never more than there are brokers."""
    if said in ("target", -1):
        return -1 if target_default is None else target_default
    return min(source.replicas if said == "source" else int(said), brokers)
