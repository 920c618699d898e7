"""Creating and growing topics, and reading what was set on them; many in one request, each repeatable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewPartitions, NewTopic

from twinlog.cluster.admin import Admin

TIMEOUT_S = 60.0
TOPICS_A_REQUEST = 500

_TOPIC_OVERRIDE = 1
"""Kafka's DYNAMIC_TOPIC_CONFIG: said of this topic, not inherited from a broker."""


@dataclass(frozen=True, slots=True)
class TopicToCreate:
    """A topic as it is wanted."""

    name: str
    partitions: int
    replication_factor: int
    """-1 for the cluster's default."""
    settings: Mapping[str, str] = field(default_factory=dict)


def create_topics(admin: Admin, topics: Iterable[TopicToCreate]) -> None:
    """Create those that are not there yet; one that is stays as it is."""
    wanted = [
        NewTopic(topic.name, topic.partitions, topic.replication_factor, config=dict(topic.settings))
        for topic in topics
    ]
    for first in range(0, len(wanted), TOPICS_A_REQUEST):
        with admin.errors():
            creating = admin.create_topics(wanted[first : first + TOPICS_A_REQUEST], operation_timeout=TIMEOUT_S)
            for future in creating.values():
                try:
                    future.result()
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise


def grow_topics(admin: Admin, partitions: Mapping[str, int]) -> None:
    """Give each topic so many partitions."""
    if not partitions:
        return
    with admin.errors():
        growing = admin.create_partitions(
            [NewPartitions(name, count) for name, count in partitions.items()], operation_timeout=TIMEOUT_S
        )
        for future in growing.values():
            future.result()


def topic_overrides(admin: Admin, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """The settings that were made on each topic itself."""
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    if not resources:
        return {}
    with admin.errors():
        return {
            resource.name: {
                name: entry.value
                for name, entry in future.result().items()
                if entry.source == _TOPIC_OVERRIDE and entry.value is not None
            }
            for resource, future in admin.describe_configs(resources).items()
        }
