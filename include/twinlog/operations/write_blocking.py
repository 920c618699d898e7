"""Closes the source's topics to everybody but us, and opens them again.

What is denied is part of the flow's record on the target before it is denied on the source, so that whoever comes later
can take back exactly that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.acl_admin import add_acls, read_acls, remove_acls
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, demand, principal_of
from twinlog.cluster.visibility import acls_visible
from twinlog.errors import ClusterError
from twinlog.intake.extensions import naming_of
from twinlog.model.acls import Acl
from twinlog.model.topology import Flow, Topology
from twinlog.model.way_home import WayHome
from twinlog.model.write_block import WriteBlock, write_block
from twinlog.operations.directions import opposite_flow
from twinlog.operations.lease import flow_store

_CLUSTER = "the cluster"


def plan_block(topology: Topology, flow: Flow, access: ClusterAccess, topics: Sequence[str]) -> WriteBlock:
    """What would be denied on the source, which `access` leads to."""
    other = opposite_flow(topology, flow)
    same = isinstance(flow, WayHome) or (
        other is not None and any(naming_of(other).target_name(topic) == topic for topic in topics)
    )
    with access.raw() as source:
        read = source.run(read_acls(source))
    if read.no_authorizer:
        raise ClusterError(f"cluster {flow.source} has no authorizer, so writes to it can't be blocked by ACLs")
    if read.refused is not None:
        demand(flow.source, principal_of(access.settings), "DESCRIBE", {_CLUSTER: read.refused}, "writes stay open")
    return write_block(read.acls, topics, principal_of(access.settings), we_write_there=same)


def block(flow: Flow, source: RawClient, target: RawClient, denials: Sequence[Acl]) -> None:
    """Deny it; returns once the source's brokers know."""
    if not denials:
        return
    target.run(
        flow_store(flow, target).change(
            lambda found: replace(found, write_block=tuple(sorted({*found.write_block, *denials})))
        )
    )
    deny(source, denials)


def unblock(flow: Flow, source: RawClient, target: RawClient) -> int:
    """Take back what was denied, if anything was; how many denials that were."""
    record = target.run(flow_store(flow, target).read())
    if not record.write_block:
        return 0
    allow(source, record.write_block)
    target.run(flow_store(flow, target).change(lambda found: replace(found, write_block=())))
    return len(record.write_block)


def deny(client: RawClient, denials: Sequence[Acl]) -> None:
    """Returns once the brokers know."""
    refused = client.run(add_acls(client, denials))
    demand(client.alias, client.principal, "ALTER", _first(refused), f"{len(refused):,} denials were not added")
    if not client.run(acls_visible(client, denials, ())):
        raise ClusterError(
            f"cluster {client.alias} took the denials and does not show them; are its brokers all there?"
        )


def allow(client: RawClient, denials: Sequence[Acl]) -> None:
    """Take these back."""
    refused = client.run(remove_acls(client, denials)) if denials else {}
    demand(client.alias, client.principal, "ALTER", _first(refused), f"{len(refused):,} denials are still there")


def _first(refused: dict[Acl, Refusal]) -> dict[str, Refusal]:
    return {_CLUSTER: next(iter(refused.values()))} if refused else {}
