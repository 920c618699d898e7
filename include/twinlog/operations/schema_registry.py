"""What a flow that mirrors the Schema Registry's topic says of it: is it there, do the records' ids resolve, and what
has to change before the standby registry may register.

The topic is mirrored under its own name and one way only, in its one partition, so ids mean the same on both sides.
While the flow mirrors it, nobody may write to it on the target.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from twinlog.cluster.committed_records import read_committed_records
from twinlog.cluster.raw import RawClient
from twinlog.cluster.topic_settings import read_settings
from twinlog.errors import ClusterError
from twinlog.model.offsets import TopicPartition
from twinlog.model.schemas import Schemas, conflicts, ids_in, read_schemas
from twinlog.model.topology import Cluster, Flow

SAMPLED = 200
"""Last records of a partition whose ids are looked at."""
PARTITIONS_AT_MOST = 200
WITHIN_S = 10.0
_POLICY = "cleanup.policy"
_ELIGIBLE = "leader.eligibility"


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a registry's configuration, on every one of its nodes."""

    registry: str
    """The cluster that the registry stands beside."""
    name: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


@dataclass(frozen=True)
class RegistryLook:
    """What was found on the target."""

    topic: str
    cluster: str
    schemas: int | None = None
    """Versions that the mirrored topic holds; None where it is not there."""
    properties: tuple[Property, ...] = ()
    missing: tuple[dict[str, Any], ...] = ()
    """Ids that records on the target use and the mirrored topic lacks: topic, part (key or value), id, records."""
    sampled: int = 0
    """Partitions that were looked at for that, of all."""
    partitions: int = 0
    problems: tuple[str, ...] = ()

    @property
    def sentences(self) -> Iterator[str]:
        """For people who take over."""
        if self.schemas is None:
            yield f"{self.topic} is not on {self.cluster}: no schema id resolves there"
            return
        yield (
            f"schemas: register no new ones and do not restart the registry of {self.cluster} during the disaster; it "
            f"resolves the {self.schemas:,} versions that came over. It may register only once this flow has failed "
            f"over, and with these properties: {by_registry(self.properties)}"
        )
        yield from self.problems
        for one in self.missing:
            yield (
                f"schema id {one['id']} is used by {one['records']:,} sampled records of {one['topic']} "
                f"({one['part']}) and is not in {self.topic} on {self.cluster}"
            )
        if self.sampled < self.partitions:
            yield f"ids were looked for in {self.sampled:,} of {self.partitions:,} partitions"

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "cluster": self.cluster,
            "schemas": self.schemas,
            "properties": [asdict(one) for one in self.properties],
            "missing": list(self.missing),
            "sampled": self.sampled,
            "partitions": self.partitions,
            "problems": list(self.problems),
            "sentences": list(self.sentences),
        }


def registry_properties(topic: str, leading: Cluster, other: Cluster) -> tuple[Property, ...]:
    """What lets the registry beside `leading` register, and keeps the other from it."""
    return (
        Property(
            leading.alias,
            "kafkastore.bootstrap.servers",
            leading.bootstrap_servers,
            f"it keeps its schemas on {leading.alias} itself",
        ),
        Property(leading.alias, "kafkastore.topic", topic, "the mirrored topic, under its own name"),
        Property(
            leading.alias,
            _ELIGIBLE,
            "true",
            "once it is to register (master.eligibility before Confluent Platform 6); restart the nodes one at a time",
        ),
        Property(
            other.alias,
            _ELIGIBLE,
            "false",
            f"before that cluster comes back: two that register would give one id to two schemas on {topic}",
        ),
    )


def by_registry(properties: Sequence[Property]) -> str:
    """For people: whose properties are which."""
    clusters = dict.fromkeys(one.registry for one in properties)
    return "; ".join(
        f"on the registry of {cluster} {', '.join(str(one) for one in properties if one.registry == cluster)}"
        for cluster in clusters
    )


def registry_home(topic: str, source: Cluster, target: Cluster) -> str:
    """What to do about the registries while a flow fails back from its target to its source."""
    there, here = registry_properties(topic, source, target)[2:][::-1]
    return (
        f"schemas: keep the registry of {target.alias} from registering before the last of {topic} goes home "
        f"({by_registry([there])}), and let that of {source.alias} register once the flow is active "
        f"({by_registry([here])}); schemas that were registered on {target.alias} go home"
    )


def read_registry(client: RawClient, topic: str) -> Schemas | None:
    """All schemas of the topic; None where it is not there."""
    if client.run(client.metadata([topic])).topics[topic].is_missing:
        return None
    records = client.run(read_committed_records(client, TopicPartition(topic, 0)))
    return read_schemas((record.key, record.value) for record in records)


def look_at_registry(
    target: RawClient, flow: Flow, clusters: tuple[Cluster, Cluster], twins: Sequence[str]
) -> RegistryLook | None:
    """`clusters` are the flow's source and target; None where the flow mirrors no registry."""
    topic = flow.schemas_topic
    if topic is None:
        return None
    source, there = clusters
    schemas = read_registry(target, topic)
    if schemas is None:
        return RegistryLook(topic, flow.target)
    known = {number.number for number in schemas.ids}
    names = [twin for twin in twins if twin != topic]
    missing, sampled, partitions = _missing(target, names, known)
    return RegistryLook(
        topic,
        flow.target,
        len(schemas.versions),
        registry_properties(topic, there, source),
        tuple(missing),
        sampled,
        partitions,
        tuple(_problems(target, topic)),
    )


def registry_conflicts(source: RawClient, target: RawClient, topic: str) -> list[str]:
    """Why the schemas of the two clusters can't be brought together, both named; nothing where they can."""
    home, away = read_registry(source, topic), read_registry(target, topic)
    if home is None or away is None:
        return []
    return [
        f"{found.what} of {topic} is {found.here} on {source.alias} and {found.there} on {target.alias}: schemas were "
        "registered on both sides. Register the one that fewer records use under another id, and delete it there, "
        "before the flow fails back"
        for found in conflicts(home, away)
    ]


def _problems(target: RawClient, topic: str) -> Iterator[str]:
    count = len(target.run(target.metadata([topic])).topics[topic].partitions)
    if count != 1:
        yield f"{topic} has {count} partitions on {target.alias}; a registry keeps its order in one"
    settings = target.run(read_settings(target, [topic], [_POLICY])).topics.get(topic)
    if settings is not None and "compact" not in settings.effective.get(_POLICY, "compact"):
        yield f"{topic} is not compacted on {target.alias}: schemas will expire there"


def _missing(target: RawClient, names: Sequence[str], known: set[int]) -> tuple[list[dict[str, Any]], int, int]:
    """What is missing, how many partitions were looked at, and how many there are."""
    view = target.run(target.metadata(list(names))).topics if names else {}
    partitions = [TopicPartition(name, number) for name in names for number in range(len(view[name].partitions))]
    deadline = time.monotonic() + WITHIN_S
    found: dict[tuple[str, str, int], int] = {}
    sampled = 0
    for partition in partitions[:PARTITIONS_AT_MOST]:
        if time.monotonic() > deadline:
            break
        try:
            records = target.run(read_committed_records(target, partition, SAMPLED))
        except ClusterError as refused:
            if refused.retriable:
                raise
            continue
        sampled += 1
        for part, values in (("key", [one.key for one in records]), ("value", [one.value for one in records])):
            for number, count in ids_in(values).items():
                if number not in known:
                    place = partition.topic, part, number
                    found[place] = found.get(place, 0) + count
    rows = [
        {"topic": topic, "part": part, "id": number, "records": count}
        for (topic, part, number), count in sorted(found.items())
    ]
    return rows, sampled, len(partitions)
