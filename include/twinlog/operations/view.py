"""The estate as its clusters show it: which clusters reach which, over how many hops, and with which topics."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.refusals import principal_of, refusal_named, sentences
from twinlog.cluster.secrets import mask
from twinlog.errors import TwinlogError
from twinlog.intake.extensions import naming_of
from twinlog.model.naming import HEARTBEATS
from twinlog.model.topology import Flow, Topology
from twinlog.model.upstream import Upstream, remote_topics, upstream_clusters
from twinlog.operations.asking import ask_all

AccessFor = Callable[[Flow, str], ClusterAccess]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What one cluster's topics tell."""

    cluster: str
    upstream: tuple[Upstream, ...] = ()
    remote_topics: tuple[str, ...] = ()
    hidden: str | None = None
    """Which heartbeats we may not see, in a sentence: their clusters may be missing from `upstream`."""
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
    hidden: str | None


def view(topology: Topology, accesses: AccessFor, timeout_s: float) -> View:
    """Ask every cluster for its topics, all at once, and read their names."""
    used: dict[str, tuple[Flow, str]] = {}
    for flow in topology.flows.values():
        used.setdefault(flow.source, (flow, "source"))
        used.setdefault(flow.target, (flow, "target"))
    questions = {
        alias: functools.partial(_ask, functools.partial(accesses, flow, side), _heartbeats(topology, alias), timeout_s)
        for alias, (flow, side) in used.items()
    }
    answers = ask_all(questions, timeout_s, lambda alias: f"cluster {alias}")
    aliases = frozenset(topology.clusters)
    return View(tuple(_described(alias, answers[alias], aliases, separators(topology, alias)) for alias in used))


def separators(topology: Topology, cluster: str) -> list[str]:
    """Those of the flows into a cluster, which name its remote topics; of one that no flow reaches, its own flows'."""
    into = {flow.replication_policy_separator for flow in topology.flows.values() if flow.target == cluster}
    out_of = {flow.replication_policy_separator for flow in topology.flows.values() if flow.source == cluster}
    return sorted(into or out_of)


def _heartbeats(topology: Topology, cluster: str) -> list[str]:
    """The heartbeats that flows bring to a cluster, as they are called there."""
    return [naming_of(flow).target_name(HEARTBEATS) for flow in topology.flows.values() if flow.target == cluster]


def _ask(access: Callable[[], ClusterAccess], heartbeats: list[str], timeout_s: float) -> _Told:
    deadline = time.monotonic() + timeout_s
    reached = access()
    with reached.raw(timeout_s) as client:
        topics = tuple(client.run(client.metadata(timeout_s=_left_s(deadline))).topics)
        unlisted = sorted(set(heartbeats) - set(topics))
        if not unlisted:
            return _Told(topics, None)
        # A topic that we may not see is missing from the list of all; asked by name it is told apart.
        named = client.run(client.metadata(unlisted, timeout_s=_left_s(deadline))).topics
    refused = {
        f"topic {topic.name}": refusal_named(topic.error)
        for topic in named.values()
        if topic.error is not None and not topic.is_missing
    }
    consequence = "clusters that reach it may be missing here"
    said = sentences(reached.alias, principal_of(reached.settings), "DESCRIBE", refused, consequence)
    return _Told(topics, next(said, None))


def _left_s(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _described(alias: str, found: _Told | TwinlogError, aliases: frozenset[str], marks: list[str]) -> ClusterView:
    if isinstance(found, TwinlogError):
        return ClusterView(alias, error=mask(str(found)), exit_code=found.exit_code)
    return ClusterView(
        alias,
        tuple(upstream_clusters(found.topics, aliases, marks)),
        tuple(sorted(remote_topics(found.topics, aliases, marks))),
        found.hidden,
        exit_code=0 if found.hidden is None else 1,
    )
