"""Real consumers of several groups at once, which go on at their committed offsets and read up to so many records of
each partition, or to its end. They commit nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import confluent_kafka

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import mask
from twinlog.errors import DrillError
from twinlog.model.offsets import TopicPartition

AT_ONCE = 8
_POLL_S = 0.1
_MUST = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    # A shadow group without an offset must not begin anywhere else and pass for one that resumed.
    "auto.offset.reset": "error",
    "log_level": 0,
}


class ReadRecord(NamedTuple):
    """A record as the consumer was given it."""

    partition: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


@dataclass
class Resumed:
    """One group's consumer, and what it read."""

    group: str
    starts: Mapping[TopicPartition, int]
    records: list[ReadRecord] = field(default_factory=list)
    ended: set[TopicPartition] = field(default_factory=set)
    """Partitions that it read to their end."""
    first_s: float | None = None
    """When each partition had a first record or nothing to read, on the monotonic clock; None where that never came."""
    problem: str | None = None


def resume(
    access: ClusterAccess, starts: Mapping[str, Mapping[TopicPartition, int]], records: int, within_s: float
) -> list[Resumed]:
    """By group, where each of its partitions is to begin; some groups at a time, each with a consumer of its own."""
    if not starts:
        return []
    deadline = time.monotonic() + within_s
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="drill") as pool:
        return list(pool.map(lambda group: _resume(access, group, starts[group], records, deadline), sorted(starts)))


def _resume(
    access: ClusterAccess, group: str, starts: Mapping[TopicPartition, int], records: int, deadline: float
) -> Resumed:
    found = Resumed(group, starts)
    consumer = access.consumer({**_MUST, "group.id": group})
    try:
        consumer.subscribe(sorted({partition.topic for partition in starts}))
        counts = dict.fromkeys(starts, 0)
        while time.monotonic() < deadline and found.problem is None:
            for message in consumer.consume(500, timeout=_POLL_S):
                _take(found, message, counts, records)
            seen = {partition for partition, count in counts.items() if count} | found.ended
            if found.first_s is None and seen >= starts.keys():
                found.first_s = time.monotonic()
            if all(count >= records or partition in found.ended for partition, count in counts.items()):
                break
        if found.first_s is None and found.problem is None:
            found.problem = f"group {group} did not come to read all its partitions in time"
    except confluent_kafka.KafkaException as failure:
        raise DrillError(f"cluster {access.alias}: group {group} could not read: {mask(str(failure))}") from failure
    finally:
        consumer.close()
    return found


def _take(found: Resumed, message: confluent_kafka.Message, counts: dict[TopicPartition, int], records: int) -> None:
    error = message.error()
    partition = TopicPartition(str(message.topic()), int(message.partition() or 0))
    if error is not None:
        if error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            found.ended.add(partition)
        elif error.code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET:
            # The topic has partitions that the group never committed on; those are nobody's to read here.
            if partition in counts:
                found.problem = f"group {found.group} can't go on at its offset of {partition}: {mask(error.str())}"
        elif error.fatal() or not error.retriable():
            found.problem = f"group {found.group} could not read {partition}: {mask(error.str())}"
        return
    if partition not in counts or counts[partition] >= records:
        return
    counts[partition] += 1
    found.records.append(
        ReadRecord(
            partition,
            int(message.offset() or 0),
            message.key(),
            message.value(),
            tuple(_headers(message)),
            message.timestamp()[1],
        )
    )


def _headers(message: confluent_kafka.Message) -> Iterator[tuple[str, bytes | None]]:
    headers = message.headers() or []
    for key, value in headers.items() if isinstance(headers, dict) else headers:
        yield key, value.encode() if isinstance(value, str) else value
