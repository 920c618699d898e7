"""The estate as its clusters show it: which clusters reach which, over how many hops, and with which topics."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import mask
from twinlog.errors import TwinlogError
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
    error: str | None = None
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


def view(topology: Topology, accesses: AccessFor, timeout_s: float) -> View:
    """Ask every cluster for its topics, all at once, and read their names."""
    used: dict[str, tuple[Flow, str]] = {}
    for flow in topology.flows.values():
        used.setdefault(flow.source, (flow, "source"))
        used.setdefault(flow.target, (flow, "target"))
    questions = {
        alias: functools.partial(_topics, functools.partial(accesses, flow, side), timeout_s)
        for alias, (flow, side) in used.items()
    }
    answers = ask_all(questions, timeout_s, lambda alias: f"cluster {alias}")
    aliases = frozenset(topology.clusters)
    separators = {alias: flow.replication_policy_separator for alias, (flow, _) in used.items()}
    return View(tuple(_described(alias, answers[alias], aliases, separators[alias]) for alias in used))


def _topics(access: Callable[[], ClusterAccess], timeout_s: float) -> list[str]:
    deadline = time.monotonic() + timeout_s
    with access().raw(timeout_s) as client:
        return list(client.run(client.metadata(timeout_s=max(0.0, deadline - time.monotonic()))).topics)


def _described(alias: str, found: list[str] | TwinlogError, aliases: frozenset[str], separator: str) -> ClusterView:
    if isinstance(found, TwinlogError):
        return ClusterView(alias, error=mask(str(found)), exit_code=found.exit_code)
    return ClusterView(
        alias,
        tuple(upstream_clusters(found, aliases, separator)),
        tuple(sorted(remote_topics(found, aliases, separator))),
    )
