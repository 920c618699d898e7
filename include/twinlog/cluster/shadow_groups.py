"""Deletes consumer groups that were made for a while; one that is gone already is what was wanted."""

from __future__ import annotations

from collections.abc import Sequence

import kafka.errors as kafka_errors
from kafka.protocol.admin import DeleteGroupsRequest
from kafka.protocol.metadata import CoordinatorType

from twinlog.cluster.coordinators import locate_coordinators
from twinlog.cluster.raw import RawClient
from twinlog.errors import ClusterError

PATIENCE = 50
PAUSE_S = 0.1
_GONE = (kafka_errors.NoError, kafka_errors.GroupIdNotFoundError)
_WAIT = (
    kafka_errors.NonEmptyGroupError,
    kafka_errors.CoordinatorLoadInProgressError,
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.NotCoordinatorError,
)
"""A member that has left is still there for a moment."""


def delete_groups(client: RawClient, names: Sequence[str]) -> None:
    """Delete them, waiting for members that are about to leave."""
    left = list(names)
    refused: dict[str, str] = {}
    for _ in range(PATIENCE):
        if not left:
            break
        left, refused = client.run(_delete(client, left))
        if left:
            client.run(client.pause(PAUSE_S))
    wrong = {**refused, **dict.fromkeys(left, "it still has members")}
    if wrong:
        name, why = next(iter(wrong.items()))
        raise ClusterError(f"cluster {client.alias}: group {name} could not be deleted: {why}; grant DELETE on it")


async def _delete(client: RawClient, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Those to be tried again, and those that were refused, by the error's name."""
    located = await locate_coordinators(client, CoordinatorType.GROUP, names)
    by_node: dict[int, list[str]] = {}
    for name, node_id in located.nodes.items():
        by_node.setdefault(node_id, []).append(name)
    refused = dict.fromkeys(located.denied, "not allowed")
    again: list[str] = []
    for node_id, members in by_node.items():
        answer = await client.request(DeleteGroupsRequest(groups_names=members), node_id)
        for result in answer.results:
            error = kafka_errors.for_code(result.error_code)
            if issubclass(error, _WAIT):
                again.append(result.group_id)
            elif not issubclass(error, _GONE):
                refused[result.group_id] = error.__name__
    return again, refused
