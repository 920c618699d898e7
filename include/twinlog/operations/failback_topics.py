"""Topics that a failback makes: those of a returned cluster anew, and those that stranded records go to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from twinlog.cluster.inventory import settled_offsets
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import demand, named, sentences
from twinlog.cluster.topic_admin import TopicToCreate, create_topics, delete_topics, grow_topics
from twinlog.cluster.topic_settings import read_settings
from twinlog.cluster.visibility import topics_visible
from twinlog.errors import FailbackError
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow
from twinlog.model.twin_settings import MIN_IN_SYNC, NEEDED
from twinlog.operations.failback_stamps import AS_THEY_ARE, STAMPS, held_back

GONE_WITHIN_S = 60.0
PAUSE_S = 0.1
_LARGEST = "max.message.bytes"
_KEEPS_ALL = {
    # Stranded records are as old as the outage was long, and their topic is nobody's to clean but people's.
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
}


def make_anew(
    source: RawClient, target: RawClient, flow: Flow, approved: Mapping[str, UUID], wanted: Mapping[str, str]
) -> list[str]:
    """Delete what was `approved`, by its id, and make each of `wanted` (twin: name) as its twin is.

    A topic that is there under another id by then was made by an earlier try, or by somebody else: it must be empty.
    Answers what was refused, in sentences.
    """
    topics = list(_as_twins(source, target, flow, approved, wanted))
    refused = source.run(delete_topics(source, approved))
    if refused:
        by_topic = {f"topic {name}": why for name, why in refused.items()}
        return list(sentences(source.alias, source.principal, "DELETE", by_topic, "nothing was rebuilt"))
    _await_gone(source, approved)
    created = source.run(create_topics(source, topics))
    by_topic = {f"topic {name}": why for name, why in created.refused.items()}
    demand(source.alias, source.principal, "CREATE", by_topic, "nothing was rebuilt")
    found = [topic for topic in topics if topic.name not in created.ids]
    _grow(source, found)
    source.run(topics_visible(source, {topic.name: topic.partitions for topic in topics}))
    return list(_not_empty(source, [topic.name for topic in found]))


def make_stranded_topics(source: RawClient, target: RawClient, topics: Mapping[str, str]) -> None:
    """On the target, with as many partitions as the source's topics have."""
    view = source.run(source.metadata(list(topics)))
    there = target.run(target.metadata(list(topics.values())))
    brokers = len(there.brokers)
    sizes = source.run(read_settings(source, list(topics), [_LARGEST])).topics
    new, grow = [], {}
    for name, stranded in topics.items():
        here, known = view.topics[name], there.topics[stranded]
        if known.error is not None:
            largest = {_LARGEST: sizes[name].effective[_LARGEST]} if name in sizes else {}
            replicas = min(_replicas(here), brokers)
            new.append(TopicToCreate(stranded, len(here.partitions), replicas, {**_KEEPS_ALL, **largest}))
        elif len(known.partitions) < len(here.partitions):
            grow[stranded] = len(here.partitions)
    created = target.run(create_topics(target, new))
    refused = {**created.refused, **(target.run(grow_topics(target, grow)) if grow else {})}
    by_topic = {f"topic {name}": why for name, why in refused.items()}
    demand(target.alias, target.principal, "CREATE", by_topic, "stranded records can't be sent there")
    target.run(topics_visible(target, {name: len(view.topics[origin].partitions) for origin, name in topics.items()}))


def too_few_brokers(
    source: ClusterMetadata, target: ClusterMetadata, alias: str, anew: Mapping[str, str]
) -> Iterator[str]:
    """That topics which are made anew would have fewer replicas than they had, or, where they are gone, than their
    twins have, since brokers are missing."""
    short = [
        name for twin, name in sorted(anew.items()) if _wanted(source, target.topics[twin], name) > len(source.brokers)
    ]
    if short:
        yield (
            f"cluster {alias} has {len(source.brokers)} brokers, fewer than the replicas that {named(short)} "
            f"{'has' if len(short) == 1 else 'have'} to be made anew with"
        )


def _wanted(source: ClusterMetadata, twin: Topic, name: str) -> int:
    here = source.topics.get(name)
    return _replicas(twin) if here is None or here.error is not None else _replicas(here)


def _grow(source: RawClient, topics: Sequence[TopicToCreate]) -> None:
    """A topic that somebody's client has made meanwhile has as many partitions as its cluster gives."""
    if not topics:
        return
    view = source.run(source.metadata([topic.name for topic in topics])).topics
    grow = {topic.name: topic.partitions for topic in topics if len(view[topic.name].partitions) < topic.partitions}
    refused = source.run(grow_topics(source, grow)) if grow else {}
    by_topic = {f"topic {name}": why for name, why in refused.items()}
    demand(source.alias, source.principal, "ALTER", by_topic, "nothing was rebuilt")


def _not_empty(source: RawClient, names: Sequence[str]) -> Iterator[str]:
    if not names:
        return
    view = source.run(source.metadata(list(names)))
    partitions = [TopicPartition(name, number) for name in names for number in range(len(view.topics[name].partitions))]
    ends = source.run(settled_offsets(source, view, partitions, OffsetAt.LOG_END)).offsets
    filled = sorted({partition.topic for partition, end in ends.items() if end > 0})
    if filled:
        yield (
            f"cluster {source.alias}: somebody made {named(filled)} anew and writes there: stop who does, end this "
            "failback with --abandon, and make a new plan, which will delete what is there now"
        )


def _await_gone(client: RawClient, approved: Mapping[str, UUID]) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    while approved:
        view = client.run(client.metadata(list(approved)))
        left = [name for name, topic_id in approved.items() if view.topics[name].topic_id == topic_id]
        if not left:
            return
        if time.monotonic() > deadline:
            raise FailbackError(
                f"cluster {client.alias}: {', '.join(left[:5])} can still be seen {GONE_WITHIN_S:.0f} s after their "
                "deletion; run again to go on"
            )
        client.run(client.pause(PAUSE_S))


def _as_twins(
    source: RawClient, target: RawClient, flow: Flow, approved: Mapping[str, UUID], wanted: Mapping[str, str]
) -> Iterator[TopicToCreate]:
    """Each topic with its twin's partitions and overrides, what copying needs of those as the source had it (but
    for the stamps, see `failback_stamps`), and as many replicas as it had itself if it is there yet."""
    view = target.run(target.metadata(list(wanted)))
    here = source.run(source.metadata(list(wanted.values())))
    settings = target.run(read_settings(target, list(wanted))).topics
    held = target.run(held_back(target, flow))
    brokers = len(here.brokers)
    for twin, name in wanted.items():
        topic, before = view.topics[twin], here.topics[name]
        overrides = settings[twin].overrides if twin in settings else {}
        kept = {key: value for key, value in overrides.items() if key not in NEEDED} | dict(held.get(twin, {}))
        intact = before.error is None and before.topic_id == approved.get(name)
        replicas = min(_replicas(before if intact else topic), brokers)
        kept[STAMPS] = AS_THEY_ARE
        if int(kept.get(MIN_IN_SYNC, "1")) > replicas:
            del kept[MIN_IN_SYNC]
        yield TopicToCreate(name, len(topic.partitions), replicas, kept)


def _replicas(topic: Topic) -> int:
    return max((len(one.replicas) for one in topic.partitions), default=1)
