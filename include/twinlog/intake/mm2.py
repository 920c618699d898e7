"""MirrorMaker 2's configuration, in both its dialects, as a topology.

The dedicated dialect is one file for an estate (`clusters = NYC, LON`, `NYC->LON.enabled = true`); what holds
is what MirrorMaker 2 itself would take: a flow's own setting, else the one without prefix; for clients the
cluster's own property, else the one without prefix. The connector dialect (`source.cluster.alias`,
`connector.class = ...MirrorSourceConnector`) is one flow a connector, as properties or as JSON; the source,
checkpoint and heartbeat connectors of one flow are brought together.

A pair of clusters that MirrorMaker 2 does not mirror, for want of `enabled = true`, is not mirrored here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path

from twinlog.errors import ImportSourceError
from twinlog.intake.connector_file import Connector, credentials_of, read_connectors
from twinlog.intake.imported import Imported, Written
from twinlog.intake.no_counterpart import MM2, reason_for
from twinlog.intake.topology_writer import FLOW_SETTINGS, Draft
from twinlog.model.kinds import split_list

_RENAMED = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
    "tasks.max": "lanes",
}
_POLICIES = {"DefaultReplicationPolicy": "prefixed", "IdentityReplicationPolicy": "identity"}
_DEFAULT_FILTERS = {
    "topic.filter.class": "DefaultTopicFilter",
    "group.filter.class": "DefaultGroupFilter",
    "config.property.filter.class": "DefaultConfigPropertyFilter",
}
_MIRROR_CONNECTORS = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
# What MirrorMaker 2 hands to its clients without being told which of them is meant.
_FOR_ALL_CLIENTS = re.compile(r"bootstrap\.servers|security\.protocol|security\.providers|(ssl|sasl)\..+")
_FOR_ONE_ROLE = re.compile(r"(consumer|producer|admin)\..+")
_FLOW_CLIENT = re.compile(r"((source|target)\.)?(consumer|producer|admin)\..+")
_OVERRIDE = re.compile(r"(producer|admin)\.override\.(?P<name>.+)")
_AUTO_OFFSET_RESET = re.compile(r"(source\.)?consumer\.auto\.offset\.reset")
_UNKNOWN = "neither MirrorMaker 2 nor Twinlog knows it"

PutSetting = Callable[..., None]
"""Writes one flow setting: name, Written and, where it differs from what is written, the value."""


def import_mm2(*paths: Path) -> Imported:
    """One mm2.properties, or the connectors (properties or JSON) that together mirror an estate."""
    connectors = [connector for path in paths for connector in read_connectors(path)]
    dedicated = [connector for connector in connectors if "clusters" in connector.values]
    if dedicated and len(connectors) > 1:
        raise ImportSourceError(f"{dedicated[0].file} describes a whole estate; import it by itself.")
    draft = Draft(credentials_of(connectors))
    if dedicated:
        _Dedicated(draft, dedicated[0]).run()
    else:
        for connector in connectors:
            _import_connector(draft, connector)
    for connector in connectors:
        for written in connector.shadowed:
            draft.leave_out(written, "the key is written again further down, and the last one counts")
    for alias, properties in draft.clusters.items():
        if "bootstrap.servers" not in properties:
            raise ImportSourceError(f"{paths[0]}: cluster {alias} has no bootstrap.servers; add them, then import.")
    if not draft.flows:
        raise ImportSourceError(
            f"{paths[0]} has no flow: MirrorMaker 2 mirrors only pairs of clusters with A->B.enabled = true."
        )
    _size_journals(draft)
    names = ", ".join(str(path) for path in paths)
    return draft.finish([f"Made by `twinlog topology import-mm2` from {names}."])


def _size_journals(draft: Draft) -> None:
    """The journal does what the offset syncs did; where brokers are too few for three of those, so they are for it."""
    for settings in (draft.defaults, *draft.flows.values()):
        if "offset-syncs.topic.replication.factor" in settings:
            settings["journal.topic.replication.factor"] = settings["offset-syncs.topic.replication.factor"]


class _Dedicated:
    """The dialect of connect-mirror-maker.sh: every key is for a flow, for a cluster, or for all."""

    def __init__(self, draft: Draft, connector: Connector) -> None:
        self.draft = draft
        self.connector = connector
        self.aliases = list(dict.fromkeys(split_list(connector.values["clusters"].value)))
        if len(self.aliases) < 2:
            raise ImportSourceError(
                f"{connector.values['clusters'].place}: clusters must name two or more, such as NYC, LON."
            )
        self.pairs = [f"{source}->{target}" for source, target in permutations(self.aliases, 2)]
        # The longest first: one alias may be how another begins, and aliases may hold dots.
        self._owners = sorted([*self.pairs, *self.aliases], key=len, reverse=True)

    def run(self) -> None:
        for alias in self.aliases:
            self.draft.clusters[alias] = {}
        for_all: list[Written] = []
        for_clusters: list[tuple[str, str, Written]] = []
        for_flows: list[tuple[str, str, Written]] = []
        for written in self.connector.values.values():
            owner = next((o for o in self._owners if written.key.startswith(o + ".")), None)
            if owner is None:
                for_all.append(written)
            else:
                into = for_flows if owner in self.pairs else for_clusters
                into.append((owner, written.key.removeprefix(owner + "."), written))
        self._enable(for_flows, for_all)
        for owner, key, written in for_flows:
            _take_for_flow(self.draft, owner, key, written)
        for owner, key, written in for_clusters:
            self._take_for_cluster(owner, key, written)
        for written in for_all:
            self._take_for_all(written)

    def _enable(self, for_flows: Iterable[tuple[str, str, Written]], for_all: Iterable[Written]) -> None:
        """Brings every flow that has a key of its own, or is enabled along with all, into the draft."""
        everywhere = any(w.key == "enabled" and w.value.strip().lower() == "true" for w in for_all)
        own = {owner: True for owner, _, _ in for_flows}
        said = {owner for owner, key, _ in for_flows if key == "enabled"}
        for pair in self.pairs:
            if pair not in own and not everywhere:
                continue
            flow = self.draft.flows.setdefault(pair, {})
            if pair not in said and not everywhere:
                # MirrorMaker 2's default, where Twinlog's is that a flow which is listed is wanted.
                flow["enabled"] = False

    def _take_for_cluster(self, alias: str, key: str, written: Written) -> None:
        if key == "consumer.auto.offset.reset":
            flows = [flow for flow in self.draft.flows if flow.startswith(f"{alias}->")]
            if not flows:
                self.draft.leave_out(written, f"no flow starts at {alias}")
                return
            self.draft.flow_setting(flows, "topics.from", written)
        elif _FOR_ALL_CLIENTS.fullmatch(key) or _FOR_ONE_ROLE.fullmatch(key):
            self.draft.cluster_property([alias], key, written)
        elif key in FLOW_SETTINGS or key in _RENAMED or key.startswith("replication.policy."):
            self.draft.leave_out(
                written, f"MirrorMaker 2 ignores it for a cluster; it is for all, or for a flow as in A->B.{key}"
            )
        else:
            fallback = f"MirrorMaker 2 does not hand it to its clients; write it as {alias}.consumer.{key}"
            self.draft.leave_out(written, reason_for(key, MM2) or fallback)

    def _take_for_all(self, written: Written) -> None:
        key = written.key
        if key == "clusters":
            self.draft.take(written, "clusters")
        elif _FOR_ALL_CLIENTS.fullmatch(key):
            self._take_for_every_cluster(written)
        elif not _take_setting(self.draft, key, written, self.draft.default_setting):
            reason = reason_for(key, MM2)
            if reason is None and _FOR_ONE_ROLE.fullmatch(key):
                reason = f"MirrorMaker 2 ignores it without a cluster in front, as in {self.aliases[0]}.{key}"
            if reason is None and "->" in key:
                reason = "it is for a pair of clusters that `clusters` does not name"
            self.draft.leave_out(written, reason or _UNKNOWN)

    def _take_for_every_cluster(self, written: Written) -> None:
        without = [alias for alias in self.aliases if f"{alias}.{written.key}" not in self.connector.values]
        if without:
            self.draft.cluster_property(without, written.key, written)
        else:
            self.draft.leave_out(written, "every cluster has its own")


def _import_connector(draft: Draft, connector: Connector) -> None:
    """The dialect of Kafka Connect: the whole configuration is one flow's."""
    values = connector.values
    class_name = values["connector.class"].value.strip() if "connector.class" in values else ""
    if class_name.rsplit(".", 1)[-1] not in _MIRROR_CONNECTORS:
        raise ImportSourceError(
            f"{connector.file} is not MirrorMaker 2's: it has neither `clusters` nor a connector.class that is "
            f"one of {', '.join(_MIRROR_CONNECTORS)}."
        )
    source, target = (_alias(values, side) for side in ("source", "target"))
    if source == target:
        raise ImportSourceError(f"{connector.file} mirrors {source} to itself; give the clusters two aliases.")
    for alias in (source, target):
        draft.clusters.setdefault(alias, {})
    flow = f"{source}->{target}"
    draft.flows.setdefault(flow, {})
    for key, written in values.items():
        if key in ("source.cluster.alias", "target.cluster.alias"):
            draft.take(written, "flows", flow)
        elif key.startswith("source.cluster."):
            draft.cluster_property([source], key.removeprefix("source.cluster."), written)
        elif key.startswith("target.cluster."):
            draft.cluster_property([target], key.removeprefix("target.cluster."), written)
        else:
            _take_for_flow(draft, flow, key, written)


def _alias(values: dict[str, Written], side: str) -> str:
    written = values.get(f"{side}.cluster.alias")
    return written.value.strip() if written is not None else side


def _take_for_flow(draft: Draft, flow: str, key: str, written: Written) -> None:
    def put(name: str, at: Written, value: str | None = None) -> None:
        draft.flow_setting([flow], name, at, value)

    if _take_setting(draft, key, written, put):
        return
    if (reason := reason_for(key, MM2)) is not None:
        draft.leave_out(written, reason)
    elif _AUTO_OFFSET_RESET.fullmatch(key):
        draft.flow_setting([flow], "topics.from", written)
    elif (override := _OVERRIDE.fullmatch(key)) is not None:
        draft.flow_property(flow, f"target.{override[1]}.{override['name']}", written)
    elif key.startswith(("source.cluster.", "target.cluster.")):
        draft.leave_out(written, "a cluster has one set of connection settings; write it for the cluster")
    elif _FLOW_CLIENT.fullmatch(key):
        draft.flow_property(flow, key, written)
    else:
        draft.leave_out(written, _UNKNOWN)


def _take_setting(draft: Draft, key: str, written: Written, put: PutSetting) -> bool:
    """Whether the key is one that Twinlog has under this or another name, and so was dealt with."""
    name = _RENAMED.get(key, key)
    simple_class = written.value.strip().rsplit(".", 1)[-1]
    if key == "replication.policy.class":
        if simple_class in _POLICIES:
            put("naming", written, _POLICIES[simple_class])
        else:
            draft.leave_out(
                written,
                "the policy is a Java class; write one in Python (naming: custom, naming.policy). Until then "
                "names are prefixed",
            )
            draft.note(f"Names need a look: {simple_class} is a replication policy that Twinlog does not know.")
        return True
    if key == "enabled":
        # Java's parseBoolean: whatever is not "true" is false, and must not become Twinlog's default, true.
        put(name, written, "true" if written.value.strip().lower() == "true" else "false")
        return True
    if _DEFAULT_FILTERS.get(key) == simple_class:
        draft.leave_out(written, "it is the default, and Twinlog's")
        return True
    if name in FLOW_SETTINGS and (FLOW_SETTINGS[name].mm2 or key in _RENAMED):
        put(name, written)
        return True
    return False
