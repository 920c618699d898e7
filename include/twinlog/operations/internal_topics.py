"""The topics that a flow keeps for itself: journal, state and what it has made on its target, and the topics by which
it shows tools made for MirrorMaker 2 that it lives.

Creating them is repeatable, and only what is missing is created.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, demand
from twinlog.cluster.topic_admin import TopicToCreate, create_topics, grow_topics
from twinlog.cluster.visibility import topics_visible
from twinlog.model.lanes import journal_topic, state_topic
from twinlog.model.made import made_topic
from twinlog.model.topology import Flow

CANT_RUN = "the flow can't run"
JOURNAL_SETTINGS = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
}
SMALL_SETTINGS = {
    "cleanup.policy": "compact",
    # Small segments that are cleaned soon: whoever needs these topics reads them whole.
    "segment.bytes": str(1024 * 1024),
    "segment.ms": str(10 * 60 * 1000),
    "min.cleanable.dirty.ratio": "0.01",
}


async def create_internal_topics(
    client: RawClient, flow: Flow, lanes: int, view: ClusterMetadata, principal: str
) -> None:
    """All of them; the journal has a partition a lane."""
    factor = _factor(flow, view)
    journal = journal_topic(flow.source, flow.target)
    wanted = [
        TopicToCreate(journal, lanes, factor, {**JOURNAL_SETTINGS, **_min_in_sync(factor)}),
        _small(state_topic(flow.source, flow.target), factor),
        _small(made_topic(flow.source, flow.target), factor),
    ]
    created = await create_topics(client, [topic for topic in wanted if topic.name not in view.topics])
    demand(client.alias, principal, "CREATE", _by_topic(created.refused), CANT_RUN)
    await topics_visible(client, {topic.name: topic.partitions for topic in wanted if topic.name in created.ids})
    known = view.topics.get(journal)
    if known is not None and 0 < len(known.partitions) < lanes:
        refused = await grow_topics(client, {journal: lanes})
        demand(client.alias, principal, "ALTER", _by_topic(refused), CANT_RUN)


async def create_small_topic(client: RawClient, principal: str, name: str, replicas: int, consequence: str) -> None:
    """A compacted topic of one partition, of so many replicas or as many as there are brokers.

    One that is there stays as it is, whoever made it; `consequence` ends the sentence of a refusal.
    """
    view = await client.metadata([name])
    if view.topics[name].error is None:
        return
    created = await create_topics(client, [_small(name, min(replicas, len(view.brokers)))])
    demand(client.alias, principal, "CREATE", _by_topic(created.refused), consequence)
    await topics_visible(client, {name: 1})


async def create_made_topic(client: RawClient, flow: Flow, view: ClusterMetadata) -> Mapping[str, Refusal]:
    """The one that a sync needs; what was refused."""
    name = made_topic(flow.source, flow.target)
    if name in view.topics:
        return {}
    refused = (await create_topics(client, [_small(name, _factor(flow, view))])).refused
    if not refused:
        await topics_visible(client, {name: 1})
    return refused


def _by_topic(refused: Mapping[str, Refusal]) -> dict[str, Refusal]:
    return {f"topic {name}": found for name, found in refused.items()}


def _small(name: str, factor: int) -> TopicToCreate:
    return TopicToCreate(name, 1, factor, {**SMALL_SETTINGS, **_min_in_sync(factor)})


def _factor(flow: Flow, view: ClusterMetadata) -> int:
    return min(flow.journal_topic_replication_factor, len(view.brokers))


def _min_in_sync(factor: int) -> dict[str, str]:
    return {"min.insync.replicas": "2"} if factor >= 3 else {}
