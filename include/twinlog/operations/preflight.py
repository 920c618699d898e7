"""Whether the clusters are fit to hold twins: what the loss of a broker would cost, on either side, internal topics
and those that are about to be made included.

One warning a concern and cluster, however many topics it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import named, sentences
from twinlog.cluster.topic_settings import SettingsRead, read_settings
from twinlog.model.twin_settings import MIN_IN_SYNC, TopicSettings
from twinlog.operations.own_topics import PlannedTopic

ENOUGH_REPLICAS = 3
ENOUGH_IN_SYNC = 2
LISTED_AT_MOST = 20
"""Topics of a warning in JSON: a page shows them and Airflow keeps them."""


class Concern(StrEnum):
    """What is wrong."""

    OFFLINE = "offline"
    UNDER_REPLICATED = "under-replicated"
    ONE_RACK = "one rack"
    FEW_REPLICAS = "replication factor"
    FEW_IN_SYNC = "min.insync.replicas"
    NOT_JUDGED = "not judged"


_WORDS = {
    Concern.OFFLINE: "partitions without a leader, which can be neither read nor written",
    Concern.UNDER_REPLICATED: "partitions with replicas that are not in sync",
    Concern.ONE_RACK: "partitions with all replicas in one rack, though the cluster has several",
    Concern.FEW_REPLICAS: f"fewer than {ENOUGH_REPLICAS} replicas, so that one lost broker may lose records",
    Concern.FEW_IN_SYNC: f"{MIN_IN_SYNC} below {ENOUGH_IN_SYNC}, so that an acknowledged record may be on one broker",
}


@dataclass(frozen=True, slots=True)
class PreflightWarning:
    """A concern about topics of one cluster."""

    concern: Concern
    cluster: str
    topics: tuple[str, ...]
    said: str | None = None
    """The sentence, where the concern alone does not make it."""

    @property
    def message(self) -> str:
        if self.said is not None:
            return self.said
        count = "1 topic has" if len(self.topics) == 1 else f"{len(self.topics):,} topics have"
        return f"cluster {self.cluster}: {count} {_WORDS[self.concern]}: {named(self.topics)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "concern": self.concern,
            "cluster": self.cluster,
            "count": len(self.topics),
            "topics": list(self.topics[:LISTED_AT_MOST]),
            "message": self.message,
        }


@dataclass(frozen=True)
class PreflightSide:
    """One cluster, as it described itself, and the topics that matter there."""

    client: RawClient
    view: ClusterMetadata
    principal: str
    topics: Iterable[str]
    settings: Mapping[str, TopicSettings] = field(default_factory=dict)
    """Of topics whose settings have been read already."""
    planned: Sequence[PlannedTopic] = ()


async def preflight(*sides: PreflightSide) -> list[PreflightWarning]:
    """What is wrong on each side; settings that may not be read are a warning of their own."""
    warnings: list[PreflightWarning] = []
    for side in sides:
        topics = [side.view.topics[name] for name in sorted(set(side.topics)) if name in side.view.topics]
        unread = [topic.name for topic in topics if topic.name not in side.settings]
        read = await read_settings(side.client, unread, [MIN_IN_SYNC])
        in_sync = {
            name: int(settings.effective.get(MIN_IN_SYNC, "1"))
            for name, settings in {**side.settings, **read.topics}.items()
        }
        warnings += concerns(side.client.alias, side.view, topics, in_sync, side.planned)
        warnings += _not_judged(side, read)
    return warnings


def _not_judged(side: PreflightSide, read: SettingsRead) -> Iterator[PreflightWarning]:
    refused = {f"topic {name}": found for name, found in read.refused.items()}
    consequence = f"{MIN_IN_SYNC} is not judged there"
    for said in sentences(side.client.alias, side.principal, "DESCRIBE_CONFIGS", refused, consequence):
        yield PreflightWarning(Concern.NOT_JUDGED, side.client.alias, tuple(read.refused), said)


def concerns(
    alias: str,
    view: ClusterMetadata,
    topics: Iterable[Topic],
    min_in_sync: Mapping[str, int],
    planned: Iterable[PlannedTopic] = (),
) -> list[PreflightWarning]:
    """What is wrong with these topics; a topic whose setting is not known is not judged by it."""
    racks = {broker.node_id: broker.rack for broker in view.brokers.values() if broker.rack}
    several_racks = len(set(racks.values())) > 1

    def one_rack(topic: Topic) -> bool:
        return several_racks and any(
            len(one.replicas) > 1 and len({racks.get(node) for node in one.replicas}) == 1 for one in topic.partitions
        )

    judged: dict[Concern, Callable[[Topic], bool]] = {
        Concern.OFFLINE: lambda topic: any(one.leader is None for one in topic.partitions),
        Concern.UNDER_REPLICATED: lambda topic: any(len(one.in_sync) < len(one.replicas) for one in topic.partitions),
        Concern.ONE_RACK: one_rack,
        Concern.FEW_REPLICAS: lambda topic: any(len(one.replicas) < ENOUGH_REPLICAS for one in topic.partitions),
        Concern.FEW_IN_SYNC: lambda topic: min_in_sync.get(topic.name, ENOUGH_IN_SYNC) < ENOUGH_IN_SYNC,
    }
    known = list(topics)
    found = {concern: [topic.name for topic in known if wrong(topic)] for concern, wrong in judged.items()}
    for topic in planned:
        if topic.replicas < ENOUGH_REPLICAS:
            found[Concern.FEW_REPLICAS].append(topic.name)
        if topic.min_in_sync is not None and topic.min_in_sync < ENOUGH_IN_SYNC:
            found[Concern.FEW_IN_SYNC].append(topic.name)
    return [PreflightWarning(concern, alias, tuple(sorted(names))) for concern, names in found.items() if names]
