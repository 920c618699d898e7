"""Reading, adding and removing permissions; all are read in one request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, portions, refusal
from twinlog.model.acls import Acl, Pattern

ACLS_A_REQUEST = 1_000
NO_AUTHORIZER = "SecurityDisabled"

_ANY = 1
_TYPES = {2: "topic", 3: "group", 4: "cluster", 5: "transactional-id", 6: "delegation-token", 7: "user"}
_PATTERNS = {3: Pattern.LITERAL, 4: Pattern.PREFIXED}
_PERMISSIONS = {2: "DENY", 3: "ALLOW"}
_OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
_TYPE_CODES = {name: code for code, name in _TYPES.items()}
_PATTERN_CODES = {name: code for code, name in _PATTERNS.items()}
_PERMISSION_CODES = {name: code for code, name in _PERMISSIONS.items()}
_OPERATION_CODES = {name: code for code, name in _OPERATIONS.items()}


@dataclass(frozen=True, slots=True)
class AclsRead:
    """Every permission of a cluster that has words here, or why they can't be read."""

    acls: frozenset[Acl] = frozenset()
    refused: Refusal | None = None

    @property
    def no_authorizer(self) -> bool:
        """The cluster checks no permissions and so keeps none."""
        return self.refused is not None and self.refused.error == NO_AUTHORIZER


async def read_acls(client: RawClient, node_id: int | None = None) -> AclsRead:
    """All permissions of the cluster, as one broker of it knows them, any where none is named."""
    answer = await client.request(
        DescribeAclsRequest(
            resource_type_filter=_ANY,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        ),
        node_id,
    )
    failed = refusal(answer.error_code, answer.error_message)
    if failed is not None:
        return AclsRead(refused=failed)
    return AclsRead(
        frozenset(
            Acl(
                _TYPES[resource.resource_type],
                resource.resource_name,
                _PATTERNS[resource.pattern_type],
                acl.principal,
                acl.host,
                _OPERATIONS[acl.operation],
                _PERMISSIONS[acl.permission_type],
            )
            for resource in answer.resources
            for acl in resource.acls
            # A newer Kafka may have kinds that this program has no word for; it neither copies nor removes them.
            if resource.resource_type in _TYPES and acl.operation in _OPERATIONS
        )
    )


async def add_acls(client: RawClient, acls: Iterable[Acl]) -> dict[Acl, Refusal]:
    """Add permissions; one that is there already stays. What was refused."""

    async def add(portion: list[Acl]) -> Iterable[Any]:
        request = CreateAclsRequest(creations=[_creation(acl) for acl in portion])
        return (await client.request(request, client.controller())).results  # type: ignore[no-any-return]

    return await _changed(acls, add)


async def remove_acls(client: RawClient, acls: Iterable[Acl]) -> dict[Acl, Refusal]:
    """Remove exactly these permissions. What was refused."""

    async def remove(portion: list[Acl]) -> Iterable[Any]:
        request = DeleteAclsRequest(filters=[_exactly(acl) for acl in portion])
        return (await client.request(request, client.controller())).filter_results  # type: ignore[no-any-return]

    return await _changed(acls, remove)


async def _changed(acls: Iterable[Acl], change: Callable[[list[Acl]], Awaitable[Iterable[Any]]]) -> dict[Acl, Refusal]:
    """Portion by portion; answers come in the order of the questions."""
    return {
        acl: failed
        for portion in portions(acls, lambda _: 1, ACLS_A_REQUEST)
        for acl, result in zip(portion, await change(portion), strict=True)
        if (failed := refusal(result.error_code, result.error_message)) is not None
    }


def _creation(acl: Acl) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=_TYPE_CODES[acl.resource_type],
        resource_name=acl.resource_name,
        resource_pattern_type=_PATTERN_CODES[acl.pattern],
        principal=acl.principal,
        host=acl.host,
        operation=_OPERATION_CODES[acl.operation],
        permission_type=_PERMISSION_CODES[acl.permission],
    )


def _exactly(acl: Acl) -> DeleteAclsRequest.DeleteAclsFilter:
    return DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=_TYPE_CODES[acl.resource_type],
        resource_name_filter=acl.resource_name,
        pattern_type_filter=_PATTERN_CODES[acl.pattern],
        principal_filter=acl.principal,
        host_filter=acl.host,
        operation=_OPERATION_CODES[acl.operation],
        permission_type=_PERMISSION_CODES[acl.permission],
    )
