"""What the demo's source holds: topics with data, permissions and consumer groups, and a producer that goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from local.errors import LocalError
from local.kafka import KafkaCluster

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

TOPICS = {"orders": 3, "payments": 2}  # name: partitions
RECORDS = 1000
GROUPS = {"billing": ("orders", 120), "audit": ("payments", 40)}  # name: topic, and how far it has read each partition
PERMISSIONS = (("User:billing", "orders"), ("User:audit", "payments"))  # who may read what

PER_SECOND = 20
_WITHIN_S = 30


def fill(cluster: KafkaCluster) -> None:
    """Everything that a flow is to bring over."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({**cluster.client_settings()})
    created = admin.create_topics([NewTopic(name, partitions, 1) for name, partitions in TOPICS.items()])
    for done in created.values():
        done.result()
    _grant(admin)
    writing = _Writing(cluster)
    for _ in range(RECORDS):
        for topic in TOPICS:
            writing.one(topic)
    writing.flush()
    _read(cluster)


@contextmanager
def producing(cluster: KafkaCluster) -> Iterator[_Writing]:
    """Writes some records every second while inside."""
    writing, enough = _Writing(cluster), threading.Event()

    def write() -> None:
        while not enough.wait(1 / PER_SECOND):
            for topic in TOPICS:
                writing.one(topic)

    thread = threading.Thread(target=write, name="producing")
    thread.start()
    try:
        yield writing
    finally:
        enough.set()
        thread.join()
        writing.flush()


def count(cluster: KafkaCluster, topics: list[str]) -> int:
    """How many offsets the topics have had."""
    from confluent_kafka import Consumer, TopicPartition

    asking = Consumer({**cluster.client_settings(), "group.id": "demo-count"})
    try:
        known = asking.list_topics(timeout=_WITHIN_S).topics
        places = [TopicPartition(name, number) for name in topics if name in known for number in known[name].partitions]
        return sum(asking.get_watermark_offsets(place, timeout=_WITHIN_S)[1] for place in places)
    finally:
        asking.close()


@dataclass
class _Writing:
    """A producer that counts; every record says which it is."""

    cluster: KafkaCluster
    written: int = 0

    def __post_init__(self) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({**self.cluster.client_settings(), "compression.type": "lz4"})

    def one(self, topic: str) -> None:
        number = self.written
        self._producer.produce(topic, key=f"{topic}-{number % 100}", value=f'{{"number": {number}}}')
        self._producer.poll(0)
        self.written += 1

    def flush(self) -> None:
        left = self._producer.flush(_WITHIN_S)
        if left:
            raise LocalError(f"{left} records could not be written to {self.cluster.name} in {_WITHIN_S} s.")


def permissions(cluster: KafkaCluster) -> list[str]:
    """Who may do what with which topic there, a sentence each."""
    from confluent_kafka.admin import (
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    anything: Any = None  # which the stubs do not know of
    everything = AclBindingFilter(
        ResourceType.TOPIC,
        anything,
        ResourcePatternType.ANY,
        anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin = AdminClient({**cluster.client_settings()})  # held until the answer is there: it takes its requests with it
    found = admin.describe_acls(everything).result(_WITHIN_S)
    return sorted(f"{one.principal} may {one.operation.name.lower()} {one.name}" for one in found)


def _grant(admin: AdminClient) -> None:
    from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    bindings = [
        AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            user,
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        for user, topic in PERMISSIONS
    ]
    for done in admin.create_acls(bindings).values():
        done.result()


def _read(cluster: KafkaCluster) -> None:
    """The groups have read some of it, and go on another day."""
    from confluent_kafka import Consumer, TopicPartition

    for group, (topic, offset) in GROUPS.items():
        reader = Consumer({**cluster.client_settings(), "group.id": group})
        try:
            places = [TopicPartition(topic, number, offset) for number in range(TOPICS[topic])]
            reader.commit(offsets=places, asynchronous=False)
        finally:
            reader.close()
