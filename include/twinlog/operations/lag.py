"""How far a flow is behind: in records, and in seconds since the oldest record that is not yet copied was written.

All partitions at once: a constant number of requests a broker, however many there are. A partition that is copied to
its end has no lag, however old its last record is.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.metadata import Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.record_times import times_at
from twinlog.model.lanes import position_group
from twinlog.model.naming import NamingPolicy
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow


@dataclass(frozen=True, slots=True)
class TopicLag:
    """One topic of the source; seconds are 0 where nothing waits, None where the waiting record can't be read."""

    topic: str
    records: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Lag:
    """A whole flow: the sum of records, and the topic that is furthest behind."""

    topics: tuple[TopicLag, ...]

    @property
    def records(self) -> int:
        return sum(topic.records for topic in self.topics)

    @property
    def seconds(self) -> float | None:
        known = [topic.seconds for topic in self.topics if topic.seconds is not None]
        if len(known) < len(self.topics):
            return None
        return max(known, default=0.0)


async def measure(source: RawClient, target: RawClient, flow: Flow, policy: NamingPolicy, topics: list[Topic]) -> Lag:
    """The lag of these topics of the source, now."""
    view = await source.metadata([topic.name for topic in topics])
    partitions = [TopicPartition(topic.name, number) for topic in topics for number in range(len(topic.partitions))]
    positions = await fetch_positions(target, position_group(flow.name))
    starts = (await list_offsets(source, view, partitions, OffsetAt.LOG_START)).offsets
    ends = (await list_offsets(source, view, partitions, OffsetAt.LOG_END)).offsets
    waiting: dict[TopicPartition, int] = {}
    records: dict[str, int] = defaultdict(int)
    for partition in partitions:
        if partition not in starts or partition not in ends:
            continue
        position = positions.get(TopicPartition(policy.target_name(partition.topic), partition.partition))
        known = view.topics[partition.topic].topic_id
        mirrored = position.offset if position is not None and position.source_topic_id == known else 0
        at = max(mirrored, starts[partition])
        if at < ends[partition]:
            waiting[partition] = at
            records[partition.topic] += ends[partition] - at
    written = await times_at(source, view, waiting)
    oldest: dict[str, int] = {}
    for partition, written_ms in written.items():
        if written_ms >= 0:
            oldest[partition.topic] = min(written_ms, oldest.get(partition.topic, written_ms))
    now_ms = time.time() * 1000
    return Lag(tuple(_topic_lag(topic.name, records[topic.name], oldest.get(topic.name), now_ms) for topic in topics))


def _topic_lag(topic: str, records: int, oldest_ms: int | None, now_ms: float) -> TopicLag:
    if not records:
        return TopicLag(topic, 0, 0.0)
    return TopicLag(topic, records, None if oldest_ms is None else max(0.0, now_ms - oldest_ms) / 1000)
