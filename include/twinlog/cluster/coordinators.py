"""Which broker keeps a group's positions or a transactional id's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import kafka.errors as kafka_errors
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from twinlog.cluster.refusals import DENIED, demand

if TYPE_CHECKING:
    from twinlog.cluster.raw import RawClient

RESOURCES = {CoordinatorType.TRANSACTION: "transactional id", CoordinatorType.GROUP: "group"}
"""As ACLs call what a coordinator keeps."""

_RETRY_S = 0.1
_ATTEMPTS = 100
"""The first question ever makes the cluster create its internal topic, which takes it a few seconds."""


@dataclass(frozen=True, slots=True)
class Located:
    """The coordinator's node id by key; for keys that we may not ask about, nothing but that."""

    nodes: Mapping[str, int]
    denied: frozenset[str]


async def find_coordinators(client: RawClient, kind: CoordinatorType, keys: Sequence[str]) -> Mapping[str, int]:
    """The coordinator's node id for every key, in one request where the cluster knows how (Kafka 3.0 and later)."""
    located = await locate_coordinators(client, kind, keys)
    if located.denied:
        resources = {f"{RESOURCES[kind]} {key}": DENIED for key in sorted(located.denied)}
        demand(client.alias, client.principal, "DESCRIBE", resources, "nothing of it can be read or written")
    return located.nodes


async def locate_coordinators(client: RawClient, kind: CoordinatorType, keys: Sequence[str]) -> Located:
    """The same where some of the keys may be none of our business."""
    found: dict[str, int] = {}
    denied: set[str] = set()
    missing = list(keys)
    for _ in range(_ATTEMPTS):
        for key, node_id, error_code in await _ask(client, kind, missing) if missing else ():
            error = kafka_errors.for_code(error_code)
            if error is kafka_errors.NoError:
                found[key] = node_id
            elif issubclass(error, kafka_errors.AuthorizationError):
                denied.add(key)
            elif not issubclass(error, kafka_errors.RetriableError):
                raise client.failures.of_raw(error(key))
        missing = [key for key in keys if key not in found and key not in denied]
        if not missing:
            return Located(found, frozenset(denied))
        await client.pause(_RETRY_S)
    raise client.failures.unreachable(f"it has no coordinator yet for {', '.join(missing[:3])}")


async def _ask(client: RawClient, kind: CoordinatorType, keys: list[str]) -> list[tuple[str, int, int]]:
    if client.api_version(FindCoordinatorRequest) >= 4:
        answer = await client.request(FindCoordinatorRequest(key_type=kind, coordinator_keys=keys))
        return [(one.key, one.node_id, one.error_code) for one in answer.coordinators]
    answers = await client.gather(client.request(FindCoordinatorRequest(key=key, key_type=kind)) for key in keys)
    return [(key, one.node_id, one.error_code) for key, one in zip(keys, answers, strict=True)]
