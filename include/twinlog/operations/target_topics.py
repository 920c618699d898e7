"""The topics a flow needs on its target before the first record is copied: its own, and the twins.

Creating is repeatable, and only what is missing is created. A twin takes the source's settings with it from the first
moment: under the target's default retention, records with old timestamps would be gone within minutes.
"""

from __future__ import annotations

from collections.abc import Iterable

from twinlog.cluster.admin import Admin
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.topic_admin import TopicToCreate, create_topics, grow_topics, topic_overrides
from twinlog.intake.extensions import configs_of
from twinlog.model.lanes import journal_topic, state_topic
from twinlog.model.naming import NamingPolicy
from twinlog.model.topology import Flow

JOURNAL_SETTINGS = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
}
STATE_SETTINGS = {
    "cleanup.policy": "compact",
    # Small segments that are cleaned soon: whoever needs the state reads the whole topic.
    "segment.bytes": str(1024 * 1024),
    "segment.ms": str(10 * 60 * 1000),
    "min.cleanable.dirty.ratio": "0.01",
}
TWIN_SETTINGS = {
    # Batches are copied as they are; a broker that compressed them again would undo that.
    "compression.type": "producer",
    # Readers see the source's stamps. LogAppendTime would replace them.
    "message.timestamp.type": "CreateTime",
    # Records may be as old as the source's retention allows; the broker must not refuse them for it.
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


def create_internal_topics(admin: Admin, flow: Flow, lanes: int, target: ClusterMetadata) -> None:
    """The journal, with a partition a lane, and the state."""
    factor = min(flow.journal_topic_replication_factor, len(target.brokers))
    journal, state = journal_topic(flow.source, flow.target), state_topic(flow.source, flow.target)
    create_topics(
        admin,
        [
            TopicToCreate(journal, lanes, factor, {**JOURNAL_SETTINGS, **_min_in_sync(factor)}),
            TopicToCreate(state, 1, factor, {**STATE_SETTINGS, **_min_in_sync(factor)}),
        ],
    )
    known = target.topics.get(journal)
    if known is not None and 0 < len(known.partitions) < lanes:
        grow_topics(admin, {journal: lanes})


def create_twins(
    admin: Admin,
    source_admin: Admin,
    flow: Flow,
    *,
    policy: NamingPolicy,
    sources: Iterable[Topic],
    target: ClusterMetadata,
) -> list[str]:
    """Create the twins that are missing and grow those with too few partitions; the names of both."""
    wanted = {policy.target_name(topic.name): topic for topic in sources}
    missing = {name: topic for name, topic in wanted.items() if not _exists(target, name)}
    overrides = topic_overrides(source_admin, [topic.name for topic in missing.values()])
    travels = configs_of(flow)
    create_topics(
        admin,
        [
            TopicToCreate(
                name,
                len(topic.partitions),
                factor := replication_factor(flow, topic, len(target.brokers)),
                {
                    **{key: value for key, value in overrides[topic.name].items() if travels.accepts(key)},
                    **TWIN_SETTINGS,
                    **_min_in_sync(factor),
                },
            )
            for name, topic in missing.items()
        ],
    )
    short = {
        name: len(topic.partitions)
        for name, topic in wanted.items()
        if _exists(target, name) and len(target.topics[name].partitions) < len(topic.partitions)
    }
    grow_topics(admin, short)
    return sorted([*missing, *short])


def replication_factor(flow: Flow, topic: Topic, brokers: int) -> int:
    """As the flow says: a number, or the source topic's, or the target cluster's default (-1)."""
    said = flow.replication_factor
    if said == "target":
        return -1
    factor = len(topic.partitions[0].replicas) if said == "source" else int(said)
    return min(factor, brokers)


def _exists(view: ClusterMetadata, name: str) -> bool:
    return name in view.topics and view.topics[name].error is None


def _min_in_sync(factor: int) -> dict[str, str]:
    return {"min.insync.replicas": "2"} if factor >= 3 else {}
