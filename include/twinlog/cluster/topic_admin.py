"""Creating, growing and deleting topics: many in one request, each repeatable, each answered for itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, portions, refusal

TIMEOUT_S = 60.0
RECORDS_A_REQUEST = 5_000
ALREADY_THERE = "TopicAlreadyExists"
GONE = "UnknownTopicId"
CLUSTER_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class TopicToCreate:
    """A topic as it is wanted."""

    name: str
    partitions: int
    replication_factor: int
    """-1 for the cluster's default."""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Created:
    """The ids of the topics that this call created, and what was refused; topics that were there are in neither."""

    ids: Mapping[str, UUID]
    refused: Mapping[str, Refusal]


@dataclass(frozen=True, slots=True)
class ClusterDefaults:
    """What a topic gets of which nothing is said."""

    settings: Mapping[str, str]
    replication_factor: int

    @property
    def min_in_sync(self) -> int:
        return int(self.settings.get("min.insync.replicas", "1"))


async def create_topics(client: RawClient, topics: Iterable[TopicToCreate]) -> Created:
    """Create those that are not there yet; one that is stays as it is."""
    ids: dict[str, UUID] = {}
    refused: dict[str, Refusal] = {}
    for portion in portions(topics, lambda topic: 1 + topic.partitions + len(topic.settings), RECORDS_A_REQUEST):
        answer = await client.request(_creation(portion), client.controller(), TIMEOUT_S)
        for result in answer.topics:
            failed = refusal(result.error_code, result.error_message)
            if failed is None:
                ids[result.name] = result.topic_id
            elif failed.error != ALREADY_THERE:
                refused[result.name] = failed
    return Created(ids, refused)


async def cluster_defaults(client: RawClient, name: str) -> ClusterDefaults | None:
    """What a topic of this name would get if it were created, which it is not; None where we may not know."""
    answer = await client.request(
        _creation([TopicToCreate(name, 1, CLUSTER_DEFAULT)], validate_only=True), client.controller(), TIMEOUT_S
    )
    (result,) = answer.topics
    if result.error_code or result.topic_config_error_code or not result.configs:
        return None
    settings = {entry.name: entry.value for entry in result.configs if entry.value is not None}
    return ClusterDefaults(settings, result.replication_factor)


async def grow_topics(client: RawClient, partitions: Mapping[str, int]) -> dict[str, Refusal]:
    """Give each topic so many partitions; what was refused."""
    refused: dict[str, Refusal] = {}
    topic = CreatePartitionsRequest.CreatePartitionsTopic
    for portion in portions(partitions.items(), lambda wanted: wanted[1], RECORDS_A_REQUEST):
        request = CreatePartitionsRequest(
            topics=[topic(name=name, count=count, assignments=None) for name, count in portion],
            timeout_ms=int(TIMEOUT_S * 1000),
            validate_only=False,
        )
        answer = await client.request(request, client.controller(), TIMEOUT_S)
        for result in answer.results:
            if (failed := refusal(result.error_code, result.error_message)) is not None:
                refused[result.name] = failed
    return refused


async def delete_topics(client: RawClient, topics: Mapping[str, UUID]) -> dict[str, Refusal]:
    """Delete topics by their ids, so that one made anew under the same name stays; what was refused, by name.

    One that is gone by now is not refused.
    """
    refused: dict[str, Refusal] = {}
    topic = DeleteTopicsRequest.DeleteTopicState
    for portion in portions(topics.items(), lambda _: 1, RECORDS_A_REQUEST):
        names = {topic_id: name for name, topic_id in portion}
        request = DeleteTopicsRequest(
            topics=[topic(name=None, topic_id=topic_id) for topic_id in names], timeout_ms=int(TIMEOUT_S * 1000)
        )
        answer = await client.request(request, client.controller(), TIMEOUT_S)
        for result in answer.responses:
            failed = refusal(result.error_code, result.error_message)
            if failed is not None and failed.error != GONE:
                refused[names[result.topic_id]] = failed
    return refused


def _creation(topics: Iterable[TopicToCreate], *, validate_only: bool = False) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[
            topic(
                name=wanted.name,
                num_partitions=wanted.partitions,
                replication_factor=wanted.replication_factor,
                assignments=[],
                configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in wanted.settings.items()],
            )
            for wanted in topics
        ],
        timeout_ms=int(TIMEOUT_S * 1000),
        validate_only=validate_only,
    )
