"""What a cluster's topics tell of where their records come from, as MirrorMaker 2's client tells it.

A flow mirrors the heartbeats of its source, so a cluster has a heartbeats topic for every cluster that reaches it, by
whatever path: `nyc.heartbeats` came from nyc, `lon.nyc.heartbeats` from nyc by way of lon. A name is read as the flows
into a cluster give names, and where no flow could have given it by the aliases before it, as MirrorMaker 2 puts them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from twinlog.model.naming import HEARTBEATS, NamingPolicy


@dataclass(frozen=True, slots=True)
class Upstream:
    """One cluster whose records arrive, over the shortest of the paths that there are."""

    cluster: str
    hops: int
    path: tuple[str, ...]
    """The clusters come through, the latest first; the last is the one where records are produced."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a topic came from."""

    path: tuple[str, ...]
    """As in Upstream; empty for a topic of the cluster's own."""
    topic: str
    """Its name where it was produced."""


@dataclass(frozen=True)
class Names:
    """How an estate names topics."""

    aliases: frozenset[str]
    separators: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By cluster, what may stand between alias and topic there."""
    flows_into: Mapping[str, Sequence[tuple[str, NamingPolicy]]] = field(default_factory=dict)
    """By cluster, where the flows into it come from, and how they name topics."""

    def origin(self, cluster: str, topic: str) -> Origin:
        """By the name alone, over the longest path that it can tell of."""
        longest = Origin((), topic)
        for source, before in self._steps(cluster, topic):
            further = self.origin(source, before)
            if len(further.path) >= len(longest.path):
                longest = Origin((source, *further.path), further.topic)
        return longest

    def _steps(self, cluster: str, topic: str) -> Iterator[tuple[str, str]]:
        """Each cluster that a name can have come from, with the name there; every step makes it shorter."""
        for source, policy in self.flows_into.get(cluster, ()):
            before = policy.source_name(topic)
            if before is not None and len(before) < len(topic):
                yield source, before
        for separator in self.separators.get(cluster, (".",)):
            alias, found, rest = topic.partition(separator)
            if found and rest and alias in self.aliases:
                yield alias, rest


def upstream_clusters(topics: Iterable[str], origin: Callable[[str], Origin]) -> list[Upstream]:
    """Every cluster that reaches the one with these topics, nearest first."""
    shortest: dict[str, Upstream] = {}
    for found in map(origin, topics):
        if found.topic != HEARTBEATS:
            continue
        for count, cluster in enumerate(found.path, start=1):
            if cluster not in shortest or count < shortest[cluster].hops:
                shortest[cluster] = Upstream(cluster, count, found.path[:count])
    return sorted(shortest.values(), key=lambda upstream: (upstream.hops, upstream.cluster))


def remote_topics(topics: Iterable[str], origin: Callable[[str], Origin]) -> dict[str, tuple[str, ...]]:
    """The topics whose names tell that they were mirrored in, each with the clusters it came through."""
    found = {topic: origin(topic).path for topic in topics}
    return {topic: path for topic, path in found.items() if path}
