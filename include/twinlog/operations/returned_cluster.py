"""Whether a cluster that has returned is whole: all its brokers, every replica in sync, no partition without a leader.

Which brokers there should be, its partitions tell: each names the brokers that its replicas are on, also those that
have not come back.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.refusals import named


def not_whole(alias: str, view: ClusterMetadata) -> Iterator[str]:
    """What is missing of it, a sentence each; nothing where it is whole."""
    topics = sorted(view.topics.values(), key=lambda topic: topic.name)
    wanted = {node for topic in topics for one in topic.partitions for node in one.replicas}
    gone = sorted(wanted - view.brokers.keys())
    if gone:
        numbers = ", ".join(map(str, gone))
        yield f"cluster {alias}: brokers {numbers} have not come back; {len(view.brokers)} are there"
    offline = [topic.name for topic in topics if any(one.leader is None for one in topic.partitions)]
    if offline:
        yield f"cluster {alias}: {len(offline):,} topics have partitions without a leader: {named(offline)}"
    behind = [
        topic.name
        for topic in topics
        if any(one.leader is not None and len(one.in_sync) < len(one.replicas) for one in topic.partitions)
    ]
    if behind:
        yield f"cluster {alias}: {len(behind):,} topics have replicas that are not in sync yet: {named(behind)}"
