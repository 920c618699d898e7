"""The groups of a cluster: every broker is asked for those that it coordinates, all brokers at once.

A broker names the groups that we may describe and says nothing of the others; `sees_all_groups` tells whether there
can be others. A broker that does not answer is an error: a list without its groups would look complete. Groups whose
partition of the offsets topic has no leader are on no broker's list: `leaderless_offsets` tells of those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import kafka.errors as kafka_errors
from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.metadata import CoordinatorType

from twinlog.cluster.coordinators import locate_coordinators
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import portions

OFFSETS_TOPIC = "__consumer_offsets"
PAUSE_S = 0.1
ATTEMPTS = 100
GROUPS_A_REQUEST = 500

_STATES_VERSION = 4
_KINDS_VERSION = 5
_DESCRIBE = 8
"""Kafka's number of the operation, in a set of those that are allowed."""
_WITHOUT_MEMBERS = frozenset({"Empty", "Dead"})


class GroupKind(StrEnum):
    """By which protocol a group works together."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True)
class Group:
    """A group as its coordinator lists it."""

    name: str
    kind: str
    """One of GroupKind, or what a newer Kafka has added to it."""
    active: bool
    """It has a member, or is about to."""


async def list_groups(client: RawClient) -> dict[str, Group]:
    """Every group of the cluster that we may describe, by name."""
    await client.metadata([])
    found: dict[str, Group] = {}
    for groups in await client.gather(_listed(client, broker.node_id) for broker in client.brokers()):
        found.update((group.name, group) for group in groups)
    return found


async def sees_all_groups(client: RawClient) -> bool:
    """Whether we may describe the cluster, and so see the name of each of its groups; before Kafka 2.8 no one can."""
    try:
        client.api_version(DescribeClusterRequest)
    except kafka_errors.IncompatibleBrokerVersion:
        return False
    answer = await client.request(DescribeClusterRequest(include_cluster_authorized_operations=True))
    return _DESCRIBE in (answer.authorized_operations or ())


async def leaderless_offsets(client: RawClient) -> list[int]:
    """The partitions of the offsets topic that nobody leads; none where we may not look at it."""
    return leaderless(await client.metadata([OFFSETS_TOPIC]), OFFSETS_TOPIC)


def leaderless(view: ClusterMetadata, name: str) -> list[int]:
    """The partitions of a topic that nobody leads."""
    topic = view.topics.get(name)
    return [] if topic is None else [partition.number for partition in topic.partitions if partition.leader is None]


async def _listed(client: RawClient, node_id: int) -> list[Group]:
    for _ in range(ATTEMPTS):
        answer = await client.request(ListGroupsRequest(states_filter=[], types_filter=[]), node_id)
        error = kafka_errors.for_code(answer.error_code)
        if error is kafka_errors.NoError:
            break
        if not issubclass(error, kafka_errors.RetriableError):
            raise client.failures.of_raw(error("the list of groups"))
        await client.pause(PAUSE_S)
    else:
        raise client.failures.unreachable(f"broker {node_id} is still loading its groups")
    version = client.api_version(ListGroupsRequest)
    if version < _STATES_VERSION:
        names = [listed.group_id for listed in answer.groups]
        active = await _active(client, names)
        return [Group(name, GroupKind.CLASSIC, name in active) for name in names]
    return [
        Group(
            listed.group_id,
            listed.group_type.lower() if version >= _KINDS_VERSION else GroupKind.CLASSIC,
            listed.group_state not in _WITHOUT_MEMBERS,
        )
        for listed in answer.groups
    ]


async def _active(client: RawClient, names: Iterable[str]) -> set[str]:
    """Those with members, where the list does not tell states (Kafka before 2.6)."""
    active: set[str] = set()
    for portion in portions(names, lambda _: 1, GROUPS_A_REQUEST):
        located = await locate_coordinators(client, CoordinatorType.GROUP, portion)
        by_node: dict[int, list[str]] = {}
        for name, node_id in located.nodes.items():
            by_node.setdefault(node_id, []).append(name)
        # Of a group that can't be described nothing may be assumed but that somebody uses it.
        active |= located.denied
        answers = await client.gather(
            client.request(DescribeGroupsRequest(groups=members, include_authorized_operations=False), node_id)
            for node_id, members in by_node.items()
        )
        active |= {
            group.group_id
            for answer in answers
            for group in answer.groups
            if group.error_code or group.group_state not in _WITHOUT_MEMBERS
        }
    return active
