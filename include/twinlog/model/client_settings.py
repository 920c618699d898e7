"""Which value of a Kafka client property holds, where several are given.

Strongest first:

    flow     source.consumer.X     for one client of the flow
    flow     consumer.X            for both ends of the flow
    cluster  consumer.X            for one kind of client of the cluster
    cluster  X                     for every client of the cluster that knows X
    profile  lan or wan            see twinlog.model.clients

Of a property that is given without a role, a client takes only what its kind knows: a cluster's
fetch.max.bytes does not reach its producers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twinlog.errors import SettingError
from twinlog.model.clients import PROPERTIES, REFUSED, ROLES, SIDES, profile_settings
from twinlog.model.kinds import nearest
from twinlog.model.topology import Cluster, Flow, Topology


def client_settings(topology: Topology, flow: Flow, side: str, role: str) -> dict[str, str]:
    """The properties of one client of a flow; references in them are not resolved."""
    cluster = topology.clusters[flow.source if side == "source" else flow.target]
    merged = cluster_settings(cluster, role, flow.profile)
    for prefix in (f"{role}.", f"{side}.{role}."):
        merged.update(_with_prefix(flow.overrides, prefix))
    return merged


def cluster_settings(cluster: Cluster, role: str, profile: str = "lan") -> dict[str, str]:
    """The properties of a client that serves no flow in particular; references in them are not resolved."""
    merged = {"bootstrap.servers": cluster.bootstrap_servers, **profile_settings(profile, role)}
    known = (name for name in cluster.settings if name in PROPERTIES and role in PROPERTIES[name].roles)
    merged.update({name: cluster.settings[name] for name in known})
    merged.update(_with_prefix(cluster.settings, f"{role}."))
    return merged


def check_cluster_property(key: str, also_known: Sequence[str] = ()) -> None:
    """Raise a SettingError unless a cluster may say `X`, `consumer.X`, `producer.X` or `admin.X`."""
    _check(key, ["", *(f"{role}." for role in ROLES)], also_known)


def check_flow_property(key: str, also_known: Sequence[str] = ()) -> None:
    """Raise a SettingError unless a flow may say `consumer.X`, `source.consumer.X`, and so on."""
    prefixes = [f"{role}." for role in ROLES]
    _check(key, [*(f"{side}.{prefix}" for side in SIDES for prefix in prefixes), *prefixes], also_known)


def _check(key: str, prefixes: list[str], also_known: Sequence[str]) -> None:
    prefix = max((prefix for prefix in prefixes if key.startswith(prefix)), key=len, default=None)
    name = key.removeprefix(prefix or "")
    if name in REFUSED:
        raise SettingError(f"has no effect here ({REFUSED[name]}); leave it out")
    if prefix is None or name not in PROPERTIES:
        raise SettingError("unknown setting", nearest(key, [*also_known, *_spellings(prefixes)]))
    role = prefix.rstrip(".").rpartition(".")[2]
    if role and role not in PROPERTIES[name].roles:
        raise SettingError(f"{name} is a property of a {' or '.join(PROPERTIES[name].roles)}, not of a {role}")


def _spellings(prefixes: list[str]) -> Iterator[str]:
    for prefix in prefixes:
        role = prefix.rstrip(".").rpartition(".")[2]
        for name, described in PROPERTIES.items():
            if not role or role in described.roles:
                yield prefix + name


def _with_prefix(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
