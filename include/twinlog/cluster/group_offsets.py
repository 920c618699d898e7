"""Committed offsets of thousands of groups: read many groups a request, written a group a request.

Writing is a plain OffsetCommit of nobody in particular (no member, no generation): the broker itself refuses it for a
group that has members by then, so a group that came to life meanwhile is never written over. What remains: Kafka knows
no commit on condition, so a group that joins, commits and leaves again, or whose offsets somebody sets by hand, between
our last look at its offsets and our request is written over. A request a group is the protocol's; a broker works on one
request of a connection at a time, so several connections are used side by side.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import CoordinatorType

from twinlog.cluster.coordinators import locate_coordinators
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, portions, refusal
from twinlog.errors import ClusterUnreachableError
from twinlog.model.checkpoints import NO_LEADER_EPOCH, Commit
from twinlog.model.offsets import TopicPartition

MANY_GROUPS_VERSION = 8
"""The first OffsetFetch for many groups (Kafka 3.0)."""
LAST_VERSION_BY_NAME = 9
"""Of OffsetFetch and OffsetCommit; later ones know topics by id only."""
GROUPS_A_REQUEST = 250
PARTITIONS_A_REQUEST = 2_000
"""A coordinator writes a request's offsets as one batch, which must fit its log."""
IN_FLIGHT = 4
"""Requests of one connection."""
PATIENCE_S = 30.0
PAUSE_S = 0.1

_DENIED = Refusal("GroupAuthorizationFailed", "not allowed to describe the group", not_allowed=True)

GroupCommits = Mapping[TopicPartition, Commit]

NOT_YET = (
    kafka_errors.CoordinatorLoadInProgressError,
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.NotCoordinatorError,
)
"""What a coordinator answers that is no longer, or not yet, the group's."""
_HAS_MEMBERS = frozenset(
    error.errno
    for error in (
        kafka_errors.UnknownMemberIdError,
        kafka_errors.IllegalGenerationError,
        kafka_errors.RebalanceInProgressError,
        kafka_errors.StaleMemberEpochError,
    )
)


@dataclass(frozen=True, slots=True)
class Offsets:
    """The committed offsets of each group; of those in `refused`, the reason why they can't be read."""

    groups: Mapping[str, GroupCommits] = field(default_factory=dict)
    refused: Mapping[str, Refusal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """What became of one group's offsets; where neither is set, all are committed."""

    active: bool = False
    """The group has members, so that nothing was written."""
    refused: Mapping[TopicPartition, Refusal] = field(default_factory=dict)


async def fetch_offsets(client: RawClient, groups: Sequence[str], version: int | None = None) -> Offsets:
    """What each group has committed, pending transactions aside; `version` is the highest both sides know."""
    version = min(version or client.api_version(OffsetFetchRequest), LAST_VERSION_BY_NAME)
    found: dict[str, GroupCommits] = {}
    refused: dict[str, Refusal] = {}
    missing = list(groups)
    deadline = time.monotonic() + PATIENCE_S
    while missing:
        by_node = await _by_coordinator(client, missing, refused)
        missing = []
        for answers in await client.gather(fetch_from(client, node, names, version) for node, names in by_node.items()):
            for name, code, commits in answers:
                why = refusal(code, None)
                if why is None:
                    found[name] = commits
                elif issubclass(kafka_errors.for_code(code), NOT_YET):
                    missing.append(name)
                else:
                    refused[name] = why
        if missing:
            if time.monotonic() > deadline:
                raise client.failures.unreachable(f"the offsets of {len(missing):,} groups could not be read")
            await client.pause(PAUSE_S)
    return Offsets(found, refused)


async def commit_offsets(clients: Sequence[RawClient], commits: Mapping[str, GroupCommits]) -> dict[str, CommitOutcome]:
    """Commit each group's offsets, over all these connections to the same cluster at once."""
    first = clients[0]
    refused: dict[str, Refusal] = {}
    nodes = {
        name: node_id
        for node_id, members in (await _by_coordinator(first, list(commits), refused)).items()
        for name in members
    }
    outcomes = {name: CommitOutcome(refused=dict.fromkeys(commits[name], why)) for name, why in refused.items()}
    waiting = iter(nodes.items())

    async def work(client: RawClient) -> None:
        for name, node_id in waiting:
            outcomes[name] = await _commit(client, name, node_id, commits[name])

    await first.gather(work(client) for client in clients for _ in range(IN_FLIGHT))
    return outcomes


async def _commit(client: RawClient, group: str, node_id: int, commits: GroupCommits) -> CommitOutcome:
    refused: dict[TopicPartition, Refusal] = {}
    for portion in portions(sorted(commits), lambda _: 1, PARTITIONS_A_REQUEST):
        chosen = {partition: commits[partition] for partition in portion}
        results = await _commit_portion(client, group, node_id, chosen)
        if any(code in _HAS_MEMBERS for code in results.values()):
            return CommitOutcome(active=True)
        refused |= {one: why for one, code in results.items() if (why := refusal(code, None)) is not None}
    return CommitOutcome(refused=refused)


async def _commit_portion(
    client: RawClient, group: str, node_id: int, commits: GroupCommits
) -> dict[TopicPartition, int]:
    """The error code of each partition, once waiting can't change it any more."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            answer = await client.request(_commit_request(client, group, commits), node_id)
        except ClusterUnreachableError:
            if time.monotonic() > deadline:
                raise
        else:
            results = {
                TopicPartition(topic.name, each.partition_index): each.error_code
                for topic in answer.topics
                for each in topic.partitions
            }
            passing = any(issubclass(kafka_errors.for_code(code), NOT_YET) for code in results.values())
            if not passing or time.monotonic() > deadline:
                return results
        await client.pause(PAUSE_S)
        node_id = await client.coordinator(CoordinatorType.GROUP, group, refresh=True)


async def _by_coordinator(client: RawClient, groups: list[str], refused: dict[str, Refusal]) -> dict[int, list[str]]:
    by_node: dict[int, list[str]] = {}
    for portion in portions(groups, lambda _: 1, GROUPS_A_REQUEST):
        located = await locate_coordinators(client, CoordinatorType.GROUP, portion)
        refused.update(dict.fromkeys(located.denied, _DENIED))
        for name, node_id in located.nodes.items():
            by_node.setdefault(node_id, []).append(name)
    return by_node


async def fetch_from(
    client: RawClient, node_id: int, groups: Sequence[str], version: int
) -> list[tuple[str, int, GroupCommits]]:
    """Each group with its error code and its offsets; one request at a time, as the broker works on them."""
    answers: list[tuple[str, int, GroupCommits]] = []
    for portion in portions(groups, lambda _: 1, GROUPS_A_REQUEST if version >= MANY_GROUPS_VERSION else 1):
        answer = await client.request(_fetch_request(portion, version), node_id)
        if version < MANY_GROUPS_VERSION:
            answers.append((portion[0], *_commits(answer)))
        else:
            answers += [(group.group_id, *_commits(group)) for group in answer.groups]
    return answers


def _fetch_request(groups: Sequence[str], version: int) -> OffsetFetchRequest:
    if version < MANY_GROUPS_VERSION:
        (group,) = groups
        return OffsetFetchRequest(group_id=group, topics=None, require_stable=False, version=version)
    wanted = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(
        groups=[
            wanted(group_id=group, member_id=None, member_epoch=-1, topics=None, version=version) for group in groups
        ],
        require_stable=False,
        version=version,
    )


def _commits(group: Any) -> tuple[int, GroupCommits]:
    code = group.error_code
    commits: dict[TopicPartition, Commit] = {}
    for topic in group.topics:
        for each in topic.partitions:
            code = code or each.error_code
            if each.committed_offset >= 0:
                commits[TopicPartition(topic.name, each.partition_index)] = Commit(
                    each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                )
    return code, commits


def _commit_request(client: RawClient, group: str, commits: GroupCommits) -> OffsetCommitRequest:
    version = min(client.api_version(OffsetCommitRequest), LAST_VERSION_BY_NAME)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.OffsetCommitRequestPartition(
                        partition_index=partition.partition,
                        committed_offset=commits[partition].offset,
                        committed_leader_epoch=NO_LEADER_EPOCH,
                        committed_metadata=commits[partition].metadata,
                        version=version,
                    )
                    for partition in members
                ],
                version=version,
            )
            for name, members in groupby(sorted(commits), key=lambda each: each.topic)
        ],
        version=version,
    )
