"""A flow to be synced between two real clusters, and what administrators do to both by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)

from support.mirroring import Twins, create_topic
from support.waiting import await_condition
from twinlog.cluster.access import flow_access
from twinlog.ledger.store import Ledger
from twinlog.operations.sync import Sync
from twinlog.operations.sync_result import SyncResult

_EVERY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def sync(flow: Twins, *, dry_run: bool = False, approved: bool = False) -> SyncResult:
    source, target = (flow_access(flow.topology, flow.flow, side) for side in ("source", "target"))
    return Sync(flow.topology, flow.flow, source, target).run(dry_run=dry_run, approved=approved)


def opposite(flow: Twins) -> Twins:
    """The flow that goes the other way, in a topology of its own."""
    back = replace(flow.flow, source=flow.flow.target, target=flow.flow.source)
    return replace(
        flow,
        flow=back,
        topology=replace(flow.topology, flows={back.name: back}),
        ledger=Ledger(flow.topology.ledger, back.source, back.target),
        source_servers=flow.target_servers,
        target_servers=flow.source_servers,
    )


def both_ways(flow: Twins) -> tuple[Twins, Twins]:
    """The flow and its opposite, of one topology."""
    back = opposite(flow)
    topology = replace(flow.topology, flows={flow.flow.name: flow.flow, back.flow.name: back.flow})
    return replace(flow, topology=topology), replace(back, topology=topology)


def rows(result: SyncResult) -> list[tuple[str, str, str, str | None, str | None]]:
    return [(str(one.kind), one.resource, one.name, one.before, one.after) for one in result.changes]


class Hand:
    """Somebody with every right on one cluster."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers})

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        create_topic(self.servers, topic, partitions, settings)
        await_condition(lambda: topic in self.topics(), f"{topic} created")

    def grow(self, topic: str, partitions: int) -> None:
        _done(self.admin.create_partitions([NewPartitions(topic, partitions)]))
        await_condition(lambda: self.partitions(topic) == partitions, f"{topic} grown")

    def delete(self, topic: str) -> None:
        _done(self.admin.delete_topics([topic]))
        await_condition(lambda: topic not in self.topics(), f"{topic} deleted")

    def set(self, topic: str, **settings: str | None) -> None:
        entries = [
            ConfigEntry(
                name.replace("_", "."),
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in settings.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        _done(self.admin.incremental_alter_configs([resource]))
        named = {name.replace("_", "."): value for name, value in settings.items()}
        await_condition(
            lambda: all(self.overrides(topic).get(name) == value for name, value in named.items()), f"{topic} changed"
        )

    def overrides(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        (future,) = self.admin.describe_configs([resource]).values()
        return {name: entry.value for name, entry in future.result().items() if entry.source == 1}

    def partitions(self, topic: str) -> int:
        return len(self.admin.list_topics(topic, timeout=10).topics[topic].partitions)

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=10).topics)

    def groups(self) -> set[str]:
        """Whoever has committed offsets or members."""
        found = self.admin.list_consumer_groups(request_timeout=10).result()
        assert not found.errors
        return {group.group_id for group in found.valid}

    def allow(self, who: str, operation: str, name: str, **said: Any) -> None:
        acl = binding(who, operation, name, **said)
        _done(self.admin.create_acls([acl]))
        await_condition(lambda: _words(acl) in self.acls(name), f"{acl} added")

    @contextmanager
    def allowing(self, who: str, operation: str, name: str, **said: Any) -> Iterator[None]:
        """Inside the block only: what holds for the whole cluster would hold for other tests too."""
        self.allow(who, operation, name, **said)
        try:
            yield
        finally:
            self.revoke(who, operation, name, **said)

    def revoke(self, who: str, operation: str, name: str, **said: Any) -> None:
        acl = binding(who, operation, name, **said)
        _done(
            self.admin.delete_acls(
                [
                    AclBindingFilter(
                        acl.restype,
                        acl.name,
                        acl.resource_pattern_type,
                        acl.principal,
                        acl.host,
                        acl.operation,
                        acl.permission_type,
                    )
                ]
            )
        )
        await_condition(lambda: _words(acl) not in self.acls(name), f"{acl} removed")

    def acls(self, containing: str) -> set[tuple[str, str, str, str, str]]:
        """Of resources whose name has this in it: principal, permission, operation, pattern and name."""
        found: Iterable[AclBinding] = self.admin.describe_acls(_EVERY_ACL).result()
        return {_words(one) for one in found if containing in one.name}


def binding(
    who: str,
    operation: str,
    name: str,
    *,
    kind: str = "TOPIC",
    pattern: str = "LITERAL",
    permission: str = "ALLOW",
) -> AclBinding:
    return AclBinding(
        ResourceType[kind],
        name,
        ResourcePatternType[pattern],
        f"User:{who}",
        "*",
        AclOperation[operation],
        AclPermissionType[permission],
    )


def _words(acl: AclBinding) -> tuple[str, str, str, str, str]:
    return (
        acl.principal,
        acl.permission_type.name,
        acl.operation.name,
        acl.resource_pattern_type.name,
        acl.name,
    )


def _done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result()
