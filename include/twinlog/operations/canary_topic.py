"""The canary topic of a flow's source: small, kept for an hour, and stamped by whoever writes to it."""

from __future__ import annotations

from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import demand
from twinlog.cluster.topic_admin import TopicToCreate, create_topics
from twinlog.cluster.visibility import topics_visible
from twinlog.errors import ClusterError
from twinlog.model.canary import canary_topic
from twinlog.model.topology import Flow

SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": str(3600 * 1000),
    "retention.bytes": str(16 * 1024 * 1024),
    # A segment is deleted whole, and not while it is being written to.
    "segment.ms": str(10 * 60 * 1000),
    "segment.bytes": str(4 * 1024 * 1024),
    # The time of sending is part of what must arrive unaltered.
    "message.timestamp.type": "CreateTime",
}

_NOT_WRITTEN = "no canary is written; grant it, or create the topic for us"


async def create_canary_topic(source: RawClient, flow: Flow, principal: str) -> int:
    """Make the topic where it is missing; one that is there stays as it is. Returns how many partitions it has."""
    name = canary_topic(flow.source)
    view = await source.metadata([name])
    known = view.topics[name]
    if known.error is None:
        return len(known.partitions)
    if not known.is_missing:
        raise ClusterError(f"cluster {source.alias}: the canary topic {name} can't be looked at: {known.error}")
    partitions = flow.canary_topic_partitions or len(view.brokers)
    replicas = min(flow.canary_topic_replication_factor, len(view.brokers))
    created = await create_topics(source, [TopicToCreate(name, partitions, replicas, SETTINGS)])
    refused = {f"topic {topic}": refusal for topic, refusal in created.refused.items()}
    demand(source.alias, principal, "CREATE", refused, _NOT_WRITTEN)
    await topics_visible(source, {name: partitions})
    return partitions
