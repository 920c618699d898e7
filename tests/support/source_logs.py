"""Logs with everything in them that a copier has to get right, written by plain clients."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from random import Random
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from support.mirroring import Twins, producer
from support.reading import read_messages
from support.waiting import await_condition
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed_records import fetch_committed
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.model.offsets import TopicPartition as Partition
from twinlog.wire.header import BatchHeader

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "100",
}


def fill(servers: str, topic: str, values: Sequence[object], partition: int = 0, **settings: Any) -> None:
    """One record a value, each with a key of its own."""
    writer = producer(servers, **settings)
    for number, value in enumerate(values):
        writer.produce(topic, str(value), f"key {number}", partition=partition)
    assert writer.flush(30) == 0


def transactional(servers: str, **settings: Any) -> Producer:
    writer = producer(servers, transactional_id=f"app-{uuid.uuid4().hex[:8]}", **settings)
    writer.init_transactions(30)
    return writer


def interleave(servers: str, topic: str, rounds: int = 4, partition: int = 0) -> None:
    """Three transactional producers and a plain one in turn; of the transactions every third is rolled back."""
    writers = [transactional(servers) for _ in range(3)]
    for number in range(rounds):
        for writer in writers:
            writer.begin_transaction()
        fill(servers, topic, [f"plain {number}"], partition)
        for step in range(3):
            for name, writer in enumerate(writers):
                writer.produce(topic, f"{number}/{step}/{name}", f"key {name}", partition=partition)
                writer.flush(30)
        for name, writer in enumerate(writers):
            if (number + name) % 3 == 0:
                writer.abort_transaction(30)
            else:
                writer.commit_transaction(30)


def delete_records(servers: str, topic: str, before: int, partition: int = 0) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_records([TopicPartition(topic, partition, before)]).values():
        future.result()


def recreate(servers: str, topic: str, partitions: int = 1, **settings: str) -> None:
    """Delete the topic and create it again as soon as the cluster lets go of the name."""
    admin = AdminClient({"bootstrap.servers": servers})
    delete_topic(servers, topic)
    named = {name.replace("_", "."): value for name, value in settings.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=named)])[topic].result()


def delete_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result()
    await_condition(lambda: topic not in admin.list_topics(timeout=10).topics, f"{topic} is gone")


def clean_often(servers: str, broker: str = "0") -> None:
    """Have the broker's log cleaner look for work several times a second instead of every 15."""
    entry = ConfigEntry("log.cleaner.backoff.ms", "200", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, broker, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def compacted_log(servers: str, topic: str, partition: int = 0) -> None:
    """Keys written over and over, with tombstones, and waited for until the cleaner has left one of each.

    `topic` has the settings COMPACTED. The last record rolls the segment and stays in the active one.
    """
    writer = producer(servers, batch_num_messages=7)
    keys = [Random(number).randrange(40) for number in range(100)]
    for number, key in enumerate(keys):
        value = None if number % 13 == 12 else f"value {number}"
        writer.produce(topic, value, f"key {key}", partition=partition)
    assert writer.flush(30) == 0

    def cleaned() -> bool:
        # Only an append rolls a segment that is old enough.
        writer.produce(topic, "roll", "roll", partition=partition)
        assert writer.flush(30) == 0
        found = [message.key() for message in read_messages(servers, topic) if message.partition() == partition]
        rolls = found.count(b"roll")
        return len(found) - rolls == len(set(keys)) and rolls <= 2

    clean_often(servers)
    await_condition(cleaned, f"{topic} is compacted", 60)


def source_batches(flow: Twins, topic: str) -> list[BatchHeader]:
    """The headers of the source's committed batches, as a fetch from offset 0 on brings them."""
    return _batches(flow.ends().source, topic)


def target_batches(flow: Twins, topic: str) -> list[BatchHeader]:
    return _batches(flow.ends().target, flow.twin(topic))


def _batches(access: ClusterAccess, topic: str) -> list[BatchHeader]:
    partition = Partition(topic, 0)

    async def read(client: RawClient) -> list[BatchHeader]:
        metadata = await client.metadata([topic])
        leader = metadata.topics[topic].partitions[0].leader
        at = (await list_offsets(client, metadata, [partition], OffsetAt.LOG_START)).offsets[partition]
        headers: list[BatchHeader] = []
        while True:
            batches, after = await fetch_committed(client, leader, partition, at)
            headers += [batch.header for batch in batches]
            if after == at:
                return headers
            at = after

    with access.raw() as client:
        return client.run(read(client))
