"""Deleting groups that nobody is a member of, their committed offsets with them."""

from __future__ import annotations

import time
from collections.abc import Iterable

from kafka import errors as kafka_errors
from kafka.protocol.admin import DeleteGroupsRequest
from kafka.protocol.metadata import CoordinatorType

from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, refusal

PATIENCE_S = 30.0
PAUSE_S = 0.1
_GONE = kafka_errors.GroupIdNotFoundError
_WAIT = (
    kafka_errors.CoordinatorLoadInProgressError,
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.NotCoordinatorError,
)


async def delete_groups(client: RawClient, names: Iterable[str]) -> dict[str, Refusal]:
    """Delete these; what was refused, by name. One that is gone by now is not refused."""
    refused = {}
    for name in names:
        failed = await _delete(client, name)
        if failed is not None:
            refused[name] = failed
    return refused


async def _delete(client: RawClient, name: str) -> Refusal | None:
    deadline = time.monotonic() + PATIENCE_S
    moved = False
    while True:
        node_id = await client.coordinator(CoordinatorType.GROUP, name, refresh=moved)
        answer = await client.request(DeleteGroupsRequest(groups_names=[name]), node_id)
        error = kafka_errors.for_code(answer.results[0].error_code)
        if issubclass(error, _GONE):
            return None
        if not issubclass(error, _WAIT) or time.monotonic() > deadline:
            return refusal(answer.results[0].error_code, None)
        moved = True
        await client.pause(PAUSE_S)
