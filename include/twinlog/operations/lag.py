"""How far a flow is behind: in records, and in seconds since the oldest record that is not yet copied was written.

All partitions at once: a constant number of requests a broker, however many there are. A partition that is copied to
its end has no lag, however old its last record is. What could not be looked at is None, never a 0, and so is every sum
that it would be part of.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
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
    """One topic of the source; seconds are 0 where nothing waits, None where the waiting record can't be read; both
    are None where one of its partitions can't be looked at."""

    topic: str
    records: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Lag:
    """A whole flow: the sum of records, and the topic that is furthest behind."""

    topics: tuple[TopicLag, ...]

    @property
    def records(self) -> int | None:
        return sum_known(topic.records for topic in self.topics)

    @property
    def unknown(self) -> list[str]:
        """The topics that could not be looked at, or not wholly."""
        return [topic.topic for topic in self.topics if topic.records is None]

    @property
    def seconds(self) -> float | None:
        return max_known(topic.seconds for topic in self.topics)


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """What of one partition of the source is not copied; None as in TopicLag."""

    records: int | None = 0
    seconds: float | None = 0.0
    end: int | None = None
    """Where the source's log ended, of a partition that has any lag."""


UNKNOWN = PartitionLag(None, None)


def sum_known(numbers: Iterable[int | None]) -> int | None:
    """Their sum; None where one of them is not known."""
    found = list(numbers)
    known = [number for number in found if number is not None]
    return sum(known) if len(known) == len(found) else None


def max_known(numbers: Iterable[float | None]) -> float | None:
    """The largest, 0 of none; None where one of them is not known."""
    found = list(numbers)
    known = [number for number in found if number is not None]
    return max(known, default=0.0) if len(known) == len(found) else None


async def measure(source: RawClient, target: RawClient, flow: Flow, policy: NamingPolicy, topics: list[Topic]) -> Lag:
    """The lag of these topics of the source, now."""
    partitions = [TopicPartition(topic.name, number) for topic in topics for number in range(len(topic.partitions))]
    waiting = await measure_partitions(source, target, flow, policy, partitions)
    by_topic: dict[str, list[PartitionLag]] = defaultdict(list)
    for partition, lag in waiting.items():
        by_topic[partition.topic].append(lag)
    return Lag(tuple(topic_lag(topic, by_topic[topic.name]) for topic in topics))


async def measure_partitions(
    source: RawClient,
    target: RawClient,
    flow: Flow,
    policy: NamingPolicy,
    partitions: Collection[TopicPartition],
    *,
    stable: bool = True,
) -> dict[TopicPartition, PartitionLag]:
    """The lag of those of these partitions of the source that have any; UNKNOWN of one that can't be looked at.

    Not `stable`: by the positions as they are, whatever transaction is open on the target.
    """
    view = await source.metadata({partition.topic for partition in partitions})
    positions = await fetch_positions(target, position_group(flow.name), stable=stable)
    starts = (await list_offsets(source, view, partitions, OffsetAt.LOG_START)).offsets
    ends = (await list_offsets(source, view, partitions, OffsetAt.LOG_END)).offsets
    waiting: dict[TopicPartition, int] = {}
    unknown = [partition for partition in partitions if partition not in starts or partition not in ends]
    for partition in set(partitions).difference(unknown):
        position = positions.get(TopicPartition(policy.target_name(partition.topic), partition.partition))
        known = view.topics[partition.topic].topic_id
        mirrored = position.offset if position is not None and position.source_topic_id == known else 0
        at = max(mirrored, starts[partition])
        if at < ends[partition]:
            waiting[partition] = at
    written = await times_at(source, view, waiting)
    now_ms = time.time() * 1000
    found = {
        partition: PartitionLag(ends[partition] - at, _age_s(written.get(partition, -1), now_ms), ends[partition])
        for partition, at in waiting.items()
    }
    return found | dict.fromkeys(unknown, UNKNOWN)


def _age_s(written_ms: int, now_ms: float) -> float | None:
    return None if written_ms < 0 else max(0.0, now_ms - written_ms) / 1000


def topic_lag(topic: Topic, waiting: Sequence[PartitionLag]) -> TopicLag:
    """The sum of a topic's partitions, of which those are given that wait or are not known."""
    if not topic.partitions:
        return TopicLag(topic.name, None, None)
    known = [lag.seconds for lag in waiting if lag.seconds is not None]
    records = sum_known(lag.records for lag in waiting)
    if records is None:
        return TopicLag(topic.name, None, None)
    return TopicLag(topic.name, records, max(known, default=None) if waiting else 0.0)
