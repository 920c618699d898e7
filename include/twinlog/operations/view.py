"""The estate as its clusters show it: which clusters reach which, over how many hops, and with which topics."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import DENIED, Refusal, principal_of, refusal_named, sentences
from twinlog.cluster.secrets import mask
from twinlog.errors import NotAuthorizedError, TwinlogError
from twinlog.intake.extensions import naming_of
from twinlog.model.lanes import position_group
from twinlog.model.naming import HEARTBEATS, NamingPolicy
from twinlog.model.topology import Flow, Topology
from twinlog.model.upstream import Names, Upstream, remote_topics, upstream_clusters
from twinlog.operations.asking import ask_all

AccessFor = Callable[[Flow, str], ClusterAccess]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What one cluster's topics tell."""

    cluster: str
    upstream: tuple[Upstream, ...] = ()
    remote_topics: tuple[str, ...] = ()
    """Those that records were mirrored into, by their names or by a flow's positions on them."""
    hidden: str | None = None
    """What we may not see of it, in a sentence: something may be missing above."""
    error: str | None = None
    """Why the cluster told nothing, in a sentence."""
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """Every cluster of the topology that a flow uses."""

    clusters: tuple[ClusterView, ...]

    @property
    def exit_code(self) -> int:
        return max((cluster.exit_code for cluster in self.clusters), default=0)

    def to_json(self) -> dict[str, Any]:
        rows = [asdict(cluster) for cluster in self.clusters]
        for row in rows:
            del row["exit_code"]
        return {"clusters": rows}


@dataclass(frozen=True, slots=True)
class _Told:
    """What a cluster answered."""

    topics: tuple[str, ...]
    mirrored: frozenset[str]
    """Topics that flows have positions on which keep names."""
    hidden: str | None


def view(topology: Topology, accesses: AccessFor, timeout_s: float) -> View:
    """Ask every cluster for its topics, all at once, and read their names."""
    used: dict[str, tuple[Flow, str]] = {}
    for flow in topology.flows.values():
        used.setdefault(flow.source, (flow, "source"))
        used.setdefault(flow.target, (flow, "target"))
    questions = {
        alias: functools.partial(
            _ask,
            functools.partial(accesses, flow, side),
            _heartbeats(topology, alias),
            _telling_nothing(topology, alias),
            timeout_s,
        )
        for alias, (flow, side) in used.items()
    }
    answers = ask_all(questions, timeout_s, lambda alias: f"cluster {alias}")
    names = names_of(topology)
    return View(tuple(_described(alias, answers[alias], names) for alias in used))


def names_of(topology: Topology) -> Names:
    """How the topology's flows name topics."""
    flows_into: dict[str, list[tuple[str, NamingPolicy]]] = {}
    for flow in topology.flows.values():
        flows_into.setdefault(flow.target, []).append((flow.source, naming_of(flow)))
    marks = {alias: separators(topology, alias) for alias in topology.clusters}
    return Names(frozenset(topology.clusters), {alias: said for alias, said in marks.items() if said}, flows_into)


def separators(topology: Topology, cluster: str) -> list[str]:
    """Those of the flows into a cluster, which name its remote topics; of one that no flow reaches, its own flows'."""
    into = {flow.replication_policy_separator for flow in topology.flows.values() if flow.target == cluster}
    out_of = {flow.replication_policy_separator for flow in topology.flows.values() if flow.source == cluster}
    return sorted(into or out_of)


def _heartbeats(topology: Topology, cluster: str) -> list[str]:
    """The heartbeats that flows bring to a cluster, as they are called there."""
    return [naming_of(flow).target_name(HEARTBEATS) for flow in topology.flows.values() if flow.target == cluster]


def _telling_nothing(topology: Topology, cluster: str) -> list[str]:
    """The flows into a cluster that keep names, or may: what they mirror is told by their positions alone."""
    into = [flow for flow in topology.flows.values() if flow.target == cluster]
    return [flow.name for flow in into if flow.naming == "identity" or flow.naming_policy is not None]


def _ask(access: Callable[[], ClusterAccess], heartbeats: list[str], flows: list[str], timeout_s: float) -> _Told:
    deadline = time.monotonic() + timeout_s
    reached = access()
    with reached.raw(timeout_s) as client:
        topics = tuple(client.run(client.metadata(timeout_s=_left_s(deadline))).topics)
        refused = _unseen(client, sorted(set(heartbeats) - set(topics)), deadline)
        mirrored: set[str] = set()
        for flow in flows:
            try:
                positions = client.run(fetch_positions(client, position_group(flow), stable=False))
            except NotAuthorizedError:
                refused[f"group {position_group(flow)}"] = DENIED
            else:
                mirrored |= {partition.topic for partition in positions}
    consequence = "clusters that reach it may be missing here, or topics that came from there"
    said = sentences(reached.alias, principal_of(reached.settings), "DESCRIBE", refused, consequence)
    return _Told(topics, frozenset(mirrored), next(said, None))


def _unseen(client: RawClient, topics: list[str], deadline: float) -> dict[str, Refusal]:
    """Those of the topics that we may not see: they are missing from the list of all, and asked by name told apart."""
    if not topics:
        return {}
    named = client.run(client.metadata(topics, timeout_s=_left_s(deadline))).topics
    return {
        f"topic {topic.name}": refusal_named(topic.error)
        for topic in named.values()
        if topic.error is not None and not topic.is_missing
    }


def _left_s(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _described(alias: str, found: _Told | TwinlogError, names: Names) -> ClusterView:
    if isinstance(found, TwinlogError):
        return ClusterView(alias, error=mask(str(found)), exit_code=found.exit_code)
    origin = functools.partial(names.origin, alias)
    return ClusterView(
        alias,
        tuple(upstream_clusters(found.topics, origin)),
        tuple(sorted({*remote_topics(found.topics, origin), *found.mirrored})),
        found.hidden,
        exit_code=0 if found.hidden is None else 1,
    )
