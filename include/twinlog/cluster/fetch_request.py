"""A Fetch request, for committed records unless said otherwise, outside any session: one answer, nothing kept on the
broker."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from kafka.protocol.consumer import FetchRequest, IsolationLevel

from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import NO_LEADER_EPOCH

BY_NAME_VERSION = 11
"""The last that names topics by name only; every broker since 2.3 takes it."""
BY_ID_VERSION = 13
"""From here on topics are named by id: one made anew is refused instead of being read as the old one."""

NO_ID = UUID(int=0)


class Wanted(NamedTuple):
    """What is asked for of one partition."""

    partition: TopicPartition
    offset: int
    max_bytes: int
    topic_id: UUID = NO_ID
    leader_epoch: int = NO_LEADER_EPOCH
    """That the broker must lead in."""
    last_epoch: int = NO_LEADER_EPOCH
    """Of the batch before `offset`: a log that was cut since is then told by the broker."""


def fetch_request(
    wanted: Iterable[Wanted],
    *,
    max_bytes: int,
    max_wait_ms: int,
    min_bytes: int = 1,
    version: int = BY_NAME_VERSION,
    rack: str = "",
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> FetchRequest:
    """Records of these partitions; the broker fills its answer in their order."""
    topic = FetchRequest.FetchTopic
    topics = []
    for name, members in groupby(wanted, key=lambda one: one.partition.topic):
        ones = list(members)
        topics.append(
            topic(
                topic=name,
                topic_id=ones[0].topic_id,
                partitions=[
                    topic.FetchPartition(
                        partition=one.partition.partition,
                        current_leader_epoch=one.leader_epoch,
                        fetch_offset=one.offset,
                        last_fetched_epoch=one.last_epoch,
                        log_start_offset=-1,
                        partition_max_bytes=one.max_bytes,
                        version=version,
                    )
                    for one in ones
                ],
                version=version,
            )
        )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(isolation),
        session_id=0,
        session_epoch=-1,
        topics=topics,
        forgotten_topics_data=[],
        rack_id=rack,
        version=version,
    )
