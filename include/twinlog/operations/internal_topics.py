"""The topics that a flow keeps for itself on its target: journal, state, and what it has made there.

Creating them is repeatable, and only what is missing is created.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, sentences
from twinlog.cluster.topic_admin import TopicToCreate, create_topics, grow_topics
from twinlog.cluster.visibility import topics_visible
from twinlog.errors import ClusterError, NotAuthorizedError
from twinlog.model.lanes import journal_topic, state_topic
from twinlog.model.made import made_topic
from twinlog.model.topology import Flow

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
    _demand(client.alias, principal, "CREATE", created.refused)
    await topics_visible(client, {topic.name: topic.partitions for topic in wanted if topic.name in created.ids})
    known = view.topics.get(journal)
    if known is not None and 0 < len(known.partitions) < lanes:
        _demand(client.alias, principal, "ALTER", await grow_topics(client, {journal: lanes}))


async def create_made_topic(client: RawClient, flow: Flow, view: ClusterMetadata) -> Mapping[str, Refusal]:
    """The one that a sync needs; what was refused."""
    name = made_topic(flow.source, flow.target)
    if name in view.topics:
        return {}
    refused = (await create_topics(client, [_small(name, _factor(flow, view))])).refused
    if not refused:
        await topics_visible(client, {name: 1})
    return refused


def _demand(alias: str, principal: str, operation: str, refused: Mapping[str, Refusal]) -> None:
    if not refused:
        return
    resources = {f"topic {name}": found for name, found in refused.items()}
    message = "; ".join(sentences(alias, principal, operation, resources, "the flow can't run"))
    raise NotAuthorizedError(message) if any(one.not_allowed for one in refused.values()) else ClusterError(message)


def _small(name: str, factor: int) -> TopicToCreate:
    return TopicToCreate(name, 1, factor, {**SMALL_SETTINGS, **_min_in_sync(factor)})


def _factor(flow: Flow, view: ClusterMetadata) -> int:
    return min(flow.journal_topic_replication_factor, len(view.brokers))


def _min_in_sync(factor: int) -> dict[str, str]:
    return {"min.insync.replicas": "2"} if factor >= 3 else {}
