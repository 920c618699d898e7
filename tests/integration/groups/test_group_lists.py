"""Lists of a cluster's groups while its brokers take over from each other: whole, or an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ElectionType, ElectLeadersRequest

from local.kafka import KafkaCluster
from support.groups import commit_all
from support.mirroring import create_topic
from support.waiting import await_condition
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.group_coordinators import OFFSETS_TOPIC, PROBE, partition_of, probes
from twinlog.cluster.groups import group_list
from twinlog.cluster.raw import RawClient
from twinlog.cluster.secrets import resolve
from twinlog.errors import ClusterUnreachableError

GROUPS = 30
MOVES = 30


@pytest.fixture
def access(three: KafkaCluster) -> ClusterAccess:
    return ClusterAccess("three", resolve({"bootstrap.servers": three.bootstrap_servers}, environ={}))


@contextmanager
def listing(access: ClusterAccess, mark: str) -> Iterator[list[int]]:
    """Somebody who lists the groups again and again until the block ends; how many of the test's each list had."""
    counts: list[int] = []
    over = threading.Event()

    def look() -> None:
        with access.raw() as client:
            while not over.is_set():
                try:
                    found = client.run(group_list(client))
                except ClusterUnreachableError:
                    continue
                if not found.leaderless:
                    counts.append(sum(1 for name in found.groups if name.endswith(mark)))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield counts
    finally:
        over.set()
        thread.join()


def move_leaders(client: RawClient, node_ids: list[int]) -> None:
    """Give every partition of the offsets topic to the first of these brokers that it is on."""
    numbers = [one.number for one in client.run(client.metadata([OFFSETS_TOPIC])).topics[OFFSETS_TOPIC].partitions]
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    wanted = topic(
        name=OFFSETS_TOPIC,
        partitions=[topic.ReassignablePartition(partition_index=number, replicas=node_ids) for number in numbers],
    )
    client.send(AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[wanted]), client.controller())
    named = ElectLeadersRequest.TopicPartitions(topic=OFFSETS_TOPIC, partitions=numbers)
    client.send(
        ElectLeadersRequest(election_type=ElectionType.PREFERRED, topic_partitions=[named], timeout_ms=10_000),
        client.controller(),
    )


def leaders(client: RawClient) -> set[int | None]:
    return {one.leader for one in client.run(client.metadata([OFFSETS_TOPIC])).topics[OFFSETS_TOPIC].partitions}


def test_no_list_lacks_a_group_while_brokers_take_over_from_each_other(
    three: KafkaCluster, access: ClusterAccess, mark: str
) -> None:
    topic = f"orders-{mark}"
    create_topic(three.bootstrap_servers, topic, 1, {}, 3)
    commit_all(three.bootstrap_servers, topic, {f"group-{number}-{mark}": {0: 0} for number in range(GROUPS)})

    with listing(access, mark) as counts, access.raw() as client:
        for number in range(MOVES):
            first = number % 3
            move_leaders(client, [first, (first + 1) % 3, (first + 2) % 3])
            await_condition(lambda first=first: leaders(client) == {first}, "the leaders moved")  # type: ignore[misc]
        await_condition(lambda: len(counts) > MOVES, "lists of the groups")

    assert set(counts) == {GROUPS}


def test_brokers_answer_for_a_group_of_every_partition(access: ClusterAccess) -> None:
    names = probes(50)

    assert sorted(names) == list(range(50))
    assert all(name.startswith(PROBE) and partition_of(name, 50) == number for number, name in names.items())
    # Java's own: "Aa".hashCode() == 2112, and that of the second is the least number there is.
    assert (partition_of("Aa", 50), partition_of("polygenelubricants", 50)) == (12, 0)
    with access.raw() as client:
        assert client.run(group_list(client)).leaderless == ()
