"""Real consumers in groups: they read some records, commit and leave; and what a coordinator keeps of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient

from support.mirroring import Twins
from support.waiting import await_condition
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.groups import list_groups
from twinlog.cluster.secrets import resolve
from twinlog.operations.checkpoint import Checkpointing, CheckpointResult
from twinlog.operations.group_plan import GroupPlanning

Value = tuple[int, bytes]
"""A record by its partition and its value."""


def checkpointing(flow: Twins, **settings: Any) -> Checkpointing:
    """Commits too, which runs of the flow itself are better without here: what a pass writes is to be seen."""
    ends = flow.ends()
    committing = replace(flow.flow, **{"sync_group_offsets_enabled": True, **settings})
    return Checkpointing(flow.topology, committing, ends.source, ends.target, flow.ledger)


def checkpoint(flow: Twins, *, dry_run: bool = False, **settings: Any) -> CheckpointResult:
    return checkpointing(flow, **settings).run(dry_run=dry_run)


def planning(flow: Twins, source_servers: str | None = None) -> GroupPlanning:
    """`source_servers` stand in for the source's, as for one that is gone."""
    ends = flow.ends()
    source = ends.source
    if source_servers is not None:
        settings = resolve({"bootstrap.servers": source_servers}, environ={})
        source = ClusterAccess(flow.flow.source, settings)
    return GroupPlanning(flow.topology, flow.flow, source, ends.target, flow.ledger)


def member(servers: str, group: str, **settings: Any) -> Consumer:
    """A member of a group that reads committed records and commits when it is told to."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
            "log_level": 0,
            **named,
        }
    )


def read(servers: str, group: str, topic: str, most: int | None = None, **settings: Any) -> Counter[Value]:
    """What a member reads from where its group stands: `most` records, or all; then it commits and leaves."""
    consumer = member(servers, group, **settings)
    seen: Counter[Value] = Counter()
    ended: set[int] = set()

    def begin_again(_: Consumer, assigned: list[TopicPartition]) -> None:
        # Nothing is committed before the end, so whoever is given a partition once more reads it once more.
        for partition in {one.partition for one in assigned}:
            ended.discard(partition)
            for value in [value for value in seen if value[0] == partition]:
                del seen[value]

    try:
        consumer.subscribe([topic], on_assign=begin_again)
        numbers = set(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        while ended != numbers and (most is None or seen.total() < most):
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                seen[message.partition(), message.value()] += 1
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
        if seen:
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return seen


@contextmanager
def staying(servers: str, group: str, topic: str, **settings: Any) -> Iterator[Consumer]:
    """A member that has been given its partitions and stays."""
    consumer = member(servers, group, **settings)
    try:
        consumer.subscribe([topic])

        def assigned() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        await_condition(assigned, f"{group} has a member")
        yield consumer
    finally:
        consumer.close()


def share(servers: str, group: str, topic: str) -> None:
    """Make a share group: its member subscribes and leaves."""
    consumer = ShareConsumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    try:
        consumer.subscribe([topic])
        # librdkafka's own list leaves out share groups.
        with ClusterAccess("here", resolve({"bootstrap.servers": servers}, environ={})).raw() as client:

            def listed() -> bool:
                consumer.poll(0.1)
                return group in client.run(list_groups(client))

            await_condition(listed, f"{group} is a group")
    finally:
        consumer.close()


def commit(servers: str, group: str, topic: str, offsets: Mapping[int, int], metadata: str = "") -> None:
    """What a group without members commits, as an administrator does who resets it."""
    commit_all(servers, topic, {group: offsets}, metadata)


def commit_all(servers: str, topic: str, groups: Mapping[str, Mapping[int, int]], metadata: str = "") -> None:
    """The same for many groups at once; a coordinator that is still loading refuses them for a while."""
    admin = AdminClient({"bootstrap.servers": servers})
    waiting = set(groups)

    def all_taken() -> bool:
        futures = {}
        for group in waiting:
            partitions = [TopicPartition(topic, number, at, metadata) for number, at in groups[group].items()]
            futures |= admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, partitions)])
        for group, future in futures.items():
            if not any(one.error for one in future.result().topic_partitions):
                waiting.discard(group)
        return not waiting

    await_condition(all_taken, f"{len(groups)} groups have committed", 60)


def committed(servers: str, group: str, topic: str) -> dict[int, int]:
    """The group's committed offsets of a topic, by partition."""
    return {one.partition: one.offset for one in commits(servers, group) if one.topic == topic}


def commits(servers: str, group: str) -> list[TopicPartition]:
    admin = AdminClient({"bootstrap.servers": servers})
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return [one for one in future.result().topic_partitions if one.offset >= 0]


def delete_group(servers: str, group: str) -> None:
    """Delete a group without members, its commits with it."""
    admin = AdminClient({"bootstrap.servers": servers})
    (future,) = admin.delete_consumer_groups([group]).values()
    future.result(30)
