"""Client quotas and SCRAM users of a cluster. A user's credentials can be listed but never read, by Kafka's design."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import kafka.errors as kafka_errors
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeUserScramCredentialsRequest,
)

from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, refusal
from twinlog.model.quotas import Quota, QuotaChange

_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_DESCRIBE = 8
"""Kafka's number of the operation."""


@dataclass(frozen=True, slots=True)
class QuotasRead:
    """Every quota of a cluster, or why they can't be read."""

    quotas: Mapping[Quota, float] = field(default_factory=dict)
    refused: Refusal | None = None


@dataclass(frozen=True, slots=True)
class UsersRead:
    """The SCRAM users of a cluster with their mechanisms, or why they can't be read."""

    users: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refused: Refusal | None = None


async def read_quotas(client: RawClient) -> QuotasRead:
    answer = await client.request(DescribeClientQuotasRequest(components=[], strict=False))
    failed = refusal(answer.error_code, answer.error_message)
    if failed is not None:
        return QuotasRead(refused=failed)
    return QuotasRead(
        {
            Quota(tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)), limit.key): limit.value
            for entry in answer.entries or ()
            for limit in entry.values
        }
    )


async def read_scram_users(client: RawClient) -> UsersRead:
    # In trials with Kafka 4.3, whoever asked without the permission got no answer at all, until the time-out.
    if not await _may_describe(client):
        return UsersRead(refused=refusal(kafka_errors.ClusterAuthorizationFailedError.errno, None))
    answer = await client.request(DescribeUserScramCredentialsRequest(users=None))
    failed = refusal(answer.error_code, answer.error_message)
    if failed is not None:
        return UsersRead(refused=failed)
    return UsersRead(
        {
            user.user: tuple(sorted(_MECHANISMS.get(one.mechanism, "unknown") for one in user.credential_infos))
            for user in answer.results
            if not user.error_code
        }
    )


async def change_quotas(client: RawClient, changes: Iterable[QuotaChange]) -> dict[Quota, Refusal]:
    """Set and remove limits. What was refused."""
    # Kafka takes and answers an entity once, however many of its limits are to change.
    by_entity: dict[tuple[tuple[str, str | None], ...], list[QuotaChange]] = {}
    for change in changes:
        by_entity.setdefault(change.quota.entity, []).append(change)
    if not by_entity:
        return {}
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[
                    entry.OpData(key=change.quota.key, value=change.after or 0.0, remove=change.after is None)
                    for change in wanted
                ],
            )
            for entity, wanted in by_entity.items()
        ],
        validate_only=False,
    )
    answer = await client.request(request, client.controller())
    refused: dict[Quota, Refusal] = {}
    for result in answer.entries:
        failed = refusal(result.error_code, result.error_message)
        if failed is not None:
            entity = tuple(sorted((part.entity_type, part.entity_name) for part in result.entity))
            refused |= {change.quota: failed for change in by_entity[entity]}
    return refused


async def _may_describe(client: RawClient) -> bool:
    answer = await client.request(DescribeClusterRequest(include_cluster_authorized_operations=True))
    return _DESCRIBE in answer.authorized_operations
