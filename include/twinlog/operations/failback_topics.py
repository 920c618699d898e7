"""Topics that a failback makes: those of a returned cluster anew, and those that stranded records go to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from uuid import UUID

from twinlog.cluster.metadata import Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import demand, sentences
from twinlog.cluster.topic_admin import TopicToCreate, create_topics, delete_topics, grow_topics
from twinlog.cluster.topic_settings import read_settings
from twinlog.cluster.visibility import topics_visible
from twinlog.errors import FailbackError
from twinlog.model.twin_settings import NEEDED

GONE_WITHIN_S = 60.0
PAUSE_S = 0.1


def make_anew(
    source: RawClient, target: RawClient, approved: Mapping[str, UUID], wanted: Mapping[str, str]
) -> list[str]:
    """Delete what was `approved`, by its id, and make each of `wanted` (twin: name) as its twin is.

    A topic that is there under another id by then was made by an earlier try. Answers what was refused, in sentences.
    """
    refused = source.run(delete_topics(source, approved))
    if refused:
        by_topic = {f"topic {name}": why for name, why in refused.items()}
        return list(sentences(source.alias, source.principal, "DELETE", by_topic, "nothing was rebuilt"))
    _await_gone(source, approved)
    topics = list(_as_twins(source, target, wanted))
    created = source.run(create_topics(source, topics))
    by_topic = {f"topic {name}": why for name, why in created.refused.items()}
    demand(source.alias, source.principal, "CREATE", by_topic, "nothing was rebuilt")
    source.run(topics_visible(source, {topic.name: topic.partitions for topic in topics}))
    return []


def make_stranded_topics(source: RawClient, target: RawClient, topics: Mapping[str, str]) -> None:
    """On the target, with as many partitions as the source's topics have."""
    view = source.run(source.metadata(list(topics)))
    there = target.run(target.metadata(list(topics.values())))
    brokers = len(there.brokers)
    new, grow = [], {}
    for name, stranded in topics.items():
        here, known = view.topics[name], there.topics[stranded]
        if known.error is not None:
            new.append(TopicToCreate(stranded, len(here.partitions), min(_replicas(here), brokers)))
        elif len(known.partitions) < len(here.partitions):
            grow[stranded] = len(here.partitions)
    created = target.run(create_topics(target, new))
    refused = {**created.refused, **(target.run(grow_topics(target, grow)) if grow else {})}
    by_topic = {f"topic {name}": why for name, why in refused.items()}
    demand(target.alias, target.principal, "CREATE", by_topic, "stranded records can't be sent there")
    target.run(topics_visible(target, {name: len(view.topics[origin].partitions) for origin, name in topics.items()}))


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


def _as_twins(source: RawClient, target: RawClient, wanted: Mapping[str, str]) -> Iterator[TopicToCreate]:
    """Each topic with its twin's partitions and overrides, less those that copying gave the twin."""
    view = target.run(target.metadata(list(wanted)))
    settings = target.run(read_settings(target, list(wanted))).topics
    brokers = len(source.brokers())
    for twin, name in wanted.items():
        topic = view.topics[twin]
        overrides = settings[twin].overrides if twin in settings else {}
        kept = {key: value for key, value in overrides.items() if key not in NEEDED}
        yield TopicToCreate(name, len(topic.partitions), min(_replicas(topic), brokers), kept)


def _replicas(topic: Topic) -> int:
    return max((len(one.replicas) for one in topic.partitions), default=1)
