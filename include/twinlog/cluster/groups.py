"""The groups of a cluster: every broker is asked for those that it coordinates, all brokers at once.

A broker names the groups that we may describe and says nothing of the others; `sees_all_groups` tells whether there
can be others. A broker that does not answer is an error: a list without its groups would look complete. So would one
of a broker that does not know all its groups at the moment, since it has just got some or is about to lose some; a
broker's list therefore counts for those partitions of the offsets topic only

- that it leads before and after it, in the same epoch, by its own account,
- whose end it knows, and
- of which it answers for a group, right before it lists them: it has loaded them.

All partitions must be counted so, or all are asked again. Those that nobody leads are told of.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import kafka.errors as kafka_errors
from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.metadata import CoordinatorType

from twinlog.cluster.coordinators import locate_coordinators
from twinlog.cluster.group_coordinators import OFFSETS_TOPIC, account_of, complete, led_by, loaded, probes
from twinlog.cluster.metadata import Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, portions, refusal_named

PATIENCE_S = 30.0
"""For brokers that are loading their groups."""
LEADERLESS_PATIENCE_S = 2.0
"""For partitions that nobody leads, as right after a broker was lost."""
PAUSE_S = 0.1
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


@dataclass(frozen=True, slots=True)
class GroupList:
    """The groups of a cluster that we may describe, by name, and what may be missing among them."""

    groups: Mapping[str, Group]
    leaderless: tuple[int, ...] = ()
    """Partitions of the offsets topic that nobody leads: their groups are on no broker's list."""
    hidden: Refusal | None = None
    """Why it can't be told which partitions there are, and so whether brokers have loaded all their groups."""
    denied: bool = False
    """We may not ask for groups by name, so it can't be told whether brokers have loaded all theirs."""
    led: Mapping[int, Mapping[int, int | None]] = field(default_factory=dict)
    """By broker, the partitions that its list counts for, each with the leader epoch."""


@dataclass(frozen=True, slots=True)
class _Share:
    """One broker's list, and the partitions that it counts for."""

    node_id: int
    groups: list[Group]
    led: Mapping[int, int | None] = field(default_factory=dict)
    denied: bool = False


async def list_groups(client: RawClient) -> Mapping[str, Group]:
    """Every group of the cluster that we may describe, by name."""
    return (await group_list(client)).groups


async def group_list(client: RawClient) -> GroupList:
    """The same, with what may be missing among them."""
    started = time.monotonic()
    while True:
        view = await client.metadata([OFFSETS_TOPIC])
        topic = view.topics[OFFSETS_TOPIC]
        names = probes(len(topic.partitions))
        shares = await client.gather(_share(client, node_id, names) for node_id in view.brokers)
        found = GroupList(
            {group.name: group for share in shares for group in share.groups},
            tuple(one.number for one in topic.partitions if one.leader is None),
            # Without the topic nobody has ever committed anything, so there is no part that could be missing.
            None if topic.error is None or topic.is_missing else refusal_named(topic.error),
            any(share.denied for share in shares),
            {share.node_id: share.led for share in shares},
        )
        uncounted = _uncounted(topic, shares)
        waited_s = time.monotonic() - started
        if uncounted <= set(found.leaderless) and (not found.leaderless or waited_s > LEADERLESS_PATIENCE_S):
            return found
        if waited_s > PATIENCE_S:
            numbers = ", ".join(map(str, sorted(uncounted)))
            raise client.failures.unreachable(
                f"the leaders of these partitions of {OFFSETS_TOPIC} have not loaded their groups yet: {numbers}"
            )
        await client.pause(PAUSE_S)


def _uncounted(topic: Topic, shares: Iterable[_Share]) -> set[int]:
    return {one.number for one in topic.partitions}.difference(*(share.led for share in shares))


async def _share(client: RawClient, node_id: int, names: Mapping[int, str]) -> _Share:
    if not names:
        return _Share(node_id, await _listed(client, node_id))
    account = await account_of(client, node_id)
    before = led_by(node_id, account)
    ends = await complete(client, account, before)
    known = await loaded(client, node_id, before, names)
    groups = await _listed(client, node_id)
    after = led_by(node_id, await account_of(client, node_id))
    counts = ends & (known.partitions | known.denied)
    led = {number: epoch for number, epoch in (before.items() & after.items()) if number in counts}
    return _Share(node_id, groups, led, bool(known.denied))


async def sees_all_groups(client: RawClient) -> bool:
    """Whether we may describe the cluster, and so see the name of each of its groups; before Kafka 2.8 no one can."""
    try:
        client.api_version(DescribeClusterRequest)
    except kafka_errors.IncompatibleBrokerVersion:
        return False
    answer = await client.request(DescribeClusterRequest(include_cluster_authorized_operations=True))
    return _DESCRIBE in (answer.authorized_operations or ())


async def _listed(client: RawClient, node_id: int) -> list[Group]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = await client.request(ListGroupsRequest(states_filter=[], types_filter=[]), node_id)
        error = kafka_errors.for_code(answer.error_code)
        if error is kafka_errors.NoError:
            break
        if not issubclass(error, kafka_errors.RetriableError):
            raise client.failures.of_raw(error("the list of groups"))
        if time.monotonic() > deadline:
            raise client.failures.unreachable(f"broker {node_id} is still loading its groups")
        await client.pause(PAUSE_S)
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
