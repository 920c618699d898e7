"""A flow's positions, read back from the target."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import groupby

from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import CoordinatorType

from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import not_allowed
from twinlog.errors import ClusterError, ClusterUnreachableError
from twinlog.model.lanes import is_journal
from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import Position, parse

OFFSET_FETCH_VERSION = 7
"""The first with `require_stable`, and the last for one group by names: what every broker since 2.5 takes."""

PATIENCE_S = 60.0
PAUSE_S = 0.1

_WAIT = (
    kafka_errors.UnstableOffsetCommitError,
    kafka_errors.CoordinatorLoadInProgressError,
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.NotCoordinatorError,
)


async def fetch_positions(
    client: RawClient, group: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = True
) -> dict[TopicPartition, Position]:
    """The group's positions (all of them, where no partitions are named), once no open transaction can change one.

    Not `stable`: as they are now. Planning takes them so, since the writer that left a transaction open may be dead,
    and it is the lanes that fence it and read again.
    """
    return {
        partition: parse(offset, metadata, f"cluster {client.alias}: group {group}, {partition}")
        for partition, (offset, metadata) in (await fetch_committed(client, group, partitions, stable=stable)).items()
        if not is_journal(partition.topic)
    }


async def fetch_committed(
    client: RawClient, group: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = True
) -> dict[TopicPartition, tuple[int, str]]:
    """What is committed, offset and metadata, as it is; see `fetch_positions`."""
    topics = None if partitions is None else _by_topic(partitions)
    last: Exception | None = None
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            node_id = await client.coordinator(CoordinatorType.GROUP, group, refresh=last is not None)
            request = OffsetFetchRequest(
                group_id=group, topics=topics, require_stable=stable, version=OFFSET_FETCH_VERSION
            )
            response = await client.request(request, node_id)
        except ClusterUnreachableError as lost:
            last = lost
        else:
            results = [(topic.name, each) for topic in response.topics for each in topic.partitions]
            code = response.error_code or next((each.error_code for _, each in results if each.error_code), 0)
            if not code:
                return {
                    TopicPartition(name, each.partition_index): (each.committed_offset, each.metadata or "")
                    for name, each in results
                    if each.committed_offset >= 0
                }
            last = _waitable(code, client, group)
        await client.pause(PAUSE_S)
    raise ClusterUnreachableError(
        f"cluster {client.alias}: the positions of {group} could not be read: {last}; is a transaction hanging there?"
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[OffsetFetchRequest.OffsetFetchRequestTopic]:
    return [
        OffsetFetchRequest.OffsetFetchRequestTopic(
            name=topic, partition_indexes=[each.partition for each in members], version=OFFSET_FETCH_VERSION
        )
        for topic, members in groupby(sorted(partitions), key=lambda each: each.topic)
    ]


def _waitable(code: int, client: RawClient, group: str) -> Exception:
    """The error behind `code`, if waiting can help; raises otherwise."""
    error = kafka_errors.for_code(code)
    if issubclass(error, _WAIT):
        waitable: Exception = error()
        return waitable
    if issubclass(error, kafka_errors.GroupAuthorizationFailedError):
        consequence = "the flow's positions can't be read"
        raise not_allowed(client.alias, client.principal, "DESCRIBE", f"group {group}", consequence)
    raise ClusterError(f"cluster {client.alias}: reading the positions of group {group}: {error.__name__}")
